"""How a mechanism is named on the command line: one set of flags, and the same names in one word for lists of them."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar

import typer

from psidp.cli import plain_values
from psidp.guarantee import Guarantee
from psidp.maths.notion import NAMES, OF_A_QUERY
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.symbols import SYMBOLS, check_text

__all__ = [
    "Actor",
    "Adjacent",
    "AsJson",
    "Notions",
    "Unit",
    "chosen",
    "parse",
    "with_notions",
    "with_prices",
]

Notions = dict[str, float]
Made = TypeVar("Made")
Unit = Annotated[str, typer.Option("--unit", help="whose data is protected: record, patient, household")]
Adjacent = Annotated[str, typer.Option("--adjacency", help="add-remove, replace-one or zero-out")]


def _named(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """The name; an empty one that was given, as by a variable that is not set, is not taken for none."""
    given = ctx.get_parameter_source(str(param.name))
    return check_text(str(param.name), value) if given is not None and given.name == "COMMANDLINE" else value


Actor = Annotated[
    str, typer.Option("--actor", help="who asks, for the ledger; the login name unless told", callback=_named)
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]


def with_notions(*names: str, refused: Sequence[str] = ()) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """A command whose parameter `notions` is one flag for each name; it gets a dict of those that were given.

    refused: flags that the help does not name, since the command refuses them, with what to give instead.
    """

    def expanded(command: Callable[..., Made]) -> Callable[..., Made]:
        @wraps(command)
        def called(**values: Any) -> Made:
            given = {name: value for name in (*names, *refused) if (value := values.pop(name)) is not None}
            return command(**values, notions=given)

        parameters: list[Parameter] = []
        for parameter in signature(command, eval_str=True).parameters.values():
            flags = [_flag(name) for name in names] + [_flag(name, hidden=True) for name in refused]
            parameters += flags if parameter.name == "notions" else [parameter]
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return expanded


def with_prices() -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """A command of which `notions` is the price of a table; sensitivity and sigma belong to one query."""
    return with_notions(*(name for name in NAMES if name not in OF_A_QUERY), refused=OF_A_QUERY)


def _flag(name: str, *, hidden: bool = False) -> Parameter:
    """A flag that is named and explained as the symbol is."""
    entry = SYMBOLS[name]
    option = typer.Option(f"--{name.replace('_', '-')}", help=f"{entry.meaning}, {entry.interval}", hidden=hidden)
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Annotated[float | None, option])


def chosen(adjacency: str, unit: str, notions: Notions) -> Guarantee:
    """The Gaussian mechanism's guarantee from the flags that were given."""
    return Guarantee.gaussian(adjacency=check_adjacency(adjacency), unit=unit, **notions)


def parse(text: str, adjacency: Adjacency = "add-remove", unit: str = "record") -> Guarantee:
    """The guarantee named by one word such as "psi=1" or "epsilon=1,delta=1e-5".

    Examples:
        >>> parse("sensitivity=1,sigma=4").psi
        0.25
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.partition("=")
        if name.strip() in values:
            raise ValueError(f"a mechanism must name {name.strip()} once, got {text!r}.")
        try:
            values[name.strip()] = plain_values.number(number)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"a mechanism must read name=number[,name=number], such as psi=1, got {text!r}.")
    return Guarantee.gaussian(adjacency=adjacency, unit=unit, **values)
