"""A running explorer, and a real Chromium."""

import os
import shutil
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import expect, sync_playwright

from psidp.present.web.app import create_app
from psidp.present.web.connections import configured

ARTEFACTS = Path(os.environ.get("PSIDP_ARTEFACTS", Path(__file__).parent.parent.parent / "build" / "explorer"))
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 120_000
"""Milliseconds after which the browser is given up: only what never comes takes them, however busy the machine is."""
expect.set_options(timeout=PATIENCE)


def browser_path():
    """The system's Chromium; without one these tests are skipped."""
    found = os.environ.get("PSIDP_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    return found


@contextmanager
def serving(app):
    """The port at which an application is served as the explorer is."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(configured(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session", name="serving")
def _serving():
    return serving


@pytest.fixture(scope="session")
def served():
    """The address of a running explorer."""
    with serving(create_app()) as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def chromium():
    """One browser for each file of tests; while it lives it owns this thread's event loop."""
    path = browser_path()
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=path, args=flags, timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium):
    """Opens pages, and afterwards insists: no console error, no uncaught exception, no request to another origin."""
    contexts, troubles = [], []

    def open_page(address, **settings):
        refusals = settings.pop("expect_refusals", False)
        context = chromium.new_context(viewport=settings.pop("viewport", {"width": 1280, "height": 900}), **settings)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        origin = "/".join(address.split("/")[:3])
        said = lambda m: m.type in ("error", "warning") and not (refusals and "status of 422" in m.text)  # noqa: E731
        page.on("console", lambda m: troubles.append(m.text) if said(m) else None)
        page.on("pageerror", lambda e: troubles.append(str(e)))
        page.on("request", lambda r: None if r.url.startswith((origin, "data:", "blob:")) else troubles.append(r.url))
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture(scope="session")
def artefacts():
    """Where screenshots are kept for people to look at."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    return ARTEFACTS
