"""psidp account and calibrate on the command line: the same numbers as Python, refusals with exit code 2."""

import csv
import json

import pytest

import psidp

RUN = ["--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "1000"]


def test_account_prints_both_ends_in_full(run):
    code, out, _ = run("account", *RUN)
    interval = psidp.account(psidp.DPSGD(1.0, 0.01, 1000)).epsilon(1e-5)
    assert code == 0
    flat = " ".join(out.split())
    assert repr(interval.lower) in flat
    assert repr(interval.upper) in flat


def test_account_compares_and_says_in_words_which_road_understates(run):
    code, out, _ = run("account", *RUN, "--compare", "--kappa", "1e-10")
    flat = " ".join(out.split())
    assert code == 0
    assert "Understating the loss here: CLT for Poisson sampling." in flat
    assert "psi = 0.51575" in flat


def test_account_as_json_has_the_python_numbers(run):
    code, out, _ = run("account", *RUN, "--delta", "1e-6", "--json", "--compare")
    described = json.loads(out)["runs"][0]
    assert code == 0
    assert described["epsilon"][0]["upper"] == psidp.account(psidp.DPSGD(1.0, 0.01, 1000)).epsilon(1e-6).upper
    assert described["adjacency"] == "add-remove"
    assert len(described["comparison"]) == 5


def test_a_sweep_is_a_table_or_a_csv_file(run, tmp_path):
    sweep = [*RUN, "--noise-multiplier", "2", "--delta", "1e-5", "--delta", "1e-7"]
    code, out, _ = run("account", *sweep)
    assert code == 0
    assert "certified" in out
    code, _, _ = run("account", *sweep, "--csv", str(tmp_path / "sweep.csv"))
    rows = list(csv.DictReader((tmp_path / "sweep.csv").read_text().splitlines()))
    assert (code, len(rows)) == (0, 4)
    assert all(float(row["epsilon_lower"]) <= float(row["epsilon_upper"]) for row in rows)


def test_a_sweep_has_the_one_number_where_kappa_asks_for_it(run):
    sweep = [*RUN, "--noise-multiplier", "2", "--kappa", "1e-10"]
    code, out, _ = run("account", *sweep)
    assert code == 0
    assert "psi, but for" in out
    assert "0.5157" in out
    rows = list(csv.DictReader(run("account", *sweep, "--csv", "-")[1].splitlines()))
    number = psidp.account(psidp.DPSGD(1.0, 0.01, 1000)).guarantee(kappa=1e-10).psi
    assert float(rows[0]["psi"]) == number


def test_what_is_an_upper_bound_is_said_to_be_one_and_refusals_come_before_answers(run):
    _, out, _ = run("account", *RUN)
    assert "advantage of at most 0.1611 and an AUC of at most 0.6131" in " ".join(out.split())
    code, out, err = run("account", *RUN, "--kappa", "0")
    assert (code, out) == (2, "")
    assert "already have, 0, got kappa=0.0" in " ".join(err.split())


def test_calibrate_finds_the_noise_of_a_run(run):
    words = ["calibrate", "--steps", "1000", "--sampling-rate", "0.01", "--epsilon", "2", "--delta", "1e-5"]
    code, out, _ = run(*words, "--json")
    assert code == 0
    assert json.loads(out)["noise_multiplier"] == pytest.approx(0.9591015524, rel=1e-9)
    assert run(*words)[1].startswith("noise_multiplier = 0.95910155")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["account", *RUN[:4], "--steps", "0"], "steps (number of noisy steps) must be in"),
        (["account", *RUN, "--sampling", "shuffle"], "A shuffled loader is neither"),
        (["account", *RUN, "--delta", "2"], "delta (probability slack"),
        (
            ["calibrate", "--steps", "10", "--epsilon", "1", "--delta", "1e-5"],
            "a run needs sampling_rate, or batch_size",
        ),
    ],
)
def test_refusals_are_one_sentence_and_exit_code_2(run, words, sentence):
    code, _, err = run(*words)
    assert code == 2
    assert sentence in " ".join(err.split())


def test_account_certifies_on_demand(run):
    interval = psidp.account(psidp.DPSGD(1.0, 0.01, 1000), certify=True).epsilon(1e-5)
    code, out, _ = run("account", *RUN, "--certify")
    flat = " ".join(out.split())
    assert code == 0
    assert f"between {interval.lower!r} and {interval.upper!r}." in flat
    assert "(contour, certified)" in flat
    code, out, _ = run("account", *RUN, "--certify", "--json")
    assert (code, json.loads(out)["runs"][0]["epsilon"][0]["method"]) == (0, "contour, certified")
    code, _, err = run("account", *RUN, "--certify", "--kappa", "1e-9")
    assert code == 2
    assert "certify must be False for guarantee(kappa) of a sampled series" in " ".join(err.split())
