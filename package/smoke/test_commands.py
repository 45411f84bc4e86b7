"""The command line: every command starts, numbers come out, shells complete."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from psidp.cli.main import COMMANDS

PSIDP = str(Path(sys.executable).with_name("psidp"))


def said(*words, **more):
    done = subprocess.run([PSIDP, *words], capture_output=True, text=True, check=False, env={**os.environ, **more})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name):
    assert "Usage" in said(name, "--help")


def test_a_conversion_prints_a_number():
    assert said("convert", "--epsilon", "1", "--delta", "1e-5", "--to", "psi").startswith("0.26805")


def test_a_card_is_a_page(tmp_path):
    said("card", "--psi", "0.5", "--title", "A try", "-o", str(tmp_path / "card.html"))
    assert "<html" in (tmp_path / "card.html").read_text()


def test_a_refusal_is_a_sentence_and_exit_code_2():
    done = subprocess.run([PSIDP, "explain", "--psi", "nan"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "must be in [0, inf)" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_completes(shell):
    assert "psidp" in said(_PSIDP_COMPLETE=f"source_{shell}")
    words = {"COMP_WORDS": "psidp conv", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "psidp conv"}
    more = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert "convert" in said(_PSIDP_COMPLETE=f"complete_{shell}", **words, **more)


def test_bash_itself_completes(tmp_path):
    script = tmp_path / "completion"
    script.write_text(said(_PSIDP_COMPLETE="source_bash"))
    asked = "COMP_WORDS=(psidp cal); COMP_CWORD=1; _psidp_completion psidp cal psidp"
    line = f'. "{script}"; {asked}; echo "${{COMPREPLY[@]}}"'
    here = {**os.environ, "PATH": f"{Path(PSIDP).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, env=here)
    assert done.stdout.split() == ["calibrate"]
