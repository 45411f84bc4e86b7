"""Connections of the explorer: clients that say nothing, half of it, or too much keep nobody else out."""

import asyncio
import threading
from contextlib import ExitStack, suppress
from socket import create_connection
from types import SimpleNamespace

import httpx
import pytest

from psidp.present.web import connections, handlers
from psidp.present.web.app import MOST_ASKING, create_app

NEVER = 300.0
"""Seconds after which what is waited for will not come."""
HALVES = (
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /api/explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
)


def connected(stack, port, said=b""):
    client = stack.enter_context(create_connection(("127.0.0.1", port), timeout=NEVER))
    client.sendall(said)
    return client


def is_hung_up_on(client):
    """Wait for the end of a connection; what was answered before does not matter."""
    with suppress(ConnectionError):
        while client.recv(65536):
            pass
    return True


def hung_up_after(client, said):
    """Say something: has the connection ended, rather than nothing come for a moment?"""
    try:
        client.sendall(said)
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def get(port, path="/"):
    return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=NEVER)


def test_two_hundred_idle_connections_keep_nobody_out(serving):
    with serving(create_app()) as port, ExitStack() as stack:
        for i in range(200):
            connected(stack, port, HALVES[i % len(HALVES)])
        for _ in range(3):
            assert get(port).status_code == 200
        asked = httpx.post(f"http://127.0.0.1:{port}/api/explain", json={"psi": 1}, timeout=NEVER)
        assert asked.json()["guarantee"]["psi"] == 1.0


def test_below_the_limit_nobody_is_hung_up_on(serving, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", NEVER)
    with serving(create_app()) as port, ExitStack() as stack:
        patient = [connected(stack, port) for _ in range(connections.MOST)]
        for client in patient:
            client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"


def test_a_request_that_is_being_answered_is_not_cut_off(serving):
    begun, go_on = threading.Event(), threading.Event()

    async def slow(scope, receive, send):
        assert scope["type"] == "http"
        if scope["path"] == "/slow":
            begun.set()
            await asyncio.to_thread(go_on.wait, NEVER)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    with serving(slow) as port, ExitStack() as stack:
        asked = connected(stack, port, b"GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert begun.wait(NEVER)
        for i in range(200):
            connected(stack, port, HALVES[i % 3])
        assert get(port).text == "ok"
        go_on.set()
        assert asked.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("said", HALVES, ids=["nothing", "half a line", "half a head", "half a body"])
def test_a_request_that_does_not_come_is_not_waited_for_for_ever(serving, monkeypatch, said):
    monkeypatch.setattr(connections, "PATIENCE", 0.1)
    with serving(create_app()) as port, ExitStack() as stack:
        assert is_hung_up_on(connected(stack, port, said))


def test_a_request_that_comes_letter_by_letter_has_no_more_time(serving, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.5)
    with serving(create_app()) as port, ExitStack() as stack:
        client = connected(stack, port, b"GET / HTTP/1.1\r\nX: ")
        client.settimeout(0.02)
        assert any(hung_up_after(client, b"x") for _ in range(10_000))


def test_room_is_made_by_whoever_has_most_and_has_waited_longest():
    gone = []

    def client(name, address, since, waits=True):
        return SimpleNamespace(
            client=(address, 1), since=since, waits_for_client=waits, hang_up=lambda: gone.append(name)
        )

    connections._make_room([client("alone", "a", 1), client("old", "b", 3), client("new", "b", 4)])
    assert gone == ["old"]
    connections._make_room([client("busy", "a", 1, waits=False), client("waiting", "a", 2)])
    assert gone == ["old", "waiting"]
    connections._make_room([client("busy", "a", 1, waits=False)])
    assert gone == ["old", "waiting"]


def test_many_who_ask_for_work_leave_room_for_the_page(monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(handlers, "answer_explain", lambda asked: {"waited": go_on.wait(NEVER)})
    app = create_app()

    async def rush():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8347", timeout=NEVER) as client:
            asked = [asyncio.ensure_future(client.post("/api/explain", json={"psi": 1})) for _ in range(50)]
            refused = 0
            for first in asyncio.as_completed(asked):
                refused += (await first).status_code == 503
                if refused == 50 - MOST_ASKING:
                    break
            page = await client.get("/")
            go_on.set()
            return page, await asyncio.gather(*asked)

    page, replies = asyncio.run(rush())
    assert page.status_code == 200
    assert [reply.status_code for reply in replies].count(200) == MOST_ASKING
    sentences = {reply.json()["error"]["sentence"] for reply in replies if reply.status_code == 503}
    assert sentences == {"too many wait for explain already: ask again in a while."}
