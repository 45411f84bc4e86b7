"""psidp audit on the command line: every kind of file, columns named or guessed, exit code 1 for a refuted claim."""

import json

import duckdb
import numpy as np
import pytest

from psidp import audit, audit_one_run


@pytest.fixture
def scores():
    rng = np.random.default_rng(1)
    return rng.normal(2, 1, 300), rng.normal(0, 1, 200)


def write_csv(path, ins, outs):
    lines = [f"{a},{b}" for a, b in zip(ins, [*outs, *[""] * (len(ins) - len(outs))], strict=True)]
    path.write_text("in_score,out_score\n" + "\n".join(lines) + "\n")


def test_a_refuted_claim_is_exit_code_1_and_the_same_numbers_as_in_python(psidp, tmp_path, scores):
    write_csv(tmp_path / "scores.csv", *scores)
    code, out, _ = psidp("audit", tmp_path / "scores.csv", "--claimed-psi", 1.0, "--seed", 3, "--json")
    said = json.loads(out)
    assert code == 1
    assert said["refuted"]
    assert said["psi"] == audit(*scores, seed=3).psi
    assert said["columns"] == {"in": "in_score", "out": "out_score", "guessed": True}


def test_a_claim_that_holds_is_exit_code_0_and_said_in_words(psidp, tmp_path, scores):
    write_csv(tmp_path / "scores.csv", *scores)
    code, out, _ = psidp("audit", tmp_path / "scores.csv", "--claimed-psi", 3)
    words = " ".join(out.split())
    assert code == 0
    assert "Not refuted: these scores are compatible with psi = 3. That does not prove it." in words
    assert 'In-scores: column "in_score"; out-scores: column "out_score" (guessed from their names).' in words
    assert "REFUTED" in " ".join(psidp("audit", tmp_path / "scores.csv", "--claimed-psi", 0)[1].split())
    assert "No claim was tested" in " ".join(psidp("audit", tmp_path / "scores.csv")[1].split())


def test_arrays_rows_and_parquet_give_the_same_bound(psidp, tmp_path, scores):
    ins, outs = scores[0][:200], scores[1]
    truth = audit(ins, outs, seed=3).psi
    np.save(tmp_path / "two.npy", np.stack([ins, outs], axis=1))
    member = ["True"] * 200 + ["False"] * 200
    rows = "\n".join(f"{m},{s!r}" for m, s in zip(member, [*ins.tolist(), *outs.tolist()], strict=True))
    (tmp_path / "rows.csv").write_text("Is member,Score\n" + rows + "\n")
    with duckdb.connect() as database:
        database.execute(f"COPY (SELECT * FROM read_csv('{tmp_path}/rows.csv')) TO '{tmp_path}/rows.parquet'")
    for name in ("two.npy", "rows.csv", "rows.parquet"):
        code, out, _ = psidp("audit", tmp_path / name, "--seed", 3, "--json")
        assert code == 0
        assert json.loads(out)["psi"] == truth


def test_columns_can_be_named(psidp, tmp_path, scores):
    ins, outs = scores[0][:200], scores[1]
    table = np.rec.fromarrays([outs, ins], names="a,b")
    np.save(tmp_path / "named.npy", table)
    said = json.loads(psidp("audit", tmp_path / "named.npy", "--in-column", "b", "--out-column", "a", "--json")[1])
    assert said["columns"] == {"in": "b", "out": "a", "guessed": False}
    assert said["psi"] > 1.0


def test_one_run_has_its_own_bound(psidp, tmp_path):
    rng = np.random.default_rng(2)
    included = rng.random(500) < 0.5
    scores = included * 2.0 + rng.standard_normal(500)
    rows = "\n".join(f"{int(i)},{s!r}" for i, s in zip(included, scores.tolist(), strict=True))
    (tmp_path / "run.csv").write_text("included,score\n" + rows + "\n")
    code, out, _ = psidp("audit", tmp_path / "run.csv", "--one-run", "--claimed-psi", 0.3, "--json")
    assert code == 1
    assert json.loads(out)["psi"] == audit_one_run(included, scores).psi
    code, out, _ = psidp("audit", tmp_path / "run.csv", "--one-run")
    assert "valid however they depend on each other" in " ".join(out.split())


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("a,b\n1,2\n", (), "the columns of the scores must be named, since a, b does not tell"),
        ("in,out\n1,2\n", ("--in-column", "in"), "--in-column and --out-column go together"),
        ("in,out\n1,2\n", ("--score-column", "in"), "--score-column and --member-column go together"),
        ("in,out\n1,2\nx,3\n4,5\n", (), "in_scores (scores of the attack) must not hold NaN, got NaN at index 1"),
        ("in,out\n", (), "in_scores (scores of the attack) must have at least one score"),
        ("score,member\n1,maybe\n", (), 'column "member" must say 1 or true (in), 0 or false (out)'),
        ("in,out\n1,2\n", ("--claimed-psi", "-1"), "psi"),
        ("in,out\n1,2\n", ("--confidence", "1"), "confidence"),
        ("in,out\n1,2\n", ("--method", "guess"), "method must be one of"),
        ("", (), "scores.csv' is empty: its first line must name the columns, such as in,out."),
        ("in,out\n1,2\n", ("--one-run",), "does not tell: --score-column and --member-column."),
        ("in,out\n1,2\n", ("--in-column", "in", "--out-column", "in"), "two different columns must be named"),
        ("in,out\n1,2\n", ("--guesses", "5"), "--guesses goes with --one-run"),
        ("in,out\n1,2\n", ("--claimed-kappa", "0.1"), "--claimed-kappa goes with --claimed-psi"),
        ("included,score\n1,2\n", ("--one-run", "--method", "ranks"), "are for independent runs, not for --one-run."),
    ],
)
def test_refusals_are_one_sentence_and_exit_code_2(psidp, tmp_path, text, words, sentence):
    (tmp_path / "scores.csv").write_text(text)
    code, _, err = psidp("audit", tmp_path / "scores.csv", *words)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["scores.npy", "scores.parquet"])
def test_a_file_that_is_not_whole_or_not_there_is_refused_in_a_sentence(psidp, tmp_path, name):
    for content in (None, b"", b"\x80\x04nonsense"):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        code, _, err = psidp("audit", tmp_path / name)
        assert code == 2
        assert err.startswith("psidp: ")
        assert name in err
        assert "Traceback" not in err
        assert "pickle" not in err


def test_an_unknown_kind_of_file_is_refused(psidp, tmp_path):
    code, _, err = psidp("audit", tmp_path / "scores.xlsx")
    assert code == 2
    assert "the file must be .csv, .npy or .parquet" in err
