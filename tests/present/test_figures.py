"""Figures show what the mathematics says: their data are read back from the charts and compared."""

import datetime
import json
import sys
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import norm

import psidp
from psidp.cli import main
from psidp.errors import MissingExtraError
from psidp.present import figures, palette
from psidp.present.figures.files import to_html
from psidp.present.figures.paper import PAPER
from psidp.present.paper_experiment import experiment
from psidp.tables.series import Published

EVIL = '<script>alert(\'&"1")</script>'


def rows(chart):
    """Every row of data in a chart, wherever it is nested."""
    found, stack = [], [chart.to_dict()]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            found += part.get("values", []) if isinstance(part.get("values"), list) else []
            stack += [value for name, value in part.items() if name != "values"]
        elif isinstance(part, list):
            stack += part
    return [row for row in found if isinstance(row, dict)]


def series(chart, kind, y="upper"):
    chosen = [row for row in rows(chart) if row.get("kind") == kind and y in row]
    return np.array([row["x"] for row in chosen]), np.array([row[y] for row in chosen])


def test_figure_1_has_the_privacy_loss_at_its_real_mean():
    chart = figures.paper_figure(1)
    for kind, mean in (("output on D", -2.0), ("output on D'", 2.0), ("privacy loss", 2.0)):
        x, y = series(chart, kind)
        assert y == pytest.approx(norm.pdf(x, mean, 2.0), rel=1e-12)
        assert x[np.argmax(y)] == pytest.approx(mean, abs=0.05)


def test_figure_2_has_the_four_rates_of_its_cut_off():
    chart = figures.paper_figure(2)
    wanted = {"TP": norm.cdf(1.5), "FP": norm.cdf(-0.5), "TN": norm.cdf(0.5), "FN": norm.cdf(-1.5)}
    for name, rate in wanted.items():
        kind = f"{name}, rate {rate:.3f}"
        x, y = series(chart, kind, "y")
        assert np.trapezoid(y, x) == pytest.approx(rate, abs=2e-4)  # four sigma of tail are cut off
        assert (x.min() >= -1.0) if name in ("TP", "FP") else (x.max() <= -1.0)


def test_figure_3_is_the_real_roc_curve_symmetric_about_the_antidiagonal():
    x, y = series(figures.paper_figure(3), "ROC curve")
    assert y == pytest.approx(norm.cdf(1.0 + norm.ppf(x)), abs=1e-12)
    assert np.interp(1.0 - y, x, y) == pytest.approx(1.0 - x, abs=2e-3)
    assert any(row.get("text") == "AUC = 0.7602" for row in rows(figures.paper_figure(3)))


def test_figure_4_has_a_tangent_with_slope_e_and_intercept_delta():
    chart = figures.paper_figure(4)
    x, y = series(chart, "tangent")
    ends = np.unique(np.column_stack([x, y]), axis=0)
    slope = (ends[-1, 1] - ends[0, 1]) / (ends[-1, 0] - ends[0, 0])
    assert slope == pytest.approx(np.e, rel=1e-12)
    assert ends[0, 1] == pytest.approx(psidp.delta_from_psi(1.0, 1.0), rel=1e-12)
    fpr, tpr = series(chart, "ROC curve")
    assert np.all(tpr <= ends[0, 1] + slope * fpr + 1e-12), "a tangent lies above the curve"


def test_figure_5_leaves_the_axis_at_kappa_and_joins_the_curve():
    chart = figures.paper_figure(5)
    x, y = series(chart, "failed mechanism")
    own_x, own = series(chart, "its own curve")
    assert y[x == 0.0] == pytest.approx(0.2)
    assert y == pytest.approx(psidp.theory.failed_roc(1.0, 0.2, x), abs=1e-15)
    assert own == pytest.approx(norm.cdf(1.0 + norm.ppf(own_x)), abs=1e-12)
    assert np.all(y >= own - 1e-12)


@pytest.mark.parametrize(("figure", "alpha"), [(6, 1.9), (7, 6.0)])
def test_figures_6_and_7_are_the_experiment_and_say_their_true_order(figure, alpha):
    chart, table = figures.paper_figure(figure), experiment(figure)
    names = ("privacy profile (exact)", "improved RDP", "standard RDP")
    for name, road in zip(names, ("privacy_profile", "improved_rdp", "standard_rdp"), strict=True):
        x, y = series(chart, name)
        wanted = np.interp(x, table["psi"], table[road])
        assert y == pytest.approx(wanted, rel=1e-12)
        assert np.isin(table["psi"], x).all()
    assert f"alpha = {alpha:g}" in json.dumps(chart.to_dict()["title"])


