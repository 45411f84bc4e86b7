"""Options of every command that reads a table: where it is, what is asked, at what price, and who pays."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from psidp.cli import options
from psidp.cli.echo import echo
from psidp.cli.from_values import OptionGroup, option
from psidp.ledger.ledger import Ledger
from psidp.maths.notion import NAMES, OF_A_QUERY
from psidp.maths.sensitivity import check_adjacency
from psidp.symbols import SYMBOLS
from psidp.tables.ask import Ask
from psidp.tables.choices.private_groups import PrivateGroups
from psidp.tables.columns import need_column
from psidp.tables.curator import Curator
from psidp.tables.derived import derived_table
from psidp.tables.measures import KINDS
from psidp.tables.measures.measure import Option
from psidp.tables.question import CLIPPING_SHARE
from psidp.tables.sources.public_groups import keys_from_text

__all__ = [
    "Groups", "Measures", "Pays", "PlanOnly", "Price", "SummedMeasures", "TableAt", "Which", "Words", "number",
    "stray_keys",
]  # fmt: skip

Words = list[str]

NO_UNIT = (
    "units must be named by --unit-column COLUMN, the column that says whose data a row is, or else --rows-are-units, "
    "where every row is its own unit."
)
PIECE = re.compile(r',( *"(?:[^"]|"")*"|[^,]*)')
"""A key of a list with the blanks before it."""

PlanOnly = Annotated[bool, typer.Option("--plan", help="show what would run, cost and be worth; spend nothing")]


@dataclass(frozen=True, slots=True)
class TableAt(OptionGroup):
    """The table, and whose data its rows are."""

    source: Annotated[
        str, typer.Argument(help="a .parquet, .csv or .duckdb file, or a folder; with --engine a table's name")
    ]
    unit_column: Annotated[
        Words, typer.Option("--unit-column", help="names units of privacy, such as patient_id; several do so together")
    ] = field(default_factory=list)
    rows_are_units: Annotated[bool, typer.Option("--rows-are-units", help="every row is its own unit")] = False
    engine: Annotated[str, typer.Option("--engine", help="postgresql://... or spark://...; defaults to DuckDB")] = ""
    name: Annotated[str, typer.Option("--table", help="which table of a .duckdb file")] = ""
    types: Annotated[
        Words, typer.Option("--type", help="column:type of a .csv file, such as age:int64; may be repeated")
    ] = field(default_factory=list)
    missing: Annotated[
        Words, typer.Option("--missing", help="text of a .csv file that stands for a missing value, such as NA")
    ] = field(default_factory=list)
    joins: Annotated[
        Words, typer.Option("--join", help="a public table and its key, such as wards.csv:ward; repeatable")
    ] = field(default_factory=list)
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="add-remove or replace-one; defaults to the budget's")
    ] = ""
    protects: Annotated[str, typer.Option("--protects", help="whose data is protected, in words")] = ""
    same_unit: Annotated[
        str, typer.Option("--same-unit", help="why another unit column names the budget's units, in words")
    ] = ""

    def opened(self, pays: "Pays") -> Curator:
        """The curator of this table."""
        if bool(self.unit_column) == self.rows_are_units:
            raise ValueError(NO_UNIT)
        curator = Curator(
            self.source, self.unit_column or None, ledger=pays.opened(), budget=pays.budget or None,
            name=self.name or None, adjacency=check_adjacency(self.adjacency) if self.adjacency else None,
            protects=self.protects or None, engine=self.engine or None, same_unit=self.same_unit,
            types=dict(_pair("a type", "column:type, such as age:int64", word) for word in self.types),
            missing=self.missing or None,
        )  # fmt: skip
        for word in self.joins:
            curator = curator.join(*_pair("a public table", "file:column, such as wards.csv:ward", word))
        return curator


@dataclass(frozen=True, slots=True)
class Pays(OptionGroup):
    """Who pays, and what the ledger is told."""

    ledger: Annotated[str, typer.Option("--ledger", help="where spending is written down: a file or postgresql://")] = (
        ""
    )
    budget: Annotated[str, typer.Option("--budget", help="the budget that pays")] = ""
    purpose: Annotated[str, typer.Option("--purpose", help="why, for the ledger")] = ""
    actor: options.Actor = ""
    retry_key: Annotated[
        str, typer.Option("--retry-key", help="idempotency key: asked again, the stored answer comes back")
    ] = ""

    def opened(self) -> Ledger | None:
        """The ledger, if there is one."""
        return Ledger(self.ledger, actor=self.actor) if self.ledger else None

    @property
    def terms(self) -> dict[str, Any]:
        """What a release is told."""
        return {"purpose": self.purpose, "retry_key": self.retry_key}


@dataclass(frozen=True, slots=True)
class Price(OptionGroup):
    """What a release may cost, in any notion; sensitivity and sigma belong to one query and are refused."""

    notions: dict[str, float]

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """One option for each notion."""
        return [_of_symbol(name) for name in NAMES]

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """Those that were given."""
        return cls({name: value for name, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Measures(OptionGroup):
    """What is asked: one option for each kind of measure, in the order of the kinds."""

    asks: tuple[Ask, ...]

    @classmethod
    def options(cls) -> list[Option]:
        """The options of all kinds."""
        return [o for kind in KINDS.values() for o in kind.options()]

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """The options of the kinds, and the one for their weights."""
        weight = typer.Option(
            "--weight", help="share of psi^2: 'mean of cost:2' has twice the others'; may be repeated"
        )
        return [_of_measure(o) for o in cls.options()] + [option("weight", Annotated[Words, weight], [])]

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """The measures that were asked for, with their weights."""
        asks = []
        for o in cls.options():
            given = values[o.name.replace("-", "_")]
            asks += [Ask(o.parse(word)) for word in given] if o.text else [Ask(o.parse(""))] * bool(given)
        return cls(tuple(_weighed(asks, values["weight"])))


@dataclass(frozen=True, slots=True)
class SummedMeasures(Measures):
    """What is asked of every cell of a cube: sums over rows, and what is made of them."""

    @classmethod
    def options(cls) -> list[Option]:
        """The options of the kinds that a cube has."""
        return [o for kind in KINDS.values() if kind.summed for o in kind.options()]


@dataclass(frozen=True, slots=True)
class Which(OptionGroup):
    """Which rows count, how much a unit adds, and how sure intervals are."""

    where: Annotated[Words, typer.Option("--where", help="\"age >= 18 and ward in ('A', 'B')\"; may be repeated")] = (
        field(default_factory=list)
    )
    contribution: Annotated[str, typer.Option("--contribution", help="rows' worth a unit may add, or auto")] = "1"
    confidence: Annotated[float, typer.Option("--confidence", help="chance that an interval covers, (0,1)")] = 0.95
    clipping_share: Annotated[
        float, typer.Option("--clipping-share", help="part of psi^2 for measuring what clipping takes, [0,0.5]")
    ] = CLIPPING_SHARE

    @property
    def terms(self) -> dict[str, Any]:
        """What a question is told."""
        try:
            contribution: float | str = float(self.contribution)
        except ValueError:
            contribution = self.contribution
        return {
            "where": self.where or None, "contribution": contribution, "confidence": self.confidence,
            "clipping_share": self.clipping_share,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Groups(OptionGroup):
    """The groups of a table or a stream."""

    by: Annotated[
        Words, typer.Option("--by", help='column that makes groups, or "month(visited)"; may be repeated')
    ] = field(default_factory=list)
    groups: Annotated[
        str,
        typer.Option(
            "--groups", help="the groups: a,b,c or 1..12, or a .csv or .parquet file with the columns of --by"
        ),
    ] = ""
    private_groups: Annotated[str, typer.Option("--private-groups", help="choose the groups: kappa:at_most")] = ""

    def terms(self, curator: Curator) -> dict[str, Any]:
        """What a question is told."""
        return {"by": self.by, "groups": self._groups(curator)}

    def _groups(self, curator: Curator) -> Any:
        if self.private_groups and self.groups:
            raise ValueError("groups must be public or private: give --groups or --private-groups, not both.")
        if self.private_groups:
            kappa, _, at_most = self.private_groups.partition(":")
            if not at_most.isdecimal():
                raise ValueError(
                    f"--private-groups must be kappa:at_most, such as 1e-9:10, got {self.private_groups!r}."
                )
            return PrivateGroups(kappa=number(kappa, self.private_groups), at_most=int(at_most))
        if not self.groups:
            return None
        if self.groups.lower().endswith((".csv", ".parquet")):
            return Path(self.groups)
        table = derived_table(curator.source, self.by, (), curator.public)
        names = [name for name in table.by if name not in table.values] or list(table.by)
        for column in names:
            need_column(column, table.source.schema, "--by")
        if len(names) != 1:
            raise ValueError(
                "groups in a list need one --by column of the table, besides those whose values are known, such as "
                f"months; for several columns give a .csv file whose first line is {','.join(names)}, and each other "
                "line a group."
            )
        if stray := stray_keys(self.groups):
            echo(f"psidp: {stray}", err=True)
        return keys_from_text(self.groups, names[0], table.source.schema[names[0]])


def _of_measure(o: Option) -> Parameter:
    """The option of a measure; it may be repeated where it takes a text."""
    info = typer.Option(f"--{o.name}", help=o.help)
    kind = Annotated[Words, info] if o.text else Annotated[bool, info]
    return option(o.name.replace("-", "_"), kind, [] if o.text else False)


def _of_symbol(name: str) -> Parameter:
    """The option of a notion, named and explained as its symbol is."""
    words, hidden = f"{SYMBOLS[name].meaning}, {SYMBOLS[name].interval}", name in OF_A_QUERY
    info = typer.Option(f"--{name.replace('_', '-')}", help=words, hidden=hidden)
    return option(name, Annotated[float | None, info], None)


def _weighed(asks: Sequence[Ask], words: Words) -> list[Ask]:
    """The measures with the weights that name:number gives them: their shares of psi^2."""
    weights: dict[str, float] = {}
    for word in words:
        name, colon, weight = word.rpartition(":")
        if not colon or name in weights or name not in {a.name for a in asks}:
            known = ", ".join(repr(a.name) for a in asks)
            raise ValueError(f"--weight must be name:number, once for each name of {known}, got {word!r}.")
        weights[name] = number(weight, word)
    return [replace(a, weight=weights[a.name]) if a.name in weights else a for a in asks]


def _pair(what: str, form: str, word: str) -> tuple[str, str]:
    """The two parts of a word; the first may contain colons."""
    first, colon, last = word.rpartition(":")
    if not colon:
        raise ValueError(f"{what} must be {form}, got {word!r}.")
    return first, last


def number(text: str, word: str) -> float:
    """A number, or the refusal that shows where it stands."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} in {word!r} must be a number.") from None


def stray_keys(words: str) -> str:
    """A warning about keys that seem to be the ends of others, split at a comma: only they follow a blank.

    Examples:
        >>> print(stray_keys("North,West,South, harbour"))
        ' harbour' is a group; a key with a comma stands in quotes, such as "South, harbour".
        >>> stray_keys("North, West, South"), stray_keys('North,"South, harbour"')
        ('', '')
    """
    pieces = PIECE.findall("," + words)
    stray = [at for at in range(1, len(pieces)) if re.match(r" +[^ \"]", pieces[at])]
    if not stray or all(piece[:1] == " " for piece in pieces[1:]):
        return ""
    named, first = ", ".join(repr(pieces[at]) for at in stray[:3]), stray[0]
    verb = "is a group" if len(stray) == 1 else "are groups"
    return f'{named} {verb}; a key with a comma stands in quotes, such as "{pieces[first - 1]},{pieces[first]}".'
