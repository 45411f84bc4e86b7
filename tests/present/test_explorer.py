"""The explorer, driven in a real Chromium as a person would: drag, type, pin, reload, save, play, drop a file."""

import json
import math
import re
import shlex

import numpy as np
import pytest
from playwright.sync_api import expect

import psidp
from present.explorer_page import drag, handle, number, place, rates, scores_csv, settle, share, upload
from psidp.present.formatting import per_thousand, up
from psidp.present.web.standalone import standalone_page

VIEWS = {
    "light": {"viewport": {"width": 1400, "height": 900}},
    "dark": {"viewport": {"width": 768, "height": 1024}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 780}},
}


def consistent(page):
    """All views tell of one mechanism: psi, epsilon and delta in the fields, the point on the ROC curve."""
    psi, epsilon, delta = (number(page, name) for name in ("psi", "epsilon", "delta"))
    assert delta == pytest.approx(psidp.delta_from_psi(psi, epsilon), rel=1e-3)
    fpr, tpr = rates(page)
    assert tpr == pytest.approx(psidp.tpr_from_psi(psi, fpr), abs=2e-3)
    assert [share(page, "fpr"), share(page, "tpr")] == pytest.approx([fpr, tpr], abs=1e-3)
    assert psi == pytest.approx(number(page, "sensitivity") / number(page, "sigma"), rel=1e-4)
    assert up(psidp.auc_from_psi(psi)) == page.inner_text("#fact-auc")


def test_dragging_the_threshold_moves_the_roc_point_and_leaves_the_pair_alone(tab, served):
    page = tab(served)
    before, pair = (*place(page, "roc-point"), *rates(page)), (place(page, "tangent"), place(page, "profile-dot"))
    drag(page, "threshold", -60, 0)
    after = (*place(page, "roc-point"), *rates(page))
    assert after[0] > before[0] + 5, "the point moves right"
    assert after[2] > before[2]
    assert (place(page, "tangent"), place(page, "profile-dot")) == pair
    assert number(page, "psi") == 1.0
    consistent(page)


def test_dragging_the_roc_point_moves_the_threshold(tab, served):
    page = tab(served)
    before = place(page, "threshold")[0]
    drag(page, "roc-point", 60, -40)
    assert place(page, "threshold")[0] < before - 5
    consistent(page)


@pytest.mark.parametrize("axes", ["linear", "probit"])
def test_the_point_follows_the_pointer_on_both_kinds_of_axes(tab, served, axes):
    page = tab(f"{served}#axes={axes}&threshold=0.5")
    target = np.add(place(page, "roc-point"), (40, -40))
    drag(page, "roc-point", 40, -40)
    assert math.dist(place(page, "roc-point"), target) < 60
    consistent(page)


def test_dragging_the_tangent_changes_epsilon_and_delta_but_not_psi(tab, served):
    page = tab(served)
    delta = number(page, "delta")
    drag(page, "tangent", 0, -30)
    assert number(page, "delta") > delta
    assert number(page, "psi") == 1.0
    consistent(page)


def test_dragging_the_profile_dot_and_the_order(tab, served):
    page = tab(served)
    before = number(page, "epsilon")
    drag(page, "profile-dot", 80, 0)
    assert number(page, "epsilon") > before + 0.5
    consistent(page)
    page.click("#fold-renyi summary")
    said = page.inner_text("#renyi-note")
    drag(page, "order", 50, 0)
    assert page.inner_text("#renyi-note") != said


def test_dragging_the_blue_curve_changes_psi(tab, served):
    page = tab(served)
    drag(page, "psi", 70, 0)
    assert number(page, "psi") > 1.3
    consistent(page)


def test_typing_epsilon_makes_psi_follow(tab, served):
    page = tab(served)
    page.fill("#epsilon", "1")
    settle(page)
    assert number(page, "delta") == 1e-5
    assert number(page, "psi") == pytest.approx(psidp.psi_from_epsilon_delta(1.0, 1e-5), rel=1e-5)
    assert number(page, "sigma") == pytest.approx(1 / psidp.psi_from_epsilon_delta(1.0, 1e-5), rel=1e-5)
    consistent(page)


