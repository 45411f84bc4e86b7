"""Answer: what a release gives back. Noisy numbers with their errors, what they cost and what is left, in words."""

import datetime
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib import import_module
from math import ceil, floor, inf
from pathlib import Path
from typing import Any, Self

from psidp.errors import MissingExtraError
from psidp.escaping import one_line
from psidp.forms import check_form
from psidp.guarantee import Guarantee
from psidp.tables.estimate import Estimate
from psidp.tables.notes import Note
from psidp.tables.rounding import on_steps

__all__ = ["Answer", "Released", "packed", "unpacked"]

Key = tuple[Any, ...]
Change = Callable[[float], float]

FORM = "psidp-table-1"
COLUMNS = ("statistic", "value", "standard_error", "lower", "upper", "flag")
MOST_NAMED = 20
"""Groups that a note names."""


class Released:
    """What a release gives back, with what the ledger knows of it; answers and cubes are frozen values with these
    fields."""

    __slots__ = ()

    guarantee: Guarantee
    notes: tuple[Note, ...]
    left: str
    stored: bool
    retry_key: str

    def to_dict(self) -> dict[str, Any]:
        """It as plain values, without what the ledger knows."""
        raise NotImplementedError

    def to_json(self) -> str:
        """It as JSON."""
        return json.dumps(self.to_dict() | self.payment(), ensure_ascii=False)

    def payment(self) -> dict[str, Any]:
        """What the ledger knows of it, as plain values."""
        return {"left": self.left, "stored": self.stored, "retry_key": self.retry_key}

    def settled(self, left: str, stored: bool, retry_key: str = "") -> Self:
        """The same with what the budget holds, whether it was answered before, and its key in the ledger."""
        return replace(self, left=left, stored=stored, retry_key=retry_key)  # type: ignore[type-var]

    def summarized(self, together: str = "", last: str = "") -> str:
        """What was asked, what it cost, and what is left; `together` and `last` end the cost and all of it."""
        g = self.guarantee
        paid = "This was answered before: the same numbers, and nothing was spent now." if self.stored else ""
        kappa = f" and kappa = {g.kappa:.3g}" if g.kappa else ""
        cost = f"It cost psi = {g.psi:.6g}{kappa} ({g.adjacency}, per {g.unit}){together}."
        lines = (*(one_line(note.text) for note in self.notes), paid, cost, self.left, last)
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True, slots=True)
class Answer(Released):
    """The numbers of one release, a row for each group and statistic.

    Args:
        by: the columns that make groups. rows: each group's key with one estimate. guarantee: what all of it cost
        together. confidence: chance that an interval covers, each by itself. notes: what was asked and done.
        left: what the budget still holds, where there is one. stored: whether it was answered before, at no cost now.
        retry_key: the key under which the ledger keeps it; "" without a ledger.
    """

    by: tuple[str, ...]
    rows: tuple[tuple[Key, Estimate], ...] = field(repr=False)
    guarantee: Guarantee
    confidence: float
    notes: tuple[Note, ...] = field(repr=False)
    left: str = ""
    stored: bool = False
    retry_key: str = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = self.names
        for key, e in self.rows:
            numbers = (e.statistic, e.value, e.standard_error, e.lower, e.upper, e.flag)
            yield dict(zip(names, (*key, *numbers), strict=True))

    @property
    def names(self) -> list[str]:
        """Columns of the frame; a key column that bears the name of one of ours gets an underscore."""
        return [f"{name}_" if name in COLUMNS else name for name in self.by] + list(COLUMNS)

    def value(self, statistic: str, *key: Any) -> float:
        """One number, by the name of its statistic and its key, with one argument for each column of `by`."""
        key = key[0] if len(key) == 1 and isinstance(key[0], tuple) else key
        for have, estimate in self.rows:
            if have == key and estimate.statistic == statistic:
                return estimate.value
        known = ", ".join(dict.fromkeys(repr(e.statistic) for _, e in self.rows))
        named = f", each with a key of {', '.join(self.by)}" if self.by else ""
        shown = f" for {', '.join(map(repr, key))}" if key else ""
        raise KeyError(f"no {statistic!r}{shown}; there are {known or 'none'}{named}.")

    def non_negative(self) -> Self:
        """The answer with no count below 0, and a note that says so; see denoise.non_negative."""
        words = (
            "counts below 0 were set to 0 and their intervals cut at 0, at no cost. Totals of many of them are too "
            "large on average: add up before this step."
        )

        def cut(x: float) -> float:
            return max(x, 0.0)

        return self._with_counts("non_negative", words, cut, cut, cut)

    def whole(self) -> Self:
        """The answer with counts rounded to whole numbers, intervals widened to whole ends, and a note that says so."""
        words = (
            "counts were rounded to the nearest whole number and their intervals widened to whole ends, at no cost. "
            "Rounded cells need not add up to rounded totals: off by half for each cell at most."
        )
        return self._with_counts("whole", words, round, floor, ceil)

    def rounded(self) -> Self:
        """The answer with the digits that its noise leaves, intervals widened to them, and a note that says so."""
        note = Note(
            "step",
            "rounded: numbers were rounded to the digits that their noise leaves (two of the standard error, which is "
            "rounded up) and their intervals widened to these, at no cost.",
        )
        return replace(self, rows=tuple((key, on_steps(e)) for key, e in self.rows), notes=(*self.notes, note))

    def suppressed(self, below: float) -> Self:
        """The answer without groups whose noisy count is below a public threshold, and a note that names them."""
        if not 0.0 < below < inf:
            raise ValueError(
                f"below (the public threshold for a group's noisy count) must be in (0, inf), got below={below}."
            )
        named = {e.counts: e.statistic for _, e in reversed(self.rows)}
        judge = named.get("rows", named.get("units"))
        if judge is None:
            raise ValueError(
                "answer must hold a count or units for suppressed: ask for psidp.ask.count() in the same release."
            )
        small = {key: None for key, e in self.rows if e.statistic == judge and not e.value >= below}
        rows = tuple((key, e) for key, e in self.rows if key not in small)
        keys = [" / ".join("NULL" if k is None else str(k) for k in key) for key in small]
        more = f", and {len(keys) - MOST_NAMED:,} more" if len(keys) > MOST_NAMED else ""
        who = f" ({', '.join(keys[:MOST_NAMED])}{more})" if keys and self.by else ""
        groups = len({key for key, _ in self.rows})
        words = (
            f"suppressed: {len(small):,} of {groups:,} groups, whose noisy {judge} is below {below:g}, were left "
            f"out{who}, at no cost. What is left is larger on average than the truth where counts are near the "
            "threshold."
        )
        return replace(self, rows=rows, notes=(*self.notes, Note("step", words)))

    def figure(self, statistic: str = "") -> Any:
        """A picture: bars with intervals, or a heat map where two columns make groups; see psidp.figures.save.

        statistic: which of its numbers; each unless told, below each other; the first where there are more than six.
        """
        return import_module("psidp.present.figures").answer(self, statistic)

    def markdown(self) -> str:
        """The numbers as a table in Markdown, with what they cost below it."""
        return str(import_module("psidp.present.publication").markdown(self))

    def latex(self) -> str:
        """The numbers as a table in LaTeX (booktabs), with what they cost below it."""
        return str(import_module("psidp.present.publication").latex(self))

    def excel(self, path: str | Path) -> Path:
        """Write the numbers and all notes as a workbook (.xlsx), and give the path back; pip install 'psidp[excel]'."""
        return Path(import_module("psidp.present.publication").excel(self, path))

    def _with_counts(self, step: str, words: str, value: Change, lower: Change, upper: Change) -> Self:
        """The answer with changed counts and a note; refused where it holds none."""
        if not any(e.counts for _, e in self.rows):
            raise ValueError(
                f"answer must hold counts, units or histograms for {step}, got "
                f"{', '.join(dict.fromkeys(e.statistic for _, e in self.rows)) or 'no rows'}. Other numbers may well "
                "be below 0 or between whole numbers."
            )

        def changed(e: Estimate) -> Estimate:
            return replace(e, value=float(value(e.value)), lower=float(lower(e.lower)), upper=float(upper(e.upper)))

        rows = tuple((key, changed(e) if e.counts else e) for key, e in self.rows)
        return replace(self, rows=rows, notes=(*self.notes, Note("step", f"{step}: {words}")))

    def frame(self, kind: str = "pandas") -> Any:
        """The numbers as a frame: "pandas", "polars" or "arrow"."""
        columns: dict[str, list[Any]] = {name: [] for name in self.names}
        for row in self:
            for name, cell in row.items():
                columns[name].append(cell)
        if kind not in ("pandas", "polars", "arrow"):
            raise ValueError(f'kind must be "pandas", "polars" or "arrow", got kind={kind!r}.')
        try:
            module = __import__({"arrow": "pyarrow"}.get(kind, kind))
        except ImportError:
            raise MissingExtraError(kind, "db") from None
        return module.table(columns) if kind == "arrow" else module.DataFrame(columns)

    def summary(self) -> str:
        """What was asked, what it cost, what is left, and how far off the numbers may be."""
        bars = (
            f"Each interval covers its number with probability {self.confidence:g} over the noise. Values beyond their "
            "bounds count as the bound, and units with more than their share are scaled down: the interval of a number "
            "without a flag reaches further by what that may have moved, where it was measured; a quantile's does not."
        )
        return self.summarized(last=bars)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values."""
        rows = [
            {"key": [packed(k) for k in key], "statistic": e.statistic, "value": e.value}
            | {"standard_error": _finite(e.standard_error), "lower": e.lower, "upper": e.upper, "flag": e.flag}
            | ({"counts": e.counts} if e.counts else {})
            for key, e in self.rows
        ]
        return {
            "form": FORM,
            "by": list(self.by),
            "rows": rows,
            "guarantee": self.guarantee.to_dict(),
            "confidence": self.confidence,
            "notes": [note.to_dict() for note in self.notes],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The answer that to_dict wrote."""
        check_form(values.get("form"), FORM, "the answer")
        rows = tuple(
            (tuple(unpacked(k) for k in row["key"]), Estimate(*(row.get(name, "") for name in (*COLUMNS, "counts"))))
            for row in values["rows"]
        )
        guarantee = Guarantee.from_dict(values["guarantee"])
        confidence = values["confidence"] if "confidence" in values else values["level"]  # its name in version 0.1
        return cls(tuple(values["by"]), rows, guarantee, confidence, tuple(map(Note.from_dict, values["notes"])))


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if value == value else None


def packed(value: Any) -> Any:
    """A key's value in JSON."""
    if isinstance(value, datetime.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    return {"decimal": str(value)} if isinstance(value, Decimal) else value


def unpacked(value: Any) -> Any:
    """The value that packed wrote."""
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    readers: dict[str, Callable[[str], Any]] = {
        "timestamp": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat,
        "decimal": Decimal,
    }
    return readers[kind](text)
