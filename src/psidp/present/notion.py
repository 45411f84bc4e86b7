"""How a mechanism is named on the command line: one set of flags, and the same names in one word for lists of them."""

from typing import Annotated

import typer

from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.symbols import SYMBOLS

__all__ = [
    "Adjacent",
    "Advantage",
    "Alpha",
    "AsJson",
    "Auc",
    "Delta",
    "Epsilon",
    "Fpr",
    "Psi",
    "Rho",
    "Sensitivity",
    "Sigma",
    "Tpr",
    "Unit",
    "Zcdp",
    "chosen",
    "parse",
]


def _flag(name: str) -> typer.models.OptionInfo:
    """A flag that is named and explained as the symbol is."""
    entry = SYMBOLS[name]
    flag: typer.models.OptionInfo = typer.Option(
        f"--{name.replace('_', '-')}",
        help=f"{entry.meaning}, {entry.interval}",
        rich_help_panel="The mechanism, in one way",
    )
    return flag


Psi = Annotated[float | None, _flag("psi")]
Epsilon = Annotated[float | None, _flag("epsilon")]
Delta = Annotated[float | None, _flag("delta")]
Sensitivity = Annotated[float | None, _flag("sensitivity")]
Sigma = Annotated[float | None, _flag("sigma")]
Auc = Annotated[float | None, _flag("auc")]
Advantage = Annotated[float | None, _flag("advantage")]
Tpr = Annotated[float | None, _flag("tpr")]
Fpr = Annotated[float | None, _flag("fpr")]
Alpha = Annotated[float | None, _flag("alpha")]
Rho = Annotated[float | None, _flag("rho")]
Zcdp = Annotated[float | None, _flag("zcdp")]
Unit = Annotated[str, typer.Option("--unit", help="whose data is protected: record, patient, household")]
Adjacent = Annotated[str, typer.Option("--adjacency", help="add-remove or replace-one")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]


def chosen(adjacency: str = "add-remove", unit: str = "record", **flags: float | None) -> Guarantee:
    """The Gaussian mechanism's guarantee from the flags that were given."""
    given = {name: value for name, value in flags.items() if value is not None}
    return Guarantee.gaussian(adjacency=check_adjacency(adjacency), unit=unit, **given)


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
            values[name.strip()] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"a mechanism must read name=number[,name=number], such as psi=1, got {text!r}.")
    return Guarantee.gaussian(adjacency=adjacency, unit=unit, **values)
