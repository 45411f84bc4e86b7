"""psidp explore: serve the page on this machine, or save it as one file."""

import webbrowser
from os import strerror
from pathlib import Path
from secrets import token_urlsafe
from socket import AF_INET, AF_INET6, AddressFamily, create_server, socket
from typing import Annotated

import typer

from psidp.cli.echo import echo
from psidp.errors import MissingExtraError
from psidp.present.web.standalone import standalone_page

__all__ = ["explore"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def explore(
    save: Annotated[str, typer.Option("--save", help="write the page to this file instead, to open from disk")] = "",
    port: Annotated[int, typer.Option("--port", help="port to listen on; 0 takes a free one")] = 8347,
    host: Annotated[str, typer.Option("--host", help="address to listen on")] = "127.0.0.1",
    beyond_loopback: Annotated[
        bool, typer.Option("--beyond-loopback", help="allow an address that others can reach; asks for a token")
    ] = False,
    browser: Annotated[bool, typer.Option(help="open the page in the browser")] = True,
) -> None:
    """Open the explorer: a page on which everything can be dragged.

    Two Gaussians, the ROC curve with its tangent, the profile, plain words. Ctrl-C ends it.

    Example: psidp explore --save explorer.html
    """
    if save:
        Path(save).write_text(standalone_page(), encoding="utf-8")
        return echo(f"{save} written: one file, needs no server")
    return serve(host, port, beyond_loopback, browser)


def check_host(host: str, beyond_loopback: bool) -> str | None:
    """The token that guards this address, None on loopback; an address that others reach is refused unless asked for.

    Examples:
        >>> check_host("127.0.0.1", beyond_loopback=False)
        >>> check_host("0.0.0.0", beyond_loopback=False)
        Traceback (most recent call last):
        ValueError: host must be 127.0.0.1, localhost or ::1, got host='0.0.0.0'. To let others reach it, ...
    """
    if host in LOOPBACK:
        return None
    if not beyond_loopback:
        raise ValueError(
            f"host must be {', '.join(LOOPBACK[:-1])} or {LOOPBACK[-1]}, got host={host!r}. "
            "To let others reach it, say --beyond-loopback as well: a token is then asked for."
        )
    return token_urlsafe(24)


def serve(host: str, port: int, beyond_loopback: bool, browser: bool) -> None:
    """Listen until interrupted."""
    token = check_host(host, beyond_loopback)
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be in [0, 65535], got port={port}. 0 takes a free one.")
    try:
        import uvicorn

        from psidp.present.web.app import create_app
        from psidp.present.web.connections import configured
    except ImportError as missing:
        raise MissingExtraError("fastapi and uvicorn", "web") from missing
    family = AF_INET6 if ":" in host else AF_INET
    with _listening(host, port, family) as listening:
        config = configured(create_app(token))
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")
        echo(f"The explorer is at {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)
        uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int, family: AddressFamily) -> socket:
    try:
        return create_server((host, port), family=family)
    except OSError as trouble:
        why = strerror(trouble.errno or 0)
        raise ValueError(f"{host}:{port} cannot be listened on ({why}). --port 0 takes a free port.") from None
