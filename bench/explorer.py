"""The explorer in a real Chromium: script time of every frame while threshold, psi and the slider are dragged."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.timing import Report
from psidp.present.web.standalone import standalone_page

FRAME = 16.0
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WATCH = """() => {
  window.frames_seen = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === 'psidp-frame') window.frames_seen.push(entry.duration);
  }).observe({ type: 'measure' });
}"""
VIEWS = {"1280 x 900": {"width": 1280, "height": 900}, "phone, 390 x 844": {"width": 390, "height": 844}}
PINS = "&".join(f"pin={psi}:{name}" for psi, name in ((0.5, "a"), (1.5, "b"), (2.0, "c"), (3.0, "d")))


def run(full: bool, seed: int) -> list[Report]:
    """Milliseconds of script per frame, four mechanisms pinned, everything on the page redrawn."""
    report = Report("Explorer: script per drag frame, every view redrawn, four mechanisms pinned")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        report.say("Chromium", "not on this machine, or playwright is not installed")
        return [report]
    moves = 600 if full else 150
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "explorer.html"
        file.write_text(standalone_page(), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for view, size in VIEWS.items():
            for handle in ("threshold", "psi", "slider"):
                page = browser.new_page(viewport=size, bypass_csp=True)
                page.goto(f"{file.as_uri()}#{PINS}")
                page.wait_for_selector("html[data-ready=yes]")
                _measure(report, page, f"{view}, drag {handle}", handle, moves)
                page.close()
        browser.close()
    return [report]


def _measure(report: Report, page: Any, what: str, handle: str, moves: int) -> None:
    """Drag to and fro, a move per frame; the page's own measure, and the browser's count of all script."""
    held = page.locator("#psi-range" if handle == "slider" else f"[data-handle={handle}] .grip")
    held.scroll_into_view_if_needed()
    box = held.bounding_box()
    x, y = box["x"] + box["width"] * (1 / 6 if handle == "slider" else 1 / 2), box["y"] + box["height"] / 2
    page.evaluate(WATCH)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    before = _metrics(devtools)
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(moves):
        page.mouse.move(x + 60 * np.sin(i / 8), y)
    page.mouse.up()
    page.evaluate("() => new Promise((done) => setTimeout(done, 200))")
    after, frames = _metrics(devtools), np.array(page.evaluate("() => window.frames_seen"))
    spent = {name: 1e3 * (after[name] - before[name]) / frames.size for name in before}
    layout = f"all script {spent['ScriptDuration']:.2f} ms, layout and style {spent['LayoutDuration']:.2f} ms"
    report.add(f"{what}, median", float(np.median(frames)), "ms", at_most=FRAME, note=f"{frames.size} frames; {layout}")
    report.add(f"{what}, 95 %", float(np.quantile(frames, 0.95)), "ms", at_most=FRAME)
    report.add(f"{what}, worst", float(frames.max()), "ms", note="the machine's other work included")


def _metrics(devtools: Any) -> dict[str, float]:
    """Seconds that the page has spent on script, and on layout and style together."""
    found = {entry["name"]: entry["value"] for entry in devtools.send("Performance.getMetrics")["metrics"]}
    laid = found["LayoutDuration"] + found["RecalcStyleDuration"]
    return {"ScriptDuration": found["ScriptDuration"], "LayoutDuration": laid}
