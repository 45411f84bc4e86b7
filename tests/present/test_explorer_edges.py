"""The explorer does not mislead: what is locked stays, axes hold still, edges are told, exports say what they are."""

import re
from html import unescape
from urllib.parse import parse_qs
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

import psidp
from present.explorer_page import centre, drag, handle, number, place, scores_csv, settle, share, upload
from psidp.present.deployments import deployments
from psidp.present.web.standalone import standalone_page


@pytest.mark.parametrize("width", [1400, 360])
def test_psi_dragged_to_6_and_back_is_1_again_and_stays_under_the_pointer(tab, served, width):
    page = tab(served, viewport={"width": width, "height": 900})
    handle(page, "psi").scroll_into_view_if_needed()
    x, y = centre(page, "psi")
    pixel = (place(page, "psi")[0] - float(page.evaluate(AXIS_ZERO))) / 1.0
    page.mouse.move(x, y)
    page.mouse.down()
    way = [*np.linspace(1.0, 6.0, 11), *np.linspace(6.0, 1.0, 11)]
    for psi in way:
        page.mouse.move(x + pixel * (psi - 1.0), y)
        settle(page)
        assert centre(page, "psi") == pytest.approx((x + pixel * (psi - 1.0), y), abs=1.0)
        assert number(page, "psi") == pytest.approx(psi, abs=1.0 / pixel)
    page.mouse.up()
    settle(page)
    assert number(page, "psi") == pytest.approx(1.0, abs=1e-4)
    assert centre(page, "psi") == pytest.approx((x, y), abs=1.0)


AXIS_ZERO = (
    """() => [...document.querySelectorAll('#densities text')].find((t) => t.textContent === '0').getAttribute('x')"""
)


def test_epsilon_at_the_locked_delta_grows_with_psi_along_the_whole_slider(tab, served):
    page = tab(served)
    found = page.evaluate("""async () => {
      const slider = document.getElementById('psi-range');
      const seen = [];
      for (let psi = 0.02; psi <= 6; psi += 0.02) {
        slider.value = String(psi);
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise(requestAnimationFrame);
        seen.push(['psi', 'epsilon', 'delta'].map((name) => Number(document.getElementById(name).value)));
      }
      return seen;
    }""")
    psi, epsilon, delta = np.array(found).T
    assert psi.size == 300
    assert set(delta) == {1e-5}
    assert np.all(np.diff(epsilon) > 0)
    assert epsilon == pytest.approx(psidp.epsilon_from_psi(psi, 1e-5), rel=1e-5)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ({"delta": "1e-6"}, {"psi": 1.0, "epsilon": psidp.epsilon_from_psi(1.0, 1e-6)}),
        ({"tpr": "2 %"}, {"fpr": 0.01, "psi": psidp.psi_from_rates(0.02, 0.01)}),
        ({"fpr": "0.1"}, {"psi": 1.0, "tpr": psidp.tpr_from_psi(1.0, 0.1)}),
        ({"sensitivity": "50", "psi": "0.25"}, {"sigma": 200.0}),
        ({"psi": "0.25", "sensitivity": "50"}, {"sigma": 200.0}),
        ({"psi": "1,5"}, {"psi": 1.5}),
    ],
    ids=lambda values: ", ".join(f"{name} {value}" for name, value in values.items()),
)
def test_fields_answer_in_one_step(tab, served, typed, shown):
    page = tab(served)
    for name, text in typed.items():
        page.fill(f"#{name}", text)
    settle(page)
    read = {name: (share if name in ("tpr", "fpr") else number)(page, name) for name in shown if name not in typed}
    assert read == pytest.approx({name: value for name, value in shown.items() if name in read}, rel=2e-4)
    page.locator("h1").click()
    settle(page)
    assert number(page, "psi") == pytest.approx(shown.get("psi", 0.25), rel=1e-5)


@pytest.mark.parametrize("locked", [False, True], ids=["as it opens", "the other one locked"])
@pytest.mark.parametrize(
    ("texts", "psi"),
    [
        ({"epsilon": "0.9", "delta": "0.001"}, psidp.psi_from_epsilon_delta(0.9, 1e-3)),
        ({"tpr": "50 %", "fpr": "2 %"}, psidp.psi_from_rates(0.5, 0.02)),
        ({"sigma": "4", "sensitivity": "10"}, 2.5),
    ],
    ids=["pair", "rates", "noise"],
)
def test_both_typed_members_of_a_pair_stay_and_psi_follows_in_either_order(tab, served, texts, psi, locked):
    for order in (list(texts), list(texts)[::-1]):
        page = tab(served)
        if locked:
            page.click(f"#lock-{next(iter(texts))}")
        for name in order:
            page.click(f"#{name}", click_count=3)
            page.keyboard.type(texts[name])
        page.locator("h1").click()
        settle(page)
        assert number(page, "psi") == pytest.approx(psi, rel=1e-5)
        read = {name: page.input_value(f"#{name}") for name in texts}
        assert read == texts


