"""Options that hold words and numbers are read as Typer reads them, without what Typer would load for it."""

import subprocess
import sys
from typing import Annotated, Any

import pytest
import typer
from typer import BadParameter
from typer.testing import CliRunner

from psidp.cli.main import COMMANDS, app
from psidp.cli.plain_values import PlainValue, convert_plainly

WORDS = ["1", "-2.5", "1e-5", "inf", "nan", "", " 7 ", "1_0", "x", "0x1f", "１", "1.0", "true", "٣"]


def _command() -> typer.Typer:
    """A command with one option of each plain kind, of which only the reading counts."""
    made = typer.Typer(add_completion=False)

    @made.command()
    def show(
        word: Annotated[str | None, typer.Option()] = None,
        number: Annotated[float | None, typer.Option()] = None,
        whole: Annotated[int, typer.Option()] = 3,
        small: Annotated[int, typer.Option(min=0, max=5)] = 3,
        words: Annotated[list[str], typer.Option()] = [],  # noqa: B006
        numbers: Annotated[list[float] | None, typer.Option()] = None,
        flag: Annotated[bool, typer.Option()] = False,
    ) -> None:
        pass

    return made


@pytest.mark.parametrize("option", ["--word", "--number", "--whole", "--small", "--words", "--numbers"])
def test_every_word_is_read_or_refused_as_typer_reads_it(option: str) -> None:
    for word in WORDS:
        arguments = [option, word] * (2 if option.endswith("s") else 1)
        plain = typer.main.get_command(_command())
        convert_plainly(plain, typer.Context(plain))
        assert _read(plain, arguments) == _read(typer.main.get_command(_command()), arguments)


def _read(command: Any, arguments: list[str]) -> dict[str, str] | str:
    """What each option became, as text since NaN is not itself, or that it was refused."""
    try:
        return {name: repr(value) for name, value in command.make_context("show", list(arguments)).params.items()}
    except (BadParameter, ValueError):
        return "refused"


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (
            "explain --psi half",
            "--psi (sensitivity index Delta/sigma) must be a number, got 'half'. Write it in digits, w",
        ),
        ("explain --psi 0,1", "(sensitivity index Delta/sigma) must be a number, got '0,1'. Write 0.1, with a point."),
        ("explain --psi=-,5", "got '-,5'. Write -.5, with a point."),
        ("explain --sigma 1,000,000", "got '1,000,000'. Write 1000000, without commas."),
        (
            "card --regret 10%",
            "--regret (how far psi overstates the loss, [0, 1]) must be a number, got '10%'. Write it",
        ),
        (
            "ledger list x.db --size 1.5",
            "--size (entries of a page) must be a whole number, got '1.5'. Write it in digits",
        ),
        (
            "ledger approve x.db two --purpose y",
            "REQUEST (the number of the request's entry) must be a whole number, got",
        ),
    ],
)
def test_a_number_that_is_none_is_repeated_and_the_refusal_says_how_to_write_it(run: Any, words: str, refusal: str):
    code, _, err = run(*words.split())
    assert code == 2
    if hasattr(typer.main.get_command(_command()).params[0], "type_descriptor"):  # from Typer 0.29 on
        assert (err.startswith("psidp: "), err.count("\n"), refusal in err) == (True, 1, True), err
    else:
        assert "is not a valid" in err


def test_a_conversion_on_the_command_line_does_not_load_pydantic() -> None:
    script = (
        "import sys; sys.argv = 'psidp convert --psi 1 --to auc --at delta=1e-6'.split()\n"
        "from psidp.cli.main import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.7602499389065238", "False"]


def test_ranges_files_and_choices_stay_typers_own() -> None:
    command = typer.main.get_command(_command())
    convert_plainly(command, typer.Context(command))
    plain = {p.name for p in command.params if isinstance(getattr(p, "_runtime_param", None), PlainValue)}
    asked = hasattr(command.params[0], "type_descriptor")  # from Typer 0.29 on
    assert plain == ({"word", "number", "whole", "words", "numbers", "flag"} if asked else set())


def test_a_typer_that_converts_by_itself_is_left_alone() -> None:
    class Old:
        """A parameter as Typer made it before 0.29."""

    class Command:
        def get_params(self, ctx: object) -> list[Old]:
            return [parameter]

    parameter = Old()
    convert_plainly(Command(), None)
    assert vars(parameter) == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_still_shows_its_help(name: str) -> None:
    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
