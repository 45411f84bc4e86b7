"""Guard: what stands before the application. Size, host and token are checked, and every answer gets its headers."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import numpy as np

__all__ = ["LARGEST_BODY", "POLICY", "Guard", "error_body"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LARGEST_BODY = 4 * 2**20
DEEPEST = 32
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COOKIE = "psidp_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def error_body(sentence: str) -> dict[str, Any]:
    """The one shape of every refusal."""
    return {"error": {"sentence": sentence}}


class Guard:
    """An ASGI application around another. With a token every request must bring it, else the host must be loopback."""

    def __init__(self, app: App, token: str | None = None) -> None:
        self.app = app
        self.token = token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            return await _refuse(send, *refusal)
        body = await _body(receive)
        if body is None:
            return await _refuse(send, 413, f"the request must have at most {LARGEST_BODY} bytes.")
        if _depth(body) > DEEPEST:
            return await _refuse(send, 422, f"the request must be nested at most {DEEPEST} deep.")
        return await self.app(scope, _replay(body, receive), _with_headers(send, self._cookie(scope)))

    def _refusal(self, scope: Message, headers: dict[str, str]) -> tuple[int, str] | None:
        if self.token is not None:
            given = _tokens(scope, headers)
            if not any(compare_digest(each.encode(), self.token.encode()) for each in given):
                return 401, "this server asks for its token: open the address that psidp explore printed."
        elif _host(headers.get("host", "")) not in LOOPBACK:
            return 403, "this server answers only to 127.0.0.1 and localhost."
        if scope["method"] == "POST" and "sec-fetch-site" in headers and headers["sec-fetch-site"] != "same-origin":
            return 403, "this server answers only to its own page."
        return None

    def _cookie(self, scope: Message) -> str | None:
        """A cookie that carries the token on, for a page opened with the token in its address."""
        asked = "token" in parse_qs(scope["query_string"].decode("latin-1"))
        return f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/" if self.token and asked else None


def _host(header: str) -> str:
    return header.rsplit(":", 1)[0] if not header.endswith("]") and ":" in header else header


def _tokens(scope: Message, headers: dict[str, str]) -> list[str]:
    """Every token that a request brings: in its address, its cookie or its Authorization header."""
    cookie: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    found = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    found += [cookie[COOKIE].value] if COOKIE in cookie else []
    return [*found, headers.get("authorization", "").removeprefix("Bearer ")]


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None as soon as it is too large."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _depth(body: bytes) -> int:
    """How deep brackets nest, those in strings counted in: an upper bound that needs no parser."""
    letters = np.frombuffer(body, dtype=np.uint8)
    opens, closes = (np.isin(letters, np.frombuffer(pair, dtype=np.uint8)) for pair in (b"[{", b"]}"))
    return int(np.max(np.cumsum(opens.astype(np.int32) - closes), initial=0))


def _replay(body: bytes, later: Receive) -> Receive:
    """The body that was read, once; then whatever comes."""
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return await later()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _with_headers(send: Send, cookie: str | None) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            extra = HEADERS | ({"set-cookie": cookie} if cookie else {})
            own = {name.encode(): value.encode() for name, value in extra.items()}
            kept = [(name, value) for name, value in message["headers"] if name.lower() not in own]
            message["headers"] = [*kept, *own.items()]
        await send(message)

    return wrapped


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps(error_body(sentence)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await _with_headers(send, None)({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