def test_the_paper_draws_itself_in_every_format(tmp_path):
    for number in PAPER:
        png = figures.save(figures.paper_figure(number), tmp_path / f"{number}.png").read_bytes()
        assert png.startswith(b"\x89PNG")
        assert len(png) > 20_000
    assert figures.save(figures.paper_figure(3), tmp_path / "3.pdf").read_bytes().startswith(b"%PDF")
    svg = figures.save(figures.paper_figure(6), tmp_path / "6.svg").read_text()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    with pytest.raises(ValueError, match=r"must end in \.svg"):
        figures.save(figures.paper_figure(3), tmp_path / "3.gif")
    with pytest.raises(ValueError, match="figure must be in 1"):
        figures.paper_figure(8)


@pytest.mark.parametrize("g", [psidp.Guarantee(0.5), psidp.Guarantee(2.0, 1e-3)], ids=str)
def test_curves_of_a_guarantee_are_its_own(g):
    name = figures.rates.label(g)
    x, y = series(figures.roc(g), name)
    assert y == pytest.approx(g.roc(x), abs=1e-15)
    x, y = series(figures.tradeoff(g), name)
    assert y == pytest.approx(g.tradeoff(x), abs=1e-15)
    x, y = series(figures.profile(g), name)
    assert y == pytest.approx(g.delta(x), rel=1e-12)


def test_on_probit_axes_a_gaussian_mechanism_is_a_straight_line():
    x, y = series(figures.roc({"g": psidp.Guarantee(1.5)}, axes="probit"), "g")
    inner = np.abs(y) < 3.5
    assert y[inner] - x[inner] == pytest.approx(np.full(inner.sum(), 1.5), abs=1e-9)


@dataclass
class Band:
    lower: np.ndarray
    upper: np.ndarray


class Uncertain:
    """A curve of which only intervals are known."""

    def roc(self, fpr):
        middle = np.asarray(psidp.tpr_from_psi(1.0, fpr))
        return Band(middle * 0.9, np.minimum(middle * 1.1, 1.0))

    def tradeoff(self, fpr):
        middle = np.asarray(psidp.fnr_from_psi(1.0, fpr))
        return Band(middle * 0.9, middle)

    def delta(self, epsilon):
        middle = np.asarray(psidp.delta_from_psi(1.0, epsilon))
        return Band(middle * 0.5, middle)


@pytest.mark.parametrize("figure", [figures.roc, figures.tradeoff, figures.profile])
def test_intervals_are_drawn_as_bands(figure):
    chart = figure({"run": Uncertain()})
    assert '"type": "area"' in json.dumps(chart.to_dict())
    lower, upper = series(chart, "run", "lower")[1], series(chart, "run")[1]
    assert np.all(lower <= upper)
    assert np.any(lower < upper)
    assert '"type": "area"' not in json.dumps(figure(psidp.Guarantee(1.0)).to_dict())


