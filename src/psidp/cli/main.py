"""psidp on the command line: parse, call, show. Same names, same numbers and same refusals as in Python.

Each command is loaded when it is asked for, so that `psidp convert` does not wait for what it does not use.
"""

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from psidp.cli.echo import echo
from psidp.cli.given_once import given_once
from psidp.cli.plain_values import convert_plainly
from psidp.errors import PsidpError

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = {
    "explain": ("explain:explain", "Say what a mechanism promises, in every theory and in words."),
    "convert": ("convert:convert", "Turn one notion into others, with every digit."),
    "calibrate": ("calibrate:calibrate", "Choose sigma for a query, or noise_multiplier for a run."),
    "compare": ("compare:compare", "Put Gaussian mechanisms in order, the most private first."),
    "account": ("account:account_command", "Say what a training run costs, with both sides proved."),
    "audit": ("audit:audit", "Say what an attack's scores prove about psi."),
    "card": ("card:card", "Write the privacy card of a release: HTML, Markdown or JSON."),
    "figures": ("figures:figures_command", "Draw the paper's figures, or one to four mechanisms."),
    "explore": ("explore:explore", "Open the explorer: a page on which everything can be dragged."),
    "paper": ("paper:paper", "Reproduce the paper's experiment, beside its own numbers."),
    "notation": ("notation:notation", "List every quantity: its name, letter, meaning and domain."),
    "demo": ("demo:demo", "Show in a minute what psidp does and what it means."),
    "release": ("release:app", "Publish numbers with exact Gaussian noise."),
    "stream": ("stream:app", "Publish numbers of a table again every week, at one price."),
    "ledger": ("ledger:app", "A privacy budget that cannot be overspent, lost or forgotten."),
}
"""Each command: where it lives, and its line in the help."""


class Commands(TyperGroup):
    """The commands, each loaded when it is asked for."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of psidp's own options, --help and --version among them."""
        convert_plainly(self, ctx)
        return super().make_parser(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them, or None."""
        if cmd_name not in COMMANDS:
            return None
        file, _, name = COMMANDS[cmd_name][0].partition(":")
        found = getattr(import_module(f"psidp.cli.{file}"), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            alone.command(cmd_name)(found)
            found = alone
        command = given_once(convert_plainly(typer.main.get_command(found), ctx))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Their lines in the help, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def psidp_options(
    shown: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=lambda asked: _version(asked), help="show the version")
    ] = False,
) -> None:
    """Gaussian differential privacy through one number, the sensitivity index psi = Delta/sigma.

    Begin with: psidp explain --psi 1
    """


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # slow to load

        echo(f"psidp {version('psidp')}")
        raise typer.Exit


def main() -> None:
    """Run, and turn a refusal into its sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a letter that the terminal lacks must not end a command
    try:
        app()
    except (ValueError, TypeError, PsidpError) as refusal:
        _refuse(_with_notes(str(refusal), refusal))
    except OSError as trouble:
        _refuse(_with_notes(_in_words(trouble), trouble))


def _with_notes(sentence: str, error: BaseException) -> str:
    """The sentence, and what the ledger adds to it: that a spend stays."""
    return " ".join([sentence, *getattr(error, "__notes__", ())])


def _in_words(trouble: OSError) -> str:
    """What the operating system complains of, and what to do about it."""
    if not trouble.filename:
        return f"{trouble.strerror or trouble}."
    todo = "Check the path: its folder must exist, and you must be allowed to use it."
    if isinstance(trouble, FileExistsError):
        todo = "Nothing was overwritten: choose another name."
    return f"{trouble.filename!r} cannot be used: {trouble.strerror}. {todo}"


def _refuse(sentence: str) -> None:
    echo(f"psidp: {sentence}", err=True)
    sys.exit(2)
