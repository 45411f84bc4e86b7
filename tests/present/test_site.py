"""The documentation is built without a warning, lists every public name, has no dead link, and can be searched."""

import re
import subprocess
import sys
import threading
import zlib
from functools import partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from axe_playwright_python.sync_playwright import Axe

import psidp

ROOT = Path(__file__).parent.parent.parent
KINDS = {
    "home": "index.html",
    "tutorial": "tutorials/first-release.html",
    "how-to": "tables.html",
    "worked through": "choosing.html",
    "coming from": "coming-from/tumult.html",
    "explanation": "the-one-number.html",
    "decision": "design/step.html",
    "reference": "reference/made/conversions.html",
    "commands": "reference/made/commands.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site, built as ./dev docs builds it."""
    where = tmp_path_factory.mktemp("site")
    command = ["sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet", "docs", str(where)]
    built = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return where


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class Anchors(HTMLParser):
    """Where a page leads to, and what can be led to in it."""

    def __init__(self, text):
        super().__init__()
        self.names, self.targets = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        self.targets |= {given[key] for key in ("href", "src") if given.get(key)}


def test_every_public_name_is_in_the_reference(site):
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    listed = {line.split()[0] for line in inventory.splitlines()}
    pages = "".join((site / "reference" / "made").joinpath(p.name).read_text() for p in site.glob("reference/made/*"))
    for name in psidp.__all__:
        assert f"psidp.{name}" in listed or f">psidp.{name}<" in re.sub(r"</?span[^>]*>", "", pages), name


def test_every_argument_in_the_reference_stands_by_itself(site):
    """A sentence that is taken for an argument would be shown as a name in bold."""
    named = [
        n
        for p in site.glob("reference/made/*.html")
        for n in re.findall(r"<li><p><strong>(.*?)</strong>", p.read_text())
    ]
    assert len(named) > 100
    assert [n for n in named if not re.fullmatch(r"\*{0,2}\w+( or \w+)?", n)] == []


def test_no_link_is_dead(site):
    pages = {path: Anchors(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 40
    for path, page in pages.items():
        if path.name == "explore.html":
            continue  # its own tests are elsewhere, and its anchors are its state
        for target in page.targets:
            place, anchor = urldefrag(re.sub(r"\?v=\w+", "", unescape(target)))
            if re.match(r"[a-z]+:", place) or target == "#":
                continue
            found = (path.parent / unquote(place)).resolve() if place else path
            assert found.exists(), f"{path.relative_to(site)} leads to {target}"
            if anchor and found in pages:
                assert unquote(anchor) in pages[found].names, f"{path.relative_to(site)} leads to {target}"


def test_no_page_needs_another_machine(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(https?:[^"]+)"', path.read_text())
        assert loaded == [], path.name


def test_the_explorer_is_a_page_of_the_site_beside_the_page_about_it(chromium, site, address):
    assert "<h1>The explorer" in (site / "explorer.html").read_text()
    assert 'href="explore.html"' in (site / "index.html").read_text()
    page = chromium.new_page()
    page.goto(f"{address}explore.html")
    page.wait_for_selector("html[data-ready=yes]")
    page.close()


def test_formulae_are_drawn_by_the_browser_itself(site):
    assert "<math" in (site / "the-one-number.html").read_text()


def test_every_public_name_is_found_by_search(chromium, address):
    page = chromium.new_page()
    for name in ("epsilon_from_psi", "GaussianMechanism", "Curator", "audit_one_run", "Ledger"):
        page.goto(f"{address}search.html?q={name}")
        page.wait_for_selector("#search-results li a")
        assert any(name.lower() in link.lower() for link in page.locator("#search-results li a").all_inner_texts())
    page.close()


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_on_a_page_of_each_kind(chromium, address, kind, look):
    size = {"width": 360, "height": 780} if look == "phone" else {"width": 1280, "height": 900}
    context = chromium.new_context(viewport=size, color_scheme="dark" if look == "dark" else "light")
    page = context.new_page()
    page.goto(address + KINDS[kind])
    found = Axe().run(page).response["violations"]
    wide = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
    context.close()
    assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == []
    assert wide <= 0, "the page is wider than the window"