def test_a_typed_member_counts_until_psi_is_set_otherwise(tab, served):
    page = tab(served)
    for name, text in (("epsilon", "0.9"), ("psi", "1"), ("delta", "1e-6")):
        page.fill(f"#{name}", text)
        settle(page)
    assert number(page, "psi") == 1.0
    assert number(page, "epsilon") == pytest.approx(psidp.epsilon_from_psi(1.0, 1e-6), rel=1e-5)


def test_epsilon_reads_the_same_everywhere_and_never_below_it(tab, served):
    page = tab(served)
    epsilon = page.input_value("#epsilon")
    assert 0.0 <= float(epsilon) - psidp.epsilon_from_psi(1.0, 1e-5) < 1e-5
    assert f"ε = {epsilon}." in page.inner_text("#tangent-note")
    assert f"ε = {epsilon}, δ = 1e-5" in page.locator("#profile .label-tangent").text_content()
    assert f"epsilon {epsilon}" in handle(page, "tangent").get_attribute("aria-valuetext")
    page.click("#fold-renyi summary")
    assert f"the exact ε is {epsilon}." in page.inner_text("#renyi-note")


@pytest.mark.parametrize("name", ["tangent", "profile-dot", "psi", "roc-point"])
def test_a_handle_that_is_taken_and_not_moved_changes_nothing(tab, served, name):
    page = tab(served)
    fields = ("psi", "epsilon", "delta", "tpr", "fpr")
    before = [page.input_value(f"#{field}") for field in fields]
    drag(page, name, 1, 0)
    assert [page.input_value(f"#{field}") for field in fields] == before
    assert "δ = 1e-5 (where" in page.inner_text("#tangent-note")


@pytest.mark.parametrize(
    ("lock", "stays", "follows"),
    [("epsilon", "epsilon", "delta"), ("tpr", "tpr", "fpr"), ("sigma", "sigma", "sensitivity")],
)
def test_the_other_one_of_a_pair_can_be_locked_and_the_link_remembers(tab, served, lock, stays, follows):
    page = tab(served)
    before = {name: page.input_value(f"#{name}") for name in (stays, follows)}
    page.click(f"#lock-{lock}")
    expect(page.locator(f"#lock-{lock}")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(f"#lock-{follows}")).to_have_attribute("aria-pressed", "false")
    page.fill("#psi", "1.5")
    settle(page)
    assert page.input_value(f"#{stays}") == before[stays]
    assert page.input_value(f"#{follows}") != before[follows]
    expect(page).to_have_url(re.compile(rf"psi=1\.5.*{lock}|{lock}.*psi=1\.5"))
    again = tab(page.url)
    assert again.input_value(f"#{follows}") == page.input_value(f"#{follows}")


def test_several_releases_are_a_right_triangle(tab, served):
    page = tab(served)
    page.fill("[data-release='1']", "0.6")
    page.fill("[data-release='2']", "0.8")
    expect(page.locator("#composition-note")).to_contain_text("= 1, not 1.4")
    legs = [float(n) for n in re.findall(r"[\d.]+", page.get_attribute("#composition [data-name=legs]", "d"))]
    (ax, ay), (bx, by), (cx, cy) = np.reshape(legs, (3, 2))
    assert (bx - ax) * (cx - bx) + (by - ay) * (cy - by) == pytest.approx(0.0, abs=1.0)
    assert np.hypot(cx - ax, cy - ay) / np.hypot(bx - ax, by - ay) == pytest.approx(1.0 / 0.6, rel=1e-2)
    page.click("#release-add")
    page.fill("[data-release='3']", "2")
    expect(page.locator("#composition-note")).to_contain_text("= 2.236, not 3.4")
    page.click("#release-use")
    settle(page)
    assert number(page, "psi") == pytest.approx(
        psidp.compose([psidp.Guarantee(p) for p in (0.6, 0.8, 2)]).psi, rel=1e-5
    )
    page.fill("[data-release='1']", "-1")
    expect(page.locator("#release-refusal")).to_contain_text("psi (sensitivity index Delta/sigma) must be in")


