"""The command line: every command starts, numbers come out, shells complete."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from select import select
from time import monotonic

import pytest

from psidp.cli.main import COMMANDS

PSIDP = str(Path(sys.executable).with_name("psidp"))
HERE = {**os.environ, "PATH": f"{Path(PSIDP).parent}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"}


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


def asked_of_bash(script):
    asked = "COMP_WORDS=(psidp cal); COMP_CWORD=1; _psidp_completion psidp cal psidp"
    line = f'. "{script}"; {asked}; echo "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, env=HERE).stdout


def asked_of_fish(script):
    line = f'source "{script}"; complete -C "psidp cal"'
    return subprocess.run(["fish", "-c", line], capture_output=True, text=True, check=True, env=HERE).stdout


def asked_of_zsh(script):
    """zsh completes at its prompt alone: on a terminal of its own, which is read until the word is whole."""
    own, its = pty.openpty()
    shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=its, stdout=its, stderr=its, env=HERE, start_new_session=True)
    os.close(its)
    try:
        os.write(own, f'autoload -Uz compinit; compinit -D -u; source "{script}"; echo rea""dy\n'.encode())
        seen = read_until(own, b"ready")
        os.write(own, b"psidp cal\t")
        return (seen + read_until(own, b"calibrate")).decode(errors="replace")
    finally:
        shell.kill()
        shell.wait()
        os.close(own)


def read_until(terminal, words):
    """What a terminal shows until these words, or for a minute."""
    seen, end = b"", monotonic() + 60.0
    while words not in seen and monotonic() < end:
        if select([terminal], [], [], 1.0)[0]:
            seen += os.read(terminal, 4096)
    return seen


def test_shells_themselves_complete(tmp_path):
    """bash, and fish and zsh where they are installed."""
    asked = {"bash": asked_of_bash, "fish": asked_of_fish, "zsh": asked_of_zsh}
    for shell in filter(shutil.which, asked):
        script = tmp_path / shell
        script.write_text(said(_PSIDP_COMPLETE=f"source_{shell}"))
        assert "calibrate" in asked[shell](script), shell
