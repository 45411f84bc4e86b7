"""The explorer for everybody: names and roles, contrast in both themes, the keyboard alone, a phone's width."""

import pytest
from axe_playwright_python.sync_playwright import Axe

import psidp
from psidp.present.card import card, to_html

VIEWS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
    "phone-dark": {"viewport": {"width": 360, "height": 780}, "color_scheme": "dark"},
}
HANDLES = ["psi", "threshold", "roc-point", "tangent", "profile-dot", "order"]
FOCUS = """() => {
  const e = document.activeElement;
  const [box, bar] = [e.getBoundingClientRect(), document.getElementById('controls').getBoundingClientRect()];
  const covered = !e.closest('#controls') && box.top < bar.bottom && box.bottom > bar.top && bar.top <= 0;
  return [e.id || e.dataset.handle || 'other', covered || box.bottom < 0 || box.top > innerHeight];
}"""
"""What has the focus, and whether the bar at the top, or the window's edge, hides it."""
ORDER = ["psi", "psi-range", "unit", "epsilon", "delta", "tpr", "fpr", "sigma", "sensitivity"]


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_violation(tab, served, view):
    page = tab(f"{served}#pin=0.5:clinic&psi=1.4", bypass_csp=True, **VIEWS[view])  # axe itself is injected
    page.evaluate("() => { for (const folded of document.querySelectorAll('details')) folded.open = true; }")
    page.click("#game-start")
    page.fill("#sigma", "-1")
    still(page)
    found = Axe().run(page).response["violations"]
    assert [(v["id"], [n["target"] for n in v["nodes"]]) for v in found] == []


def still(page):
    """Buttons fade from one colour to the next; what axe is to judge are the colours they end with."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.evaluate("() => Promise.allSettled(document.getAnimations().map((fading) => fading.finished)).then(() => {})")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_in_pictures_stand_out_from_the_ground(tab, served, theme):
    page = tab(f"{served}#pin=2:x", color_scheme=theme)
    pairs = page.evaluate(
        """() => { const ground = getComputedStyle(document.querySelector('.card')).backgroundColor;
        return [...document.querySelectorAll('svg text')].filter((t) => t.textContent)
          .map((t) => [t.textContent, getComputedStyle(t).fill, ground]); }"""
    )
    assert len(pairs) > 20
    for words, ink, ground in pairs:
        assert contrast(ink, ground) >= 4.5, words
    lines = page.evaluate(
        """() => { const ground = getComputedStyle(document.querySelector('.card')).backgroundColor;
        return [...document.querySelectorAll('.curve, .with, .without, .tangent, .grip')]
          .map((t) => [t.getAttribute('class'), getComputedStyle(t).stroke, ground]); }"""
    )
    for words, ink, ground in lines:
        assert contrast(ink, ground) >= 3.0, words


def contrast(one, two):
    """The ratio of WCAG 2.2, 1.4.3."""

    def luminance(colour):
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(tab, served):
    page = tab(served)
    for folded in ("renyi", "training"):
        page.evaluate("(name) => { document.getElementById(`fold-${name}`).open = true; }", folded)
    seen, hidden = [], []
    for _ in range(95):
        page.keyboard.press("Tab")
        name, covered = page.evaluate(FOCUS)
        seen.append(name)
        hidden += [name] if covered else []
        if name == "account":
            break
    assert hidden == [], "the focus is never under the bar"
    reached = list(dict.fromkeys(name for name in seen if name in ORDER))
    assert reached == ORDER
    handles = [h for h in seen if h in HANDLES]
    assert handles[1:7] == HANDLES
    for name in ("probit", "unit", "prior", "game-start", "pin-name", "pin", "scores", "steps", "account", "picture"):
        assert name in seen, name


@pytest.mark.parametrize("name", HANDLES)
def test_every_handle_is_a_slider_that_arrows_move_and_that_says_where_it_is(tab, served, name):
    page = tab(served)
    page.evaluate("() => { for (const folded of document.querySelectorAll('details')) folded.open = true; }")
    handle = page.locator(f"[data-handle={name}]")
    assert handle.get_attribute("role") == "slider"
    assert handle.get_attribute("aria-label")
    handle.focus()
    before = float(handle.get_attribute("aria-valuenow")), handle.get_attribute("aria-valuetext")
    for key in ("ArrowRight", "ArrowUp", "PageUp"):
        page.keyboard.press(key)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        after = float(handle.get_attribute("aria-valuenow")), handle.get_attribute("aria-valuetext")
        assert after[0] > before[0], key
        assert after[1] != before[1]
        before = after
    assert float(handle.get_attribute("aria-valuemin")) <= after[0] <= float(handle.get_attribute("aria-valuemax"))
    ends = []
    for key in ("End", "Home"):
        page.keyboard.press(key)
        still(page)
        ends.append(float(handle.get_attribute("aria-valuenow")))
    assert ends[1] < before[0] < ends[0], "Home and End go to the ends"


def test_a_screen_reader_meets_headings_regions_and_names(tab, served):
    page = tab(served)
    tree = page.locator("body").aria_snapshot()
    for line in (
        'heading "ψ explorer: what a privacy promise means" [level=1]',
        'form "The mechanism"',
        'slider "ψ, sensitivity index safer ← → less safe"',
        'textbox "epsilon ε"',
        'slider "Threshold"',
        'slider "Point on the ROC curve"',
        'table "Rates at this threshold"',
        "img \"Of 1,000 people",
    ):  # fmt: skip
        assert line in tree, line


def test_on_a_phone_fingers_find_their_targets(tab, served):
    page = tab(served, viewport={"width": 360, "height": 780}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = page.evaluate(
        """() => [...document.querySelectorAll('button, input:not([type=checkbox]), select')]
        .filter((e) => !e.closest('[hidden]') && e.getBoundingClientRect().height < (e.type === 'range' ? 16 : 24))
        .map((e) => e.id)"""
    )
    assert small == []


def test_the_card_is_accessible(chromium, tmp_path):
    (tmp_path / "card.html").write_text(to_html(card(psidp.Guarantee(1.0, 1e-6), title="Mean age")), encoding="utf-8")
    context = chromium.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto((tmp_path / "card.html").as_uri())
    found = Axe().run(page).response["violations"]
    context.close()
    assert [(v["id"], [n["target"] for n in v["nodes"]]) for v in found] == []