@pytest.mark.parametrize(
    "state", ["", "delta=0.2", "psi=4&delta=0.1", "psi=0.1&delta=0.03", "psi=6", "axes=probit&delta=0.1"]
)
def test_the_tangents_label_has_the_slope_that_is_drawn_and_stays_in_the_picture(tab, served, state):
    page = tab(f"{served}#{state}", viewport={"width": 360, "height": 780})
    label = page.locator("#roc .label-tangent").nth(1)
    slope = float(re.search(r"slope e\^ε = ([\d.e]+)", label.text_content())[1])
    assert slope == pytest.approx(np.exp(number(page, "epsilon")), rel=1e-2)
    if "probit" not in state:
        drawn = [float(n) for n in re.findall(r"[\d.]+", page.get_attribute("#roc [data-name=tangent]", "d"))]
        (x0, y0), (x1, y1) = np.reshape(drawn, (2, 2))
        wide, high = page.evaluate(INNER)
        if x1 - x0 > 5:
            assert ((y0 - y1) / high) / ((x1 - x0) / wide) == pytest.approx(slope, rel=2e-2)
    outside = page.evaluate("""() => [...document.querySelectorAll('svg text')]
      .map((t) => [t.textContent, t.getBoundingClientRect(), t.closest('svg').getBoundingClientRect()])
      .filter(([words, own, host]) => words && own.width && (own.left < host.left - 1 || own.right > host.right + 1))
      .map(([words]) => words)""")
    assert outside == []


INNER = """() => { const box = document.querySelector('#roc clipPath rect');
  return [Number(box.getAttribute('width')), Number(box.getAttribute('height')) - 4]; }"""


def test_percents_keep_their_order_however_near_they_are(tab, served):
    rates = [
        0.0,
        1e-9,
        1e-4,
        0.0999,
        0.1,
        0.5,
        0.99,
        0.9989,
        0.9994,
        0.9996,
        0.99994,
        0.99996,
        0.999999,
        1 - 1e-12,
        1.0,
    ]
    run = (
        "async ([rates]) => { const d = await import('./static/js/digits.js'); return rates.map((r) => d.percent(r)); }"
    )
    said = tab(served).evaluate(run, [rates])
    values = [float(re.search(r"\d[\d.e-]*", words)[0]) for words in said]
    assert values == sorted(values)
    assert said[-1] == "100.0 %"
    assert "100" not in "".join(said[:-1])


def test_clamps_and_accusations_that_never_happen_are_said(tab, served):
    page = tab(f"{served}#psi=12&threshold=30")
    assert "beyond the slider's end" in page.inner_text("#psi-beyond")
    assert "accuses nobody" in page.inner_text("#ppv")
    assert "threshold 30 →" in page.inner_text("#densities")
    page = tab(f"{served}#psi=0.1&delta=0.5")
    assert "more than this ψ needs even at ε = 0" in page.inner_text("#pair-note")
    assert number(page, "epsilon") == 0.0


def test_the_more_private_of_two_pairs_is_named(tab, served):
    page = tab(served)
    for epsilon, delta in (("1", "1e-5"), ("0.9", "1e-3")):
        page.fill("#pin-epsilon", epsilon)
        page.fill("#pin-delta", delta)
        page.click("#pin-pair")
    settle(page)
    assert [page.input_value(f"#pin-{field}") for field in ("name", "epsilon", "delta")] == ["", "", ""]
    assert psidp.psi_from_epsilon_delta(1, 1e-5) < psidp.psi_from_epsilon_delta(0.9, 1e-3)
    assert "A (1, 1e-5)) is the most private" in page.inner_text("#pins-order").replace("((", "(")
    styles = page.evaluate("""() => [0, 1].map((i) => document.querySelector(`#roc .pinned.p${i}`))
      .map(getComputedStyle).map((style) => style.stroke + style.strokeDasharray)""")
    assert len(set(styles)) == 2
    page.fill("#pin-delta", "2")
    page.click("#pin-pair")
    expect(page.locator("#pin-refusal")).to_contain_text("delta in (0, 1)")


def test_a_pin_that_is_named_as_its_letter_is_named_once(tab, served):
    page = tab(served)
    page.fill("#pin-epsilon", "1")
    page.fill("#pin-delta", "1e-5")
    page.fill("#pin-name", "A")
    page.press("#pin-name", "Enter")
    settle(page)
    psi = f"{psidp.psi_from_epsilon_delta(1, 1e-5):.4g}"
    assert page.inner_text("#pins li span") == f"A ψ = {psi}"
    assert page.inner_text("#pins-order").startswith(f"More private to the left: A with ψ = {psi} < this page")