def test_an_accounted_run_is_drawn_between_its_proved_sides_and_draws_itself():
    curve = psidp.account(psidp.DPSGD(1.0, 0.02, 500))
    chart = figures.roc({"run": curve})
    (x, upper), (_, lower) = series(chart, "run"), series(chart, "run", "lower")
    some = slice(3, -3, 6)
    assert upper[some] == pytest.approx(curve.roc(x[some]).upper, rel=1e-9)
    assert np.all(lower <= upper)
    x, upper = series(figures.profile({"run": curve}), "run")
    assert upper[:40] == pytest.approx(curve.delta(x[:40]).upper, rel=1e-9)
    assert curve._repr_mimebundle_()["image/svg+xml"].startswith("<svg")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["roc"], "one to four mechanisms, got 0"),
        (["pie", "psi=1"], "the figure must be paper, conversions or one of"),
        (["loss", "psi=1", "psi=2"], "exactly one Gaussian mechanism, got psi=1, psi=2"),
        (["roc", "noise_multiplier=1,steps=3"], "a run must read"),
        (["roc", "psi=-1"], "psi (sensitivity index Delta/sigma) must be in [0, inf)"),
    ],
)
def test_psidp_figures_refuses_in_a_sentence(monkeypatch, capsys, tmp_path, words, sentence):
    monkeypatch.setattr(sys, "argv", ["psidp", "figures", *words, "-o", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err


def test_psidp_figures_writes_a_file_or_a_directory(monkeypatch, capsys, tmp_path):
    for words, made in {
        ("profile", "psi=1", "noise_multiplier=1,sampling_rate=0.01,steps=100", "-o", "two.svg"): ["two.svg"],
        ("conversions", "-o", "many", "--format", "json"): ["many/conversions.json"],
    }.items():
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["psidp", "figures", *words])
        with pytest.raises(SystemExit):
            main.main()
        assert capsys.readouterr().out.split() == made
        assert all((tmp_path / name).stat().st_size > 1000 for name in made)


def test_densities_and_loss_say_their_numbers():
    chart = figures.densities(psidp.Guarantee(1.0), threshold=1.5)
    assert any(row.get("kind") == f"TP, rate {norm.cdf(-0.5):.3f}" for row in rows(chart))
    x, y = series(figures.loss(psidp.Guarantee(2.0), epsilon=3.0), "loss", "y")
    assert y == pytest.approx(norm.pdf(x, 2.0, 2.0), rel=1e-12)
    with pytest.raises(ValueError, match="psi must be above 0"):
        figures.loss(psidp.Guarantee(0.0))


def test_conversions_draw_the_best_order_or_the_one_asked_for():
    x, y = series(figures.conversions(1e-5), "improved RDP, best order")
    assert y == pytest.approx(psidp.theory.epsilon_via_rdp(x, 1e-5), rel=1e-12)
    x, y = series(figures.conversions(1e-5, alpha=4.0), "standard RDP, alpha = 4")
    assert y == pytest.approx(psidp.epsilon_from_rdp(psidp.rho_from_psi(x, 4.0), 4.0, 1e-5, "standard"), rel=1e-12)


def test_a_comparison_orders_and_measures():
    chart = figures.comparison({"b": psidp.Guarantee(1.5), "a": psidp.Guarantee(1.0)})
    cell = next(row for row in rows(chart) if row.get("from") == "a" and row.get("to") == "b")
    assert cell["value"] == pytest.approx(psidp.theory.divergence(1.0, 1.5))
    with pytest.raises(ValueError, match="two to four"):
        figures.comparison({"a": psidp.Guarantee(1.0)})


@dataclass
class Audit:
    psi: float
    confidence: float = 0.95
    kappa: float = 0.0

    def roc(self, fpr):
        class Seen:
            tpr = np.asarray(psidp.tpr_from_psi(1.0, fpr))
            lower, upper = tpr * 0.8, np.minimum(tpr * 1.2, 1.0)

        return Seen


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(("found", "broken"), [(0.8, False), (1.2, True)])
def test_an_audit_above_the_claim_is_drawn_red(found, broken, scale):
    text = json.dumps(figures.claim_and_audit(psidp.Guarantee(1.0), Audit(found), scale=scale).to_dict())
    assert (palette.LIGHT["bad"] in text) is broken
    assert ("the promise is broken" in text) is broken


@dataclass
class Entry:
    time: str
    psi: float
    state: str = "spent"
    purpose: str = ""


def test_a_real_audit_is_drawn_over_its_claim_and_draws_itself():
    rng = np.random.default_rng(2)
    scores = rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)
    for claim in (psidp.Guarantee(0.5), psidp.Guarantee(1.2), None):
        result = psidp.audit(*scores, claimed=claim, seed=1)
        chart = figures.claim_and_audit(claim, result)
        x, tpr = series(chart, "attack")
        assert np.all(np.diff(tpr[: len(x) // 2]) >= 0)
        assert ("the promise is broken" in json.dumps(chart.to_dict())) is (claim == psidp.Guarantee(0.5))
        assert result._repr_mimebundle_()["image/svg+xml"].startswith("<svg")


def test_spending_adds_up_in_squares_and_starts_again_after_a_reset():
    entries = [Entry("2026-01-01", 3.0), Entry("2026-01-02", 4.0), Entry("2026-01-03", 0.0, "reset")]
    chart = figures.spending([*entries, Entry("2026-01-04", 1.0, purpose=EVIL)], cap=6.0)
    assert [row["upper"] for row in rows(chart) if row.get("kind") == "spent"] == [9.0, 25.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="at least one entry"):
        figures.spending([], cap=1.0)


def test_spends_in_bursts_have_room_each_and_others_stand_at_their_time():
    burst = [Entry(f"2026-0{month}-01T12:00:{second:02}", 0.1) for month in (1, 5, 9) for second in range(20)]
    spread = [Entry(f"2026-{month:02}-01", 0.1) for month in range(1, 13)]
    seconds = [Entry(f"2026-01-01T12:00:{second:02}", 0.1) for second in range(20)]
    for entries, bursts in ((burst, True), (spread, False), (seconds, False), ([spread[0]] * 3, True)):
        chart = figures.spending(entries, cap=2.0)
        places = [row["x"] for row in rows(chart) if row.get("kind") == "spent"]
        assert (places == list(range(len(entries)))) is bursts
        assert ("2026-01-01 12:00" in json.dumps(chart.to_dict())) is (entries is burst)


def test_a_real_ledgers_spending_is_drawn(tmp_path):
    ledger = psidp.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.open("survey", psi=2.0, unit="person", actor="us", purpose="test", adjacency="add-remove")
    mechanism = psidp.GaussianMechanism(sensitivity=1.0, sigma=2.0, unit="person", ledger=ledger, budget="survey")
    for _ in range(2):
        mechanism.release(1.0, purpose="<b>")
    chart = figures.spending(ledger.entries("survey"), cap=2.0)
    assert [row["upper"] for row in rows(chart) if row.get("kind") == "spent"][-1] == pytest.approx(0.5)
    ledger.dispose()


def test_names_are_escaped_in_svg_and_in_html(tmp_path):
    chart = figures.roc({EVIL: psidp.Guarantee(1.0)})
    svg = figures.save(chart, tmp_path / "evil.svg").read_text()
    assert "<script" not in svg
    assert EVIL in "".join(ElementTree.fromstring(svg).itertext())
    page = to_html(chart)
    assert EVIL not in page
    assert "<script>alert" not in page
    assert "\\u003cscript>alert" in page


def test_the_html_draws_itself_offline(chromium, tmp_path):
    figures.save(figures.roc({EVIL: psidp.Guarantee(1.0)}), tmp_path / "roc.html")
    context = chromium.new_context(offline=True)
    page, troubles = context.new_page(), []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.goto((tmp_path / "roc.html").as_uri())
    page.wait_for_selector("#figure canvas, #figure svg")
    context.close()
    assert troubles == []


def test_a_figure_shows_at_most_four_and_refuses_unknown_axes():
    with pytest.raises(ValueError, match="one to four mechanisms, got 5"):
        figures.roc({str(i): psidp.Guarantee(float(i)) for i in range(5)})
    with pytest.raises(ValueError, match='axes must be "linear" or "probit"'):
        figures.roc(psidp.Guarantee(1.0), axes="polar")
    with pytest.raises(ValueError, match='scale must be "linear" or "log"'):
        figures.claim_and_audit(psidp.Guarantee(1.0), Audit(1.0), scale="cubic")
    with pytest.raises(ValueError, match="kappa = 0"):
        figures.tangent(psidp.Guarantee(1.0, 0.1))


def test_without_altair_the_refusal_names_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'psidp\[plot\]'"):
        figures.roc(psidp.Guarantee(1.0))


def test_objects_draw_themselves_in_a_notebook(monkeypatch):
    g = psidp.Guarantee(1.0, unit=EVIL)
    shown = g._repr_mimebundle_()
    assert shown["text/plain"] == repr(g)
    assert shown["image/svg+xml"].startswith("<svg")
    assert shown["text/html"].startswith("<svg")
    assert "<script" not in shown["text/html"]
    monkeypatch.setitem(sys.modules, "altair", None)
    assert set(g._repr_mimebundle_()) == {"text/plain", "text/html"}


@pytest.mark.parametrize("nonsense", [3, psidp.DPSGD(1.0, 0.01, 10), {"a": psidp.Guarantee(1.0), "b": None}, [1]])
def test_what_is_no_curve_is_refused_in_a_sentence(nonsense):
    with pytest.raises(TypeError, match="a figure must show a Guarantee or a PrivacyCurve"):
        psidp.figures.roc(nonsense)


def test_a_stream_is_drawn_as_published_with_its_bands():
    counter = psidp.Counter(psi=0.5, periods=12, at_most=1).open()
    for period in range(1, 6):
        counter.publish(period, 100)
    points = counter.series()
    shown = [row for row in rows(figures.series(points, "Signups")) if "lower" in row]
    assert [(r["x"], r["value"], r["lower"], r["upper"]) for r in shown[:5]] == [
        (p.period, p.value, p.lower, p.upper) for p in points
    ]
    with pytest.raises(ValueError, match="at least one published period"):
        figures.series([])


def test_a_picture_of_a_capped_stream_says_so_and_has_the_confidence_of_its_bands():
    counter = psidp.Counter(psi=0.5, periods=3, at_most=1, confidence=0.8).open()
    point = counter.publish(1, 100)
    plain = figures.series([point]).to_dict()
    assert plain["title"]["subtitle"] == ["each band holds its number with chance 0.8"]
    day = datetime.date(2026, 1, 5)
    capped = [Published(day, (g,), "count", *point[1:], flag="capped") for g in "ab"]
    drawn = figures.series(capped)
    said = drawn.to_dict()
    assert said["title"]["subtitle"][0] == "each band holds what counts with chance 0.8"
    assert said["title"]["subtitle"][1].startswith("not of all rows")
    assert said["layer"][0]["encoding"]["y"]["title"] == "count, of what counts under the cap"
    assert {row["kind"] for row in rows(drawn) if "lower" in row} == {"a", "b"}
