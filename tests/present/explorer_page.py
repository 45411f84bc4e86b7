"""How tests use the explorer's page: read its fields, find and drag its handles, hand it a file."""

import re

import numpy as np


def number(page, name):
    return float(page.input_value(f"#{name}"))


def share(page, name):
    return float(page.input_value(f"#{name}").removesuffix(" %")) / 100


def handle(page, name):
    return page.locator(f"[data-handle={name}]")


def centre(page, name):
    box = handle(page, name).locator(".grip").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def place(page, name):
    """Where a handle is in its picture, however far the page is scrolled."""
    grip = handle(page, name).locator(".grip")
    return float(grip.get_attribute("cx")), float(grip.get_attribute("cy"))


def drag(page, name, dx, dy):
    handle(page, name).scroll_into_view_if_needed()
    x, y = centre(page, name)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(x + dx * step / 5, y + dy * step / 5)
    page.mouse.up()
    settle(page)


def settle(page):
    """Two frames later everything is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def rates(page):
    said = handle(page, "roc-point").get_attribute("aria-valuetext")
    return [float(value) / 100 for value in re.findall(r"([\d.]+) %", said)]


def scores_csv(psi, n=400):
    rng = np.random.default_rng(5)
    rows = [f"{x:.6f},1" for x in rng.normal(psi, 1, n)] + [f"{x:.6f},0" for x in rng.normal(0, 1, n)]
    return "\n".join(["score,member", *rows])


def upload(page, name, text):
    page.set_input_files("#scores", {"name": name, "mimeType": "text/csv", "buffer": text.encode()})