def test_what_is_typed_between_two_frames_stands_on_what_was_typed_before(tab, served):
    page = tab(served)
    page.evaluate("""() => {
      for (const [name, value] of [["delta", "1e-5"], ["epsilon", "1"]]) {
        const field = document.getElementById(name);
        field.focus();
        field.value = value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
      const key = () => new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true });
      for (let i = 0; i < 3; i += 1) document.querySelector("[data-handle=order]").dispatchEvent(key());
    }""")
    settle(page)
    assert number(page, "psi") == pytest.approx(psidp.psi_from_epsilon_delta(1.0, 1e-5), rel=1e-5)
    assert float(handle(page, "order").get_attribute("aria-valuenow")) == pytest.approx(5.3)
    consistent(page)


def test_typing_sigma_and_sensitivity_makes_psi_follow(tab, served):
    page = tab(served)
    page.fill("#sigma", "4")
    settle(page)
    assert number(page, "psi") == 0.25
    page.fill("#sensitivity", "8")
    settle(page)
    assert (number(page, "psi"), number(page, "sigma")) == (2.0, 4.0), "both were typed, so both stay"
    page.fill("#psi", "0.25")
    page.fill("#sensitivity", "16")
    settle(page)
    assert (number(page, "psi"), number(page, "sigma")) == (0.25, 64.0), "the locked one alone leaves psi alone"
    consistent(page)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("psi", "-1"),
        ("sigma", "nan"),
        ("delta", "2"),
        ("epsilon", ""),
        ("psi", "1,000"),
        ("psi", "40"),
        ("tpr", "2"),
        ("tpr", "0.5 %"),
    ],
)
def test_nonsense_is_refused_in_a_sentence_and_nothing_moves(tab, served, field, text):
    page = tab(served)
    page.fill(f"#{field}", text)
    settle(page)
    place = page.get_attribute(f"#{field}", "aria-describedby")
    name = field.upper() if field in ("tpr", "fpr") else field
    assert page.inner_text(f"#{place}").startswith((f"{name} (", f"{name} must be"))
    assert page.get_attribute(f"#{field}", "aria-invalid") == "true"
    below, beside = (page.locator(f"#{at}").bounding_box() for at in (place, field))
    assert abs(below["y"] - beside["y"]) < 150
    page.locator("h1").click()
    page.locator(f"#{field}").blur()
    settle(page)
    assert number(page, "psi") == 1.0
    assert page.inner_text(f"#{place}") == ""


def test_a_reloaded_link_shows_the_same_state(tab, served):
    page = tab(served)
    page.fill("#psi", "0.7")
    page.fill("#pin-name", "clinic")
    page.click("#pin")
    page.fill("#psi", "1.9")
    page.fill("#unit", "patient")
    page.check("#probit")
    drag(page, "threshold", 33, 0)
    page.wait_for_function("""() => new URLSearchParams(location.hash.slice(1)).get("threshold")
      === document.querySelector("[data-handle=threshold]").getAttribute("aria-valuenow")""")
    seen = lambda p: (p.url, p.inner_text("main"), *(p.input_value(f"#{n}") for n in ("psi", "epsilon", "delta")))  # noqa: E731
    again = tab(page.url)
    assert seen(again) == seen(page)
    assert "clinic" in again.inner_text("#pins")