def test_a_score_file_with_decimal_commas_is_read_right_and_a_small_one_is_warned_of(tab, served):
    page = tab(f"{served}#psi=3")
    text = scores_csv(0.3, n=40).replace(",", ";").replace(".", ",")
    upload(page, "klein.csv", text)
    expect(page.locator("#scores-note")).to_contain_text("no contradiction")
    expect(page.locator("#scores-note")).to_contain_text("Small file")
    expect(page.locator("#scores-note")).to_have_class(re.compile("warn"))
    plain = tab(f"{served}#psi=3")
    upload(plain, "klein.csv", scores_csv(0.3, n=40))
    expect(plain.locator("#scores-note")).to_contain_text("no contradiction")
    assert plain.inner_text("#scores-note") == page.inner_text("#scores-note")
    upload(plain, "mixed.csv", "score,member\n0,1,1\n")
    expect(plain.locator("#scores-note")).to_contain_text("row 2 must hold a number and 1 or 0")


def test_exported_pictures_are_light_and_have_title_legend_and_psi(tab, served, tmp_path):
    page = tab(f"{served}#psi=2&pin=0.5:clinic", color_scheme="dark")
    for picture in ("densities", "roc", "profile", "composition", "strip", "people"):
        page.select_option("#picture", picture)
        with page.expect_download() as waiting:
            page.click("#export-svg")
        waiting.value.save_as(tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text()
        words = [e.text for e in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
        assert words[1] == "ψ = 2, per person"
        assert len(words[0]) > 15
        assert picture in ("composition", "strip", "people") or any("clinic" in (each or "") for each in words)
        assert "rgb(29, 32, 37)" not in text, "no colour of the dark theme"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("saved", [False, True], ids=["served", "saved"])
def test_a_saved_copy_opens_with_what_was_shown(tab, served, tmp_path, saved):
    (tmp_path / "explorer.html").write_text(standalone_page(), encoding="utf-8")
    page = tab(((tmp_path / "explorer.html").as_uri() if saved else served) + '#psi=0.7&unit=a"b')
    page.fill("#epsilon", "1")
    settle(page)
    with page.expect_download() as waiting:
        page.click("#export-page")
    waiting.value.save_as(tmp_path / "copy.html")
    state = unescape(re.search(r'data-state="([^"]*)"', (tmp_path / "copy.html").read_text())[1])
    assert parse_qs(state)["unit"] == ['a"b']
    copy = tab((tmp_path / "copy.html").as_uri(), offline=True)
    for name in ("psi", "epsilon", "delta", "unit"):
        assert copy.input_value(f"#{name}") == page.input_value(f"#{name}")


def test_a_saved_page_makes_the_cards_first_page(tab, tmp_path):
    (tmp_path / "explorer.html").write_text(standalone_page(), encoding="utf-8")
    page = tab((tmp_path / "explorer.html").as_uri() + "#psi=0.5&unit=<b>patient", offline=True)
    with page.expect_download() as waiting:
        page.click("#export-card")
    waiting.value.save_as(tmp_path / "card.html")
    text = (tmp_path / "card.html").read_text()
    assert "right at most 599 times in 1,000" in text
    assert "one &lt;b&gt;patient" in text
    assert "<script" not in text


@pytest.mark.parametrize("state", ["psi=2", "psi=1&pin=0.5:clinic&pin=2:old&pin=3:x&pin=1:y"])
def test_the_page_prints_on_two_pages(tab, served, state):
    pdf = tab(f"{served}#{state}").pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2


def test_known_deployments_stand_in_order_with_their_sources(tab, served):
    page = tab(f"{served}#psi=1")
    rows = page.locator("#known tbody tr")
    shown = [float(text) for text in page.locator("#known tbody td:nth-child(5)").all_inner_texts()]
    assert len(shown) == len(deployments()) + 1
    assert shown == sorted(shown)
    page.fill("#psi", "5")
    settle(page)
    assert rows.nth(sum(d.guarantee.psi < 5 for d in deployments())).inner_text().startswith("the ψ on this page")
    for d in deployments():
        assert page.locator(f"#known a[href='{d.source}']", has_text=d.name).count() == 1
        assert d.trust in ("central", "local")
