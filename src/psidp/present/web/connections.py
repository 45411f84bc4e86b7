"""Connections of the explorer: a client that keeps it waiting is hung up on, so that newcomers always get through."""

from asyncio import TimerHandle, Transport
from collections import Counter
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["MOST", "PATIENCE", "Connection", "configured"]

MOST = 64
"""Connections that are kept; one more, and one that waits for its client is closed."""
PATIENCE = 20.0
"""Seconds that a client has for a whole request, and to take the answer."""


class Connection(H11Protocol):
    """HTTP/1.1 with a time limit for requests, whether they come slowly, in part or never.

    The connection that makes room for a newcomer is of the client that has most, and of those the one that has waited
    longest. A request that is being answered is never cut off for another.
    """

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """A client has come: make room for it, and wait for its request."""
        super().connection_made(transport)
        self._alarm: TimerHandle | None = None
        self._wait()
        others: set[Any] = self.connections - {self}
        if len(others) >= MOST:
            _make_room([each for each in others if isinstance(each, Connection)])

    def connection_lost(self, exc: Exception | None) -> None:
        """The client or the server has hung up."""
        if self._alarm is not None:
            self._alarm.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Answered: wait for the next request."""
        self._wait()
        super().on_response_complete()

    @property
    def waits_for_client(self) -> bool:
        """No whole request is here, or the client does not read its answer."""
        answering = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return not answering or bool(self.flow.write_paused)

    def hang_up(self) -> None:
        """Close at once, whatever was still to be sent."""
        self.connections.discard(self)
        self.transport.abort()

    def _wait(self) -> None:
        """From now on the client has PATIENCE seconds."""
        if self._alarm is not None:
            self._alarm.cancel()
        self.since = self.loop.time()
        self._alarm = self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        if self.waits_for_client:
            self.hang_up()
        else:
            self._wait()


def _make_room(others: list[Connection]) -> None:
    """Hang up on the client with most connections that wait for it, where it has waited longest."""
    idle = [each for each in others if each.waits_for_client]
    if idle:
        held = Counter(_address(each) for each in others)
        min(idle, key=lambda each: (-held[_address(each)], each.since)).hang_up()


def _address(connection: Connection) -> str:
    return connection.client[0] if connection.client else ""


def configured(app: Any) -> Config:
    """How uvicorn serves the explorer; beyond MOST connections, all of them being answered, it says 503."""
    return Config(
        app,
        http=Connection,
        ws="none",
        log_level="warning",
        limit_concurrency=MOST + 1,
        timeout_keep_alive=5,
        server_header=False,
    )
