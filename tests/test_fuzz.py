"""./dev fuzz: its campaigns find nothing today, find each old defect when it is back, and say how to repeat it."""

import io
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from fuzz import __main__ as fuzz
from fuzz import campaign, suite
from fuzz.campaign import NAMES, Campaign, turns

ROOT = Path(__file__).parents[1]
ROUNDS = 3
WITHIN = 30
"""Rounds in which a campaign must find each of its relapses."""
HERE = [name for name in NAMES if name not in {"kills", "suite"}]
"""Those whose rounds run in this process."""
RELAPSES = [(name, relapse) for name in HERE for relapse in Campaign.named(name, 0).relapses]


PATCHES = sorted(p for p in (ROOT / "fuzz" / "relapses").glob("*.patch") if p.name.split(".")[0] in NAMES)
SEARCH = """
import sys, psidp
from fuzz.campaign import Campaign
assert psidp.__file__.startswith(sys.argv[2]), psidp.__file__
found = Campaign.named(sys.argv[1], seed=1)
sys.exit(not any(found.round() is not None for _ in range(int(sys.argv[3]))))
"""


def planted(random):
    """One round in about four fails."""
    drawn = random.randrange(4)
    assert drawn, f"drew [bold]{drawn}"


def quiet(random):
    random.random()


def told(*campaigns):
    """Exit code and output of one round of each campaign."""
    out = io.StringIO()
    code = fuzz.run(list(campaigns), None, Console(file=out, highlight=False, soft_wrap=True))
    return code, out.getvalue()


@pytest.mark.parametrize("name", HERE)
def test_a_campaign_finds_nothing_today(name):
    found = Campaign.named(name, seed=1)
    for _ in range(ROUNDS):
        assert found.round() is None, str(found.finding)


@pytest.mark.parametrize(("name", "relapse"), RELAPSES)
def test_an_old_defect_is_found_when_it_is_back(name, relapse):
    found = Campaign.named(name, seed=1)
    with found.relapses[relapse]():
        assert any(found.round() is not None for _ in range(WITHIN)), f"{WITHIN} rounds find nothing"


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_an_old_defect_is_found_when_its_patch_brings_it_back(patch, tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, check=True, env=os.environ | {"GIT_DIR": os.devnull})
    paths = os.pathsep.join([str(tmp_path / "src"), str(ROOT), str(ROOT / "tests")])
    words = [patch.name.split(".")[0], str(tmp_path), str(WITHIN)]
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, *words], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{WITHIN} rounds find nothing: {done.stderr}"


def test_every_campaign_says_its_property_and_has_relapses():
    assert len(HERE) >= 3
    for name in HERE:
        made = Campaign.named(name, 0)
        assert made.about.endswith(".")
        assert made.relapses or [patch for patch in PATCHES if patch.name.split(".")[0] == name]


def test_a_planted_defect_is_found_printed_and_repeated_by_the_printed_command(monkeypatch):
    found = Campaign("planted", "A planted defect.", planted, seed=7)
    while found.round() is None:
        pass
    seed = found.finding.seed
    code, said = told(
        Campaign("planted", "A planted defect.", planted, seed), Campaign("quiet", "Nothing.", quiet, seed)
    )
    assert code == 1
    assert "drew [bold]0" in said
    assert f"./dev fuzz --only planted --seed {seed}" in said
    monkeypatch.setitem(sys.modules, "fuzz.planted", SimpleNamespace(
        __name__="fuzz.planted", __doc__="A planted defect.", explore=planted, RELAPSES={}
    ))  # fmt: skip
    monkeypatch.setattr(fuzz, "NAMES", ["planted"])
    assert fuzz.main(["--only", "planted", "--seed", str(seed)]) == 1
    assert fuzz.main(["--only", "planted", "--seed", str(seed - 1)]) == 0


def test_a_run_without_a_finding_ends_well_and_every_campaign_has_its_turn():
    code, said = told(Campaign("a", "A.", quiet, 1), Campaign("b", "B.", quiet, 1))
    assert code == 0
    assert said.splitlines()[0] == "Seed 1. Campaigns: a, b."
    assert said.splitlines()[-1] == "No findings."
    assert "a: 1 rounds" in said


def test_a_finding_ends_its_campaign_and_the_others_go_on():
    broken, well = Campaign("broken", "", planted, 0), Campaign("well", "", quiet, 0)
    for _ in turns([broken, well], lambda: well.rounds >= 200):
        pass
    assert broken.finding is not None
    assert broken.rounds < 100
    assert well.rounds == 200


def test_rounds_have_seeds_of_their_own_and_any_error_is_a_finding():
    seen = []
    counted = Campaign("counted", "", lambda random: seen.append(random.random()), campaign.SEEDS - 1)
    for _ in range(5):
        counted.round()
    assert len(set(seen)) == 5
    failing = Campaign("failing", "", lambda random: nullcontext()[0], 3)
    assert "TypeError" in str(failing.round())


@pytest.mark.parametrize("words", [["0"], ["nan"], ["--only", "nobody"], ["--seed", "-1"]])
def test_nonsense_is_refused(words, capsys):
    with pytest.raises(SystemExit) as stop:
        fuzz.main(words)
    assert stop.value.code == 2
    assert "usage: ./dev fuzz" in capsys.readouterr().err


def test_the_properties_of_the_suite_are_tried_with_fresh_examples(tmp_path):
    file = tmp_path / "test_planted.py"
    file.write_text(
        "from hypothesis import given, settings, strategies as st\n"
        "@settings(max_examples=1000)\n@given(st.integers(0, 10**6))\ndef test_planted(x):\n    assert x < 10**5\n"
    )
    part = [str(file), "-p", "conftest", "-c", str(ROOT / "pyproject.toml"), "-m", "hypothesis"]
    with pytest.raises(AssertionError, match="assert 100000 <"):
        suite.check(part, seed=1)
    parts = suite.slices()
    assert len([part for part in parts if "hypothesis" in part]) >= 5
    assert not [part for part in parts if part[0].endswith(("test_suite.py", "test_fuzz.py"))]  # they quote, only
    assert len([part for part in parts if "test_law.py::" in part[0]]) >= 5
    assert all(Path(part[0].split("::")[0]).is_file() for part in parts)


def test_the_command_lists_its_campaigns():
    done = subprocess.run([sys.executable, "-m", "fuzz", "--list"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == NAMES
