"""psidp release on the command line: the answer on one channel, what it cost on the other, refusals before noise."""

import json
import subprocess
import sys

import numpy as np
import pytest

from psidp.noise import normal_source


@pytest.fixture
def no_dice(monkeypatch):
    """Any draw is an error."""

    def refuse():
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(normal_source, "NormalSource", refuse)
    monkeypatch.setattr(normal_source, "_idle", [])


def test_a_value_comes_out_alone_and_its_cost_beside_it(psidp):
    code, out, err = psidp("release", "value", "123.4", "--sensitivity", 1, "--epsilon", 1, "--delta", 1e-6)
    assert code == 0
    assert abs(float(out) - 123.4) < 60
    assert "Spent psi = 0.2368 (add-remove, per record): epsilon 1 at delta = 1e-06." in err


def test_several_values_are_one_vector_and_may_be_negative(psidp):
    code, out, _ = psidp("release", "value", "-3.5", "12", "--sensitivity", 1, "--sigma", 1e-6)
    assert code == 0
    assert [float(line) for line in out.split()] == pytest.approx([-3.5, 12.0], abs=1e-4)


def test_whole_numbers_come_out_whole(psidp):
    _, out, _ = psidp("release", "value", str(2**70), "--sensitivity", 1, "--sigma", 0.01, "--integers")
    assert int(out) == 2**70


def test_json_carries_the_release_and_its_error(psidp):
    _, out, _ = psidp("release", "value", "5", "--sensitivity", 1, "--psi", 0.5, "--unit", "patient", "--json")
    answer = json.loads(out)
    assert answer["guarantee"] == {"psi": 0.5, "kappa": 0.0, "adjacency": "add-remove", "unit": "patient"}
    assert answer["sigma"] == 2.0
    interval = answer["confidence_interval"]
    assert interval["lower"] < answer["value"] < interval["upper"]


def test_a_column_comes_out_without_the_others(psidp, tmp_path):
    source = tmp_path / "counts.csv"
    source.write_text("name,visits\nAda,3\nBob,4\n")
    code, out, err = psidp(
        "release",
        "column",
        source,
        "--column",
        "visits",
        "--sensitivity",
        1,
        "--sigma",
        1e-6,
        "--adjacency",
        "replace-one",
    )
    assert code == 0
    assert out.splitlines()[0] == "visits"
    assert [float(line) for line in out.splitlines()[1:]] == pytest.approx([3, 4], abs=1e-4)
    assert "Ada" not in out + err
    assert "replace-one" in err


def test_an_array_goes_to_an_array(psidp, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    words = ("release", "column", tmp_path / "x.npy", "--sensitivity", 1, "--sigma", 1e-3)
    code, _, _ = psidp(*words, "--output", tmp_path / "y.npy")
    assert code == 0
    assert np.load(tmp_path / "y.npy") == pytest.approx(np.ones((2, 3)), abs=0.1)


def test_it_works_in_a_pipe():
    command = [sys.executable, "-c", "from psidp.cli.main import main; main()", "release"]
    flags = ["--sensitivity", "1", "--sigma", "1e-6"]
    done = subprocess.run(
        [*command, "value", "-", *flags], input="1\n2 3\n", capture_output=True, text=True, check=True
    )
    assert [float(line) for line in done.stdout.split()] == pytest.approx([1, 2, 3], abs=1e-4)
    done = subprocess.run(
        [*command, "column", "-", "--column", "b", *flags],
        input="a,b\n1,2\n3,4\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[0] == "b"
    assert [float(line) for line in done.stdout.splitlines()[1:]] == pytest.approx([2, 4], abs=1e-4)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["value", "3", "--sensitivity", "1", "--sigma", "nan"], "sigma (standard deviation of the noise) must be in"),
        (["value", "3", "--sensitivity", "-1", "--sigma", "1"], "sensitivity (L2 sensitivity of the query) must be in"),
        (["value", "3", "--sensitivity", "1", "--sigma", "1", "--psi", "1"], "sigma must be given alone or left out"),
        (["value", "3", "--sensitivity", "1"], "exactly one notion must be given"),
        (["value", "x", "--sensitivity", "1", "--psi", "1"], "the value to release must be a number, got 'x'"),
        (["value", "1.5", "--sensitivity", "1", "--psi", "1", "--integers"], "must be a whole number, got '1.5'"),
        (["value", "3", "--sensitivity", "1", "--psi", "1", "--adjacency", "both"], "adjacency must be"),
        (["value", "3", "--sensitivity", "1", "--psi", "1", "--grid", "0.3"], "grid (step of the released values)"),
        (["column", "none.xls", "--sensitivity", "1", "--psi", "1"], "the file must be .csv, .npy or .parquet"),
    ],
)  # fmt: skip
def test_refusals_say_what_python_says_before_anything_is_drawn(psidp, no_dice, words, sentence):
    code, out, err = psidp("release", *words)
    assert (code, out) == (2, "")
    assert sentence in err


def test_an_impossible_output_is_refused_before_anything_is_drawn(psidp, no_dice, tmp_path):
    (tmp_path / "x.csv").write_text("n\n1\n")
    code, _, err = psidp(
        "release", "column", tmp_path / "x.csv", "--sensitivity", 1, "--psi", 1, "--output", tmp_path / "y.txt"
    )
    assert code == 2
    assert "the output must be .csv or .npy" in err


def test_a_stored_answer_is_called_so(psidp, tmp_path):
    ledger = tmp_path / "ledger.db"
    assert psidp("ledger", "open", ledger, "survey", "--psi", 1, "--purpose", "a test")[0] == 0
    paid = [
        "--sensitivity",
        1,
        "--sigma",
        2,
        "--ledger",
        ledger,
        "--budget",
        "survey",
        "--purpose",
        "q",
        "--retry-key",
        "k",
    ]
    code, first, err = psidp("release", "value", "100", *paid)
    assert (code, err.startswith("Spent psi = 0.5")) == (0, True)
    code, again, err = psidp("release", "value", "9000", *paid)
    assert (code, again) == (0, first)
    assert err.startswith(
        "This is the stored answer, drawn from what was given when the key was used first. That one spent psi = 0.5"
    )
    assert json.loads(psidp("release", "value", "9000", *paid, "--json")[1])["stored"] is True


def test_an_answer_that_overflows_is_printed_and_comes_back(psidp, tmp_path):
    ledger, source = tmp_path / "ledger.db", tmp_path / "x.npy"
    np.save(source, np.array([3e38, -3e38] * 20, np.float32))
    assert psidp("ledger", "open", ledger, "survey", "--psi", 1, "--purpose", "a test")[0] == 0
    paid = ["--ledger", ledger, "--budget", "survey", "--purpose", "q", "--retry-key", "k"]
    asked = ["release", "column", source, "--sensitivity", 3e38, "--sigma", 1e39, *paid]
    code, first, err = psidp(*asked)
    assert (code, "Spent psi = 0.3" in err, "inf" in first) == (0, True, True)
    assert psidp(*asked)[1] == first
    assert "inf" in json.loads(psidp(*asked, "--json")[1])["value"]