def test_pins_are_compared_by_their_divergences_and_drawn(tab, served):
    page = tab(served)
    for psi in ("0.5", "1", "1.5", "2"):
        page.fill("#psi", psi)
        settle(page)
        page.click("#pin")
        settle(page)
    assert page.locator("#pin").is_disabled()
    cells = page.locator("#divergences tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells[2] == per_thousand(psidp.theory.divergence(1.0, 1.5))
    expect(page.locator("#roc path.pinned[d^=M]")).to_have_count(4)
    page.click("#pins li:first-child button")
    settle(page)
    expect(page.locator("#pins li")).to_have_count(3)


def test_the_people_add_up_and_follow_the_prior(tab, served):
    page = tab(served)
    before = page.inner_text("#ppv")
    page.locator("#prior").focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    settle(page)
    assert page.inner_text("#ppv") != before
    label = page.get_attribute("#people svg", "aria-label")
    total, tp, fp, rest = (int(n) for n in re.findall(r"\d+", label.replace("1,000", "")))
    assert total + rest == 1000
    assert tp <= total
    assert fp <= rest


def test_twenty_guesses_end_with_a_score_beside_the_best_one(tab, served):
    page = tab(f"{served}#psi=3")
    page.click("#game-start")
    for _ in range(20):
        output = float(re.search(r"output is (-?\d+\.\d\d)", page.inner_text("#game-score"))[1])
        page.click("#game-in" if output > 1.5 else "#game-out")
    said = page.inner_text("#game-score")
    score = int(re.search(r"right (\d+) of 20", said)[1])
    assert score >= 10  # the best attack's score is binomial(20, 0.933): below 10 with probability 1e-7
    assert "gets 18.7 on average" in said
    assert page.locator("#game-in").is_disabled()


def test_a_csv_of_scores_is_drawn_over_the_promise(tab, tmp_path):
    (tmp_path / "explorer.html").write_text(standalone_page(), encoding="utf-8")
    page = tab((tmp_path / "explorer.html").as_uri())
    upload(page, "attack.csv", scores_csv(1.0))
    expect(page.locator("#scores-note")).to_contain_text("AUC")
    auc = float(re.search(r"AUC (0\.\d+)", page.inner_text("#scores-note"))[1])
    assert auc == pytest.approx(psidp.auc_from_psi(1.0), abs=0.06)
    expect(page.locator("#roc path.audit[d^=M]")).to_have_count(1)
    page.click("#scores-clear")
    settle(page)
    expect(page.locator("#roc path.audit[d^=M]")).to_have_count(0)


def test_the_library_audits_what_is_dropped_and_says_when_the_promise_is_broken(tab, served):
    page = tab(f"{served}#psi=3")
    upload(page, "attack.csv", scores_csv(1.5, n=2000))
    expect(page.locator("#scores-note")).to_contain_text("no contradiction to the promise")
    proved = float(re.search(r"psi is at least ([\d.]+\d)", page.inner_text("#scores-note"))[1])
    assert 1.0 < proved < 1.6
    page.fill("#psi", "0.5")
    expect(page.locator("#scores-note")).to_contain_text("The promise is broken")
    expect(page.locator("#scores-note")).to_have_class(re.compile("bad"))


def test_a_training_run_is_accounted_by_the_library(tab, served):
    page = tab(served)
    page.click("#fold-training summary")
    page.fill("#steps", "500")
    page.click("#account")
    expect(page.locator("#training-note")).to_contain_text("both proved")
    curve = psidp.account(psidp.DPSGD(1.0, 0.01, 500))
    told = page.inner_text("#training-note")
    assert up(curve.epsilon(1e-5).upper) in told
    assert f"AUC of at most {up(curve.auc.upper)} and an advantage of at most {up(curve.advantage.upper)}" in told
    page.click("#training-use")
    settle(page)
    assert number(page, "psi") == pytest.approx(curve.guarantee(1e-10).psi, rel=1e-5)
    expect(page).to_have_url(re.compile("steps=500"))


def test_runs_with_correlated_noise_are_accounted_for_their_own_neighbours(tab, served):
    page = tab(f"{served}#run=bands&steps=2000")
    page.click("#fold-training summary")
    expect(page.locator("#epochs")).to_be_hidden()
    expect(page.locator("#training-kind")).to_contain_text("a record blanked with the number of records public (zero-o")
    page.click("#account")
    expect(page.locator("#training-note")).to_contain_text("add-remove, cyclic Poisson sampling")
    curve = psidp.account(psidp.BandMF(1.0, 0.01, 2000, bands=8))
    assert up(curve.epsilon(1e-5).upper) in page.inner_text("#training-note")
    page.select_option("#run", "fixed")
    expect(page.locator("#training-note")).to_have_text("")
    expect(page.locator("#sampling_rate")).to_be_hidden()
    page.fill("#epochs", "4")
    page.click("#account")
    expect(page.locator("#training-note")).to_contain_text("= 2 is the price of the whole run (zero-out, no sampling)")
    expect(page).to_have_url(re.compile("run=fixed.*epochs=4"))


def test_a_refused_training_run_says_the_librarys_sentence(tab, served):
    page = tab(served, expect_refusals=True)
    page.click("#fold-training summary")
    page.fill("#sampling_rate", "2")
    page.click("#account")
    expect(page.locator("#training-note")).to_contain_text("must be in [0, 1], got sampling_rate=2")


def test_a_bad_csv_is_refused_and_named_without_becoming_markup(tab, served):
    page = tab(served)
    name = "<img src=x onerror=alert(1)>.csv"
    upload(page, name, "score,member\n1,2\n")
    expect(page.locator("#scores-note")).to_contain_text("row 2")
    assert name in page.inner_text("#scores-note")
    expect(page.locator("#scores-note img")).to_have_count(0)


def test_the_saved_file_works_from_disk_without_any_network(tab, tmp_path):
    (tmp_path / "explorer.html").write_text(standalone_page(), encoding="utf-8")
    page = tab((tmp_path / "explorer.html").as_uri(), offline=True)
    drag(page, "threshold", -60, 0)
    consistent(page)
    page.fill("#delta", "1e-6")
    settle(page)
    consistent(page)
    page.click("#fold-training summary")
    assert page.locator("#account").is_disabled()
    page.fill("#steps", "500")
    page.locator("#steps").blur()
    settle(page)
    run = "psidp account --noise-multiplier 1 --sampling-rate 0.01 --steps 500 --delta 1e-5"
    assert "psidp explore" in page.inner_text("#training-note")
    assert run in page.inner_text("#training-note")
    page.select_option("#run", "fixed")
    expect(page.locator("#training-note")).to_contain_text(
        "psidp account --order fixed --noise-multiplier 1 --epochs 1 --"
    )
    assert "the second command below makes both" in page.inner_text("#card-note")
    upload(page, "my scores.csv", scores_csv(1.0))
    expect(page.locator("#scores-note")).to_contain_text("psidp audit 'my scores.csv' --claimed-psi")


def test_the_commands_on_the_page_say_all_that_it_shows_and_can_be_pasted(tab, served):
    page = tab(f"{served}#psi=2&unit=O'Neil family&sensitivity=3")
    assert page.inner_text("#card-note") == ""
    for line in page.inner_text("#command").splitlines():
        words = shlex.split(line)
        assert words[words.index("--unit") + 1] == "O'Neil family"
        assert words[words.index("--psi") + 1] == "2"
    card = shlex.split(page.inner_text("#command").splitlines()[1])
    assert (card[card.index("--sensitivity") + 1], card[card.index("--prior") + 1]) == ("3", "0.1")


def test_the_printed_page_keeps_the_numbers_and_leaves_out_what_is_only_for_hands(tab, served):
    page = tab(f"{served}#psi=2")
    page.emulate_media(media="print")
    assert page.locator("#psi").is_visible()
    for hidden in ("#game-start", "#export-svg", "#psi-range", "#theme", "#drop"):
        assert not page.locator(hidden).is_visible()


def test_names_never_become_markup(tab, served):
    evil = "<img src=x onerror=alert(1)>"
    page = tab(f"{served}#unit={evil}&pin=0.5:{evil}")
    assert evil in page.inner_text("#words")
    assert evil in page.inner_text("#pins")
    expect(page.locator("main img")).to_have_count(0)


def test_pictures_can_be_taken_away(tab, served, tmp_path):
    page = tab(f"{served}#pin=0.5:<b>&psi=2")
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        page.select_option("#picture", "roc")
        with page.expect_download() as waiting:
            page.click(f"#export-{kind}")
        waiting.value.save_as(tmp_path / f"roc.{kind}")
        assert (tmp_path / f"roc.{kind}").read_bytes().startswith(start)
    with page.expect_download() as waiting:
        page.click("#export-card")
    waiting.value.save_as(tmp_path / "card.html")
    assert "psi = 2" in (tmp_path / "card.html").read_text()


@pytest.mark.parametrize("view", VIEWS)
def test_screenshots_are_kept_and_nothing_overflows(tab, served, artefacts, view):
    page = tab(f"{served}#psi=1.2&pin=0.5:clinic&pin=2.1:old%20survey&threshold=1.6", **VIEWS[view])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=artefacts / f"explorer-{view}.png", full_page=True)
    assert json.loads(page.evaluate("JSON.stringify(document.documentElement.dataset.theme)")) in ("light", "dark")
