"""What measures of clipped values have in common: a column, and public bounds that are given or chosen privately."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar, Protocol, Self

from psidp.tables.estimate import Cells, count_flag
from psidp.tables.measures.measure import Measure, OfColumn, Option, is_real, number

__all__ = ["EXAMPLE_ROWS", "Bounded", "Found", "bounds_in_words", "check_bounds", "column_and_bounds", "digits"]

EXAMPLE_ROWS, EXAMPLE_WIDTH = 10_000, 100.0
"""Rows of a group and width of bounds that a plan's examples suppose."""

LARGEST = 2.0**850


class Found(Protocol):
    """Bounds that were chosen, and how much they raise a value and lower it on average over all rows."""

    lower: float
    upper: float
    taken: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bounded(OfColumn):
    """Values of a column, clipped to [lower, upper]. Bounds that are to be chosen stand as -1 and 1."""

    lower: float = None  # type: ignore[assignment]  # what is missing is refused with the cure
    upper: float = None  # type: ignore[assignment]
    bounds: str | None = None

    width_words: ClassVar[str] = ""
    """In what its error is, where bounds are to be chosen."""

    grows_with: ClassVar[str] = ""
    """With what of the bounds its error grows."""

    def __post_init__(self) -> None:
        OfColumn.__post_init__(self)
        lower, upper = check_bounds(self.column, self.lower, self.upper, self.bounds)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def half(self) -> float:
        """Half of the width of the bounds."""
        return (self.upper - self.lower) / 2.0

    def bounded(self, found: Found, *, noise: float, groups: int, whole: bool) -> Self:
        """The same with bounds that were chosen; `noise`: of a total in rows' worth; `whole`: of integers."""
        return type(self)(self.column, found.lower, found.upper, "chosen")

    def details(self) -> list[str]:
        known = [] if self.chooses_bounds else [f"lower {self.lower:g}", f"upper {self.upper:g}"]
        return [*known, *([f"bounds {self.bounds}"] if self.bounds else [])]

    def clipped_words(self) -> str:
        return "" if self.chooses_bounds else f"{self.column!r} {bounds_in_words(self.lower, self.upper)}"

    @property
    def scale_words(self) -> str:
        return f" times {self.width_words}" if self.chooses_bounds else ""

    def example(self, error: float, times: int) -> str:
        also, both = (f" and a contribution of {times}", " and with the contribution") if times > 1 else ("", "")
        cls: Any = type(self)
        if self.spread.ratio:
            where = f"{EXAMPLE_WIDTH:g} apart{also} a {self.kind} over {EXAMPLE_ROWS:,} rows"
            off = cls(self.column, -EXAMPLE_WIDTH / 2.0, EXAMPLE_WIDTH / 2.0).largest_error
            off *= min(1.0, error / EXAMPLE_ROWS)
        else:
            where = f"from 0 to {EXAMPLE_WIDTH:g}{also} a {self.kind}"
            off = cls(self.column, 0.0, EXAMPLE_WIDTH).spread.reach * error
        return (
            f"Bounds are chosen. For example, with bounds {where} is off by about {digits(off, 2)}; that grows with "
            f"{self.grows_with}{both}."
        )

    def seems_empty(self, cells: Cells) -> bool:
        if self.vector.parts == 1:  # a sum alone, without the number of rows
            return False
        rows, errors = cells.coordinate(0)
        return bool(count_flag(float(rows.sum()), float(errors.max(initial=0.0)) * sqrt(len(rows))))

    def to_dict(self) -> dict[str, Any]:
        known = Measure.to_dict(self)
        if self.bounds == "auto":
            del known["lower"], known["upper"]
        return known

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        return (Option(cls.kind, "column:lower:upper, or column:auto", cls.parse),)

    @classmethod
    def parse(cls, text: str) -> Self:
        """column:lower:upper, or column:auto."""
        column, colon, last = text.rpartition(":")
        if not colon:
            raise ValueError(
                "a bounded column must be column:lower:upper, such as cost:0:5000, or column:auto where nobody knows "
                f"its bounds, got {text!r}."
            )
        return cls(column, bounds="auto") if last == "auto" and column else cls(*column_and_bounds(text))


def column_and_bounds(text: str) -> tuple[str, float, float]:
    """column:lower:upper; the column itself may contain colons."""
    parts = text.rsplit(":", 2)
    if len(parts) != 3:
        raise ValueError(f"a bounded column must be column:lower:upper, such as cost:0:5000, got {text!r}.")
    return parts[0], number(parts[1], text), number(parts[2], text)


def check_bounds(column: str, lower: Any, upper: Any, bounds: Any) -> tuple[float, float]:
    """The bounds as floats, or -1 and 1 where they are to be chosen; refused where they are neither."""
    if bounds is not None and bounds != "chosen":
        if bounds != "auto" or lower is not None or upper is not None:
            raise ValueError(
                f'bounds of {column!r} must be given as lower and upper, or be "auto", not both, got bounds={bounds!r}.'
            )
        return -1.0, 1.0
    if lower is None or upper is None:
        raise ValueError(f'bounds of {column!r} must be given as lower and upper, or be chosen: bounds="auto".')
    if not (is_real(lower) and is_real(upper) and -inf < lower < upper < inf):
        raise ValueError(
            f"bounds of {column!r} must be finite numbers with lower < upper, got lower={lower!r}, upper={upper!r}."
        )
    if not (max(abs(lower), abs(upper)) <= LARGEST and float(upper) - float(lower) >= 1.0 / LARGEST):
        raise ValueError(f"bounds of {column!r} must lie in 2^-850 to 2^850, got lower={lower}, upper={upper}.")
    return float(lower), float(upper)


def bounds_in_words(lower: float, upper: float) -> str:
    """How values beyond the bounds count."""
    return f"below {lower:.6g} counts as {lower:.6g}, above {upper:.6g} as {upper:.6g}"


def digits(value: float, places: int) -> str:
    """A number with so many digits, and no power of ten."""
    return f"{float(f'{value:.{places}g}'):,.15g}"
