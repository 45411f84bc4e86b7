"""The command line: the same numbers as Python, refusals as one sentence with exit code 2, never a traceback."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import psidp
from psidp.cli import tables
from psidp.present import paper_experiment
from psidp.present.words import sentences, statements

NOTIONS = {
    "--psi 1": 1.0,
    "--epsilon 4.377178095681235 --delta 1e-5": 1.0,
    "--sensitivity 3 --sigma 3": 1.0,
    "--auc 0.7602499389065234": 1.0,
    "--advantage 0.38292492254802624": 1.0,
    "--tpr 0.8413447460685429 --fpr 0.5": 1.0,
    "--alpha 2 --rho 1": 1.0,
    "--zcdp 0.5": 1.0,
}


@pytest.mark.parametrize("flags", NOTIONS)
def test_explain_and_convert_take_every_notion(run, flags):
    code, out, _ = run("explain", *flags.split(), "--json")
    assert code == 0
    assert json.loads(out)["guarantee"]["psi"] == pytest.approx(NOTIONS[flags], rel=1e-12)
    code, out, _ = run("convert", *flags.split(), "--to", "psi")
    assert (code, float(out)) == (0, pytest.approx(1.0, rel=1e-12))


def test_explain_shows_every_statement_and_three_sentences(run):
    code, out, _ = run("explain", "--epsilon", "1", "--delta", "1e-5", "--unit", "patient")
    assert code == 0
    g = psidp.Guarantee.gaussian(epsilon=1, delta=1e-5, unit="patient")
    for row in statements(g):
        assert row.quantity in out
        assert row.shown in out
    words = " ".join(out.split())
    assert len(sentences(g)) == 3
    for sentence in sentences(g):
        assert sentence in words


def test_the_sentences_count_people_and_never_understate(run):
    coin, careful, odds = sentences(psidp.Guarantee(1.0))
    assert "right at most 692 times in 1,000" in coin  # Phi(1/2) = 0.69146
    assert "finds at most 93 of 1,000" in careful  # R(0.01) = 0.09236
    assert "odds grow 16.9 times at most" in odds  # exp(1/2 + 2.3263) = 16.88
    assert "fails outright" in sentences(psidp.Guarantee(1.0, kappa=1e-6))[3]


@pytest.mark.parametrize(
    ("target", "at", "expected"),
    [
        ("epsilon", "delta=1e-5", psidp.epsilon_from_psi(1.0, 1e-5)),
        ("delta", "epsilon=1", psidp.delta_from_psi(1.0, 1.0)),
        ("log_delta", "epsilon=100", psidp.log_delta_from_psi(1.0, 100.0)),
        ("tpr", "fpr=0.01", psidp.tpr_from_psi(1.0, 0.01)),
        ("fnr", "fpr=0.01", psidp.fnr_from_psi(1.0, 0.01)),
        ("rho", "alpha=3", psidp.rho_from_psi(1.0, 3.0)),
        ("sigma", "sensitivity=5", 5.0),
        ("auc", "fpr=0.5", psidp.auc_from_psi(1.0)),
        ("advantage", "fpr=0.5", psidp.advantage_from_psi(1.0)),
        ("zcdp", "fpr=0.5", psidp.zcdp_from_psi(1.0)),
    ],
)
def test_convert_prints_the_number_python_gives_with_every_digit(run, target, at, expected):
    code, out, _ = run("convert", "--psi", "1", "--to", target, "--at", at)
    assert (code, float(out)) == (0, expected)


def test_calibrate_answers_a_sigma_that_keeps_the_promise(run):
    code, out, _ = run("calibrate", "--sensitivity", "2", "--epsilon", "1", "--delta", "1e-5", "--json")
    answer = json.loads(out)
    assert code == 0
    assert psidp.Guarantee.gaussian(sensitivity=2, sigma=answer["sigma"]).epsilon(1e-5) <= 1.0 + 1e-13


def test_compare_orders_by_privacy_and_measures_the_steps(run):
    code, out, _ = run("compare", "psi=2", "epsilon=1,delta=1e-5", "psi=1", "--json")
    rows = json.loads(out)["mechanisms"]
    assert code == 0
    assert [row["mechanism"] for row in rows] == ["epsilon=1,delta=1e-5", "psi=1", "psi=2"]
    assert rows[1]["divergence_to_next"] == pytest.approx(psidp.theory.divergence(1.0, 2.0))
    assert rows[2]["divergence_to_next"] is None
    code, out, _ = run("compare", "psi=2", "psi=1")
    assert code == 0
    assert out.index("psi=1") < out.index("psi=2")


@pytest.mark.parametrize("figure", [6, 7])
def test_paper_reproduces_the_published_columns(run, figure, tmp_path):
    file = tmp_path / "figure.csv"
    code, out, _ = run("paper", "--figure", str(figure), "--csv", str(file))
    assert code == 0
    assert "agree to a relative" in out
    table = np.genfromtxt(file, delimiter=",", names=True)
    for road in paper_experiment.ROADS:
        assert table[road] == pytest.approx(table[f"published_{road}"], rel=1e-12)
    assert (table["improved_rdp_optimal"] >= table["privacy_profile"]).all()
    assert (table["improved_rdp_optimal"] <= table["improved_rdp"] * (1 + 1e-12)).all()
    assert table["alpha_improved"].max() <= 64
    code, out, _ = run("paper", "--figure", str(figure), "--csv", "-")
    assert out == file.read_text()
    code, out, _ = run("paper", "--figure", str(figure), "--json")
    assert json.loads(out)["columns"]["psi"][0] == 0.1


def test_the_shipped_golden_numbers_are_those_of_the_tests():
    for figure in paper_experiment.FIGURES:
        shipped = paper_experiment.files("psidp.present").joinpath("golden", f"figure_{figure}.csv").read_text()
        reference = Path(__file__).parent.parent / "reference" / f"figure_{figure}.csv"
        assert reference.read_text() == shipped


def test_json_has_no_infinity_but_says_inf(run):
    code, out, _ = run("convert", "--psi", "1", "--to", "epsilon", "--at", "delta=0", "--json")
    assert (code, json.loads(out)["epsilon"]) == (0, "inf")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("explain --psi nan", "must be in [0, inf), got psi=nan. It is not a number: look where it was computed."),
        ("explain --psi -1", "psi (sensitivity index Delta/sigma) must be in [0, inf), got psi=-1.0. Typical: 0.1 to"),
        ("explain --psi inf", "got psi=inf."),
        (
            "explain --sensitivity 1 --sigma 0",
            "sigma (standard deviation of the noise) must be in (0, inf), got sigma=0.0.",
        ),
        ("explain --epsilon 1", "zcdp; got epsilon. Give delta as well."),
        ("explain", "exactly one notion must be given"),
        ("explain --psi 1 --auc 0.7", "exactly one notion must be given"),
        ("explain --auc 1", "auc=1.0 allows any psi: it promises no privacy."),
        ("explain --auc 0.4", "auc (area under the ROC curve) must be in [0.5, 1], got auc=0.4."),
        ("explain --tpr 0.1 --fpr 0.2", "tpr must be at least fpr"),
        ("explain --psi 1 --adjacency both", 'adjacency must be "add-remove", "replace-one" or "zero-out"'),
        ("convert --psi 1 --to epsilon", "epsilon depends on delta: add --at delta=NUMBER."),
        ("convert --psi 1 --to colour", "--to must be one of"),
        (
            "convert --psi 1 --to tpr --at fpr=2",
            "fpr (false positive rate of the attack) must be in [0, 1], got fpr=2.0.",
        ),
        ("convert --psi 1 --to tpr --at mood=2", "--at must read name=number"),
        ("convert --psi 1 --to tpr --at fpr=low", "--at must read name=number, such as fpr=0.01, got 'fpr=low'."),
        ("convert --psi 1 --to tpr --at fpr", "--at must read name=number, such as fpr=0.01, got 'fpr'."),
        ("convert --psi 1 --to tpr --at fpr=0.1 --at fpr=0.2", "--at must give fpr once"),
        ("calibrate --steps 9 --sampling-rate 0.1 --epsilon 1 --delta 1e-5 --auc 0.6", "or advantage, got auc."),
        (
            "calibrate --steps 9 --sampling-rate 0.1 --epsilon 1 --delta 1e-5 --adjacency replace-one --group 2",
            "group (records of one unit) must be 1 unless the sampling is Poisson, add-remove",
        ),
        (
            "calibrate --steps 9 --epochs 2 --sampling-rate 0.1 --epsilon 1 --delta 1e-5",
            "give steps or epochs, not both",
        ),
        ("calibrate --batches 9 --steps 2 --epsilon 1 --delta 1e-5", "does not go with steps, got both."),
        ("calibrate --sensitivity 1 --group 2 --psi 1", "calibrate needs --sensitivity for a query, or --steps"),
        (
            "account --noise-multiplier 1 --steps 2 --epochs 2 --sampling-rate 0.1",
            "give --steps or --epochs, not both.",
        ),
        (
            "account --noise-multiplier 1 --sampling-rate 0.1 --batch-size 2 --steps 2",
            "--sampling-rate or --batch-size",
        ),
        ("account --noise-multiplier 1 --sampling-rate 0.1", "a run needs steps or epochs."),
        ("account --noise-multiplier 1 --batches 5 --steps 2", "does not go with steps, got both."),
        ("account --noise-multiplier 1 --batches 5 --group 2", "does not go with group, got both."),
        ("account --noise-multiplier 1 --batches 5 --epochs 1.5", "epochs must be a whole number of at least 1"),
        ("account --noise-multiplier 1 --batches 5 --compare", "compare must be asked of a DPSGD run"),
        ("calibrate --sensitivity 1 --psi 1 --kappa 1e-9", "kappa (probability of outright failure) belongs to a run"),
        ("compare psi=1,psi=2", "a mechanism must name psi once, got 'psi=1,psi=2'."),
        ("figures paper psi=1", "paper shows no mechanisms of yours, got psi=1."),
        ("figures roc psi=1 -o roc.gif", "the output must be a folder or end in .svg"),
        ("figures roc noise_multiplier=a,sampling_rate=0.1,steps=2", "a run must read noise_multiplier=1,"),
        ("explore --port 99999", "port must be in [0, 65535], got port=99999. 0 takes a free one."),
        ("explore --host 192.0.2.1 --beyond-loopback", "192.0.2.1:8347 cannot be listened on"),
        ("calibrate --sensitivity -1 --psi 1", "sensitivity (L2 sensitivity of the query) must be in [0, inf)"),
        ("calibrate --sensitivity 1 --psi 0", "psi must be above 0 to choose sigma"),
        ("compare psi", "a mechanism must read name=number"),
        ("compare psi=one", "a mechanism must read name=number"),
        ("compare [bold]=1", "exactly one notion must be given"),
        ("paper --figure 5", "figure must be 6 or 7, got figure=5."),
        (
            "paper --csv no/such/folder/file.csv",
            "'no/such/folder/file.csv' cannot be used: No such file or directory. Check the path",
        ),
        ("ledger head no/such/ledger.db", "there is no ledger at no/such/ledger.db."),
        ("explain --psi abc", "'abc'"),
        ("nonsense", "No such command"),
    ],
)
def test_a_wrong_argument_gets_its_sentence_and_exit_code_2(run, words, sentence):
    code, out, err = run(*words.split())
    assert code == 2
    assert sentence in " ".join(err.split())
    assert "Traceback" not in out + err


@pytest.mark.parametrize("words", [(), ("release",), ("ledger",)])
def test_help_lists_every_command_with_a_whole_sentence(run, words):
    code, out, _ = run(*words, "--help")
    assert code == 0
    listed = out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


def test_the_version_is_told(run):
    assert run("--version")[:2] == (0, f"psidp {version('psidp')}\n")


def test_psi_beyond_all_measure_is_said_in_words_and_not_as_inf():
    assert "inf" not in " ".join(sentences(psidp.Guarantee(100.0)))
    assert "from becoming certainty" in sentences(psidp.Guarantee(100.0))[2]


def test_a_narrow_terminal_shortens_no_number(run, monkeypatch):
    monkeypatch.setattr(tables.console, "width", 30)
    _, out, _ = run("compare", "psi=1", "psi=2")
    assert "…" not in out


def test_a_title_stands_on_one_line(run):
    _, out, _ = run("explain", "--psi", "100")
    assert "One mechanism, said in every way (add-remove, per record)" in out


def test_the_installed_command_answers_and_offers_completion():
    done = subprocess.run([sys.executable, "-m", "psidp", "--help"], capture_output=True, text=True, check=True)
    for command in ("explain", "convert", "calibrate", "compare", "paper", "notation", "--install-completion"):
        assert command in done.stdout


def test_the_demo_releases_three_times_refuses_a_fourth_and_goes_on_every_week(run, tmp_path):
    for _ in range(2):  # it can be repeated
        code, out, _ = run("demo", "--folder", tmp_path / "demo")
        assert code == 0
        for words in (
            "1. A table and a budget",
            "the very same",
            "oncology",
            "asthma",
            "this release needs 0.5",
            "6. A number that goes on",
            "2025-12-22",
            "7. Tables that agree",
            "A drill-down that costs nothing more",
            "coin",
        ):
            assert words in out
        assert "rare syndrome" not in out
    made = {path.name for path in (tmp_path / "demo").iterdir()}
    assert made >= {"visits.csv", "wards.csv", "wards_answer.csv", "plan.sql", "weekly.svg", "tables.svg", "ledger.db"}
