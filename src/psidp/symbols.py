"""The quantities psidp speaks of, each declared once: name, letter, meaning, domain, typical range, other names.

A name here is the name everywhere: Python argument, command-line flag, JSON key, column and axis label.
The object that holds a domain also tests it and writes the refusal, so that the two cannot drift apart.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SYMBOLS",
    "Symbol",
    "exact",
    "finite",
    "float_above",
    "float_below",
    "masked",
    "nullable",
    "symbol",
    "whole",
]

EXACT = 2.0**53
"""Below this every integer is a float."""


def float_above(number: float | Fraction | Decimal) -> float:
    """The smallest float at or above a number; inf where there is none.

    Examples:
        >>> float_above(2**53 + 1) - 2.0**53, float_below(2**53 + 1) - 2.0**53
        (2.0, 0.0)
    """
    nearest = _nearest(number)
    return nextafter(nearest, inf) if nearest < number else nearest


def float_below(number: float | Fraction | Decimal) -> float:
    """The largest float at or below a number; -inf where there is none."""
    nearest = _nearest(number)
    return nextafter(nearest, -inf) if nearest > number else nearest


def _nearest(number: float | Fraction | Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


@dataclass(frozen=True, slots=True)
class Symbol:
    """One quantity: what it is called, what it means, and where it lives."""

    name: str
    letter: str
    meaning: str
    domain: str
    typical: str
    elsewhere: str = ""

    up: bool = False
    """Whether an integer that is no float is rounded up, so that a reported loss errs on the private side."""

    lower: float = field(init=False)
    upper: float = field(init=False)
    least: float = field(init=False, repr=False)
    """The smallest float in the domain."""
    most: float = field(init=False, repr=False)
    """The largest float in the domain."""

    def __post_init__(self) -> None:
        lower, upper = map(float, self.domain[1:-1].split(","))
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "least", lower if self.domain[0] == "[" else nextafter(lower, inf))
        object.__setattr__(self, "most", upper if self.domain[-1] == "]" else nextafter(upper, -inf))

    def array(self, value: Any, up: bool | None = None) -> NDArray[np.float64]:
        """`value` as float64 with every entry inside the domain, or a refusal that names the first outside.

        Integers that are no floats are rounded up or down, if it is said, else to the side of this quantity.
        """
        numbers = self._numbers(value, self.up if up is None else up)
        inside = (numbers >= self.least) & (numbers <= self.most)  # in positive form, so that NaN lies outside
        if not inside.all():
            where = np.unravel_index(int(np.argmin(inside)), inside.shape)
            raise ValueError(self.refusal(float(numbers[where]), where))
        return numbers

    def number(self, value: Any, up: bool | None = None) -> float:
        """`value` as one float inside the domain; an integer that is no float is rounded as in `array`."""
        if type(value) is float:
            if self.least <= value <= self.most:
                return value
            raise ValueError(self.refusal(value))
        numbers = self.array(value, up)
        if numbers.ndim:
            raise TypeError(f"{self.name} ({self.meaning}) must be one number, got shape {numbers.shape}.")
        return float(numbers)

    def at_least(self, value: Any) -> float:
        """`value` as one float inside the domain; an integer that is no float is rounded up."""
        return self.number(value, up=True)

    def at_most(self, value: Any) -> float:
        """`value` as one float inside the domain; an integer that is no float is rounded down."""
        return self.number(value, up=False)

    def refusal(self, value: object, where: tuple[Any, ...] = ()) -> str:
        """The sentence that says `value` is outside the domain."""
        at = f" at index {', '.join(str(int(i)) for i in where)}" if where else ""
        got = f"got {self.name}={value}{at}.{self._advice(value)}"
        return f"{self.name} ({self.meaning}) must be in {self.interval}, {got}"

    def _advice(self, value: object) -> str:
        """What to do next: look where NaN came from, or take a number as others do."""
        if value != value:
            return " It is not a number: look where it was computed."
        return "" if self.typical == "any" else f" Typical: {self.typical}."

    @property
    def interval(self) -> str:
        """The domain as people write it."""
        return self.domain.replace(",", ", ")

    def _numbers(self, value: Any, up: bool) -> NDArray[np.float64]:
        """`value` as float64 without ever reading text, booleans, masks or complex numbers as numbers."""
        try:
            raw = np.asarray(value)
        except ValueError as error:
            raise TypeError(f"{self.name} ({self.meaning}) must be a rectangular array of numbers.") from error
        if not (raw.dtype.kind in "iufO" and raw.dtype.itemsize <= 8) or _hides_no_number(value):
            longer = raw.dtype.kind == "f" and raw.dtype.itemsize > 8
            raise TypeError(self._no_number(raw[()] if longer else value, up))
        if raw.dtype.kind == "O":
            return self._objects(raw, up)
        numbers = raw.astype(np.float64, copy=False)
        plain = raw is value and raw.dtype.kind == "f"
        if not plain and (np.abs(numbers) >= EXACT).any():  # NumPy may have rounded integers to nearest
            return self._objects(np.array(value, dtype=object), up)
        return numbers

    def _objects(self, raw: NDArray[Any], up: bool) -> NDArray[np.float64]:
        """Numbers one by one, integers of any size among them."""
        out = np.empty(raw.shape)
        for where, entry in np.ndenumerate(raw):
            exact = isinstance(entry, int | float | np.integer) or (
                isinstance(entry, np.floating) and entry.itemsize <= 8
            )
            if not exact or isinstance(entry, bool):
                raise TypeError(self._no_number(entry, up))
            plain = int(entry) if isinstance(entry, np.integer) else entry
            out[where] = float_above(plain) if up else float_below(plain)
        return out

    def _no_number(self, value: object, up: bool) -> str:
        """The sentence that refuses a type, with what to do where there is something to do."""
        shown = " ".join(spelled(value, repr).split())
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        kind = type(value).__name__ + (f" of {value.dtype}" if isinstance(value, np.ndarray) else "")
        return (
            f"{self.name} ({self.meaning}) must be a real number or an array of them: floats of at most 64 bits or "
            f"integers, got {shown} of type {kind}.{_cure(value, up)}"
        )


def _cure(value: object, up: bool) -> str:
    """What to do with a number or an array of another type."""
    if masked(value):
        return " Fill what is masked first, x.filled(...) of a masked array."
    longer = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    if not (longer or isinstance(value, Number)) or isinstance(value, bool | np.bool_ | complex | np.complexfloating):
        return ""
    side, beside = ("below", "inf") if up else ("above", "-inf")
    return f" Convert it with float(x), and take math.nextafter(float(x), {beside}) where that is {side} x."


def exact(value: Any, number: float) -> Fraction:
    """One checked value as it is; `number` is the float that stands for it."""
    return Fraction(int(value)) if isinstance(value, Integral) else Fraction(number)


def masked(value: Any) -> bool:
    """Whether a value is a masked array, or a list with one in it: NumPy would read what lies under the mask.

    Examples:
        >>> masked([np.ma.array([1.0], mask=[True]), [2.0]]), masked([[1.0], [2.0]])
        (True, False)
    """
    return _holds(value, lambda entry: isinstance(entry, np.ma.MaskedArray))


def nullable(value: Any) -> bool:
    """Whether a value's type has places for what is missing, other than NaN, or a list holds one that has.

    NumPy ignores a mask, and reads arrays of pandas' nullable types, of Arrow and of Polars as integers, floats or
    objects by whether something is missing. So it is asked of the type, and the answer depends on no entry.
    """
    return _holds(value, _nullable)


def _holds(value: Any, kind: Callable[[Any], bool]) -> bool:
    """Whether a value, or an entry of a list at any depth, is of this kind; plain numbers are passed over quickly."""
    if not isinstance(value, list | tuple):
        return kind(value)
    return not set(map(type, value)) <= PLAIN and any(_holds(entry, kind) for entry in value)


def _nullable(value: Any) -> bool:
    home = type(value).__module__.partition(".")[0]
    if home == "pandas":
        dtypes = getattr(value, "dtypes", None) if getattr(value, "ndim", 0) == 2 else [getattr(value, "dtype", None)]
        return not all(isinstance(dtype, np.dtype) for dtype in (() if dtypes is None else dtypes))
    return isinstance(value, np.ma.MaskedArray) or home in ("pyarrow", "polars")


LONGEST = 1_000
"""Letters of a name, a purpose or a key in words."""

PLAIN = {int, float, np.float64, np.float32, np.int64, np.int32}
"""Types of numbers that hide nothing."""


def _hides_no_number(value: Any) -> bool:
    """Whether NumPy would read a mask or a boolean as a number, on its own or among numbers in a list."""
    if isinstance(value, list | tuple):
        return any(map(_hides_no_number, value))
    if not isinstance(value, np.ndarray):
        return isinstance(value, bool | np.bool_)
    masked = sys.modules.get("numpy.ma")  # where nobody loaded it there is no mask, and loading it is slow
    return value.dtype.kind == "b" or (masked is not None and isinstance(value, masked.MaskedArray))


_ALL = (
    Symbol("psi", "ψ", "sensitivity index Delta/sigma", "[0,inf)", "0.1 to 2", "mu in GDP; 1/noise_multiplier", True),
    Symbol("kappa", "κ", "probability of outright failure", "[0,1)", "0 or below 1e-6", "delta slack", True),
    Symbol("epsilon", "ε", "privacy loss bound", "[0,inf]", "0.1 to 10", "eps"),
    Symbol("delta", "δ", "probability slack of (epsilon, delta)-DP", "[0,1]", "1e-10 to 1e-5", "delta"),
    Symbol("log_delta", "log δ", "natural logarithm of delta", "[-inf,0]", "-25 to -10"),
    Symbol("alpha", "α", "order of the Renyi divergence", "[1,inf]", "1 to 64", "order, lambda", True),
    Symbol("rho", "ρ", "Renyi divergence of order alpha", "[0,inf]", "0 to 20", "epsilon(alpha), RDP epsilon"),
    Symbol("zcdp", "ρ", "zero-concentrated DP parameter", "[0,inf)", "0.005 to 2", "rho"),
    Symbol("fpr", "x", "false positive rate of the attack", "[0,1]", "1e-5 to 0.1", "alpha, type I error", True),
    Symbol("tpr", "R(x)", "true positive rate of the attack", "[0,1]", "fpr to 1", "power, 1 - beta"),
    Symbol("fnr", "f(x)", "false negative rate of the attack", "[0,1]", "0 to 1 - fpr", "beta, type II error"),
    Symbol("auc", "AUC", "area under the ROC curve", "[0.5,1]", "0.5 to 0.99", "AUROC, C statistic"),
    Symbol("advantage", "Adv", "largest TPR - FPR of any attack", "[0,1]", "0 to 0.99", "total variation, eta"),
    Symbol("prior", "π", "probability of membership before the release", "[0,1]", "0.001 to 0.5", "baseline"),
    Symbol("probability", "p", "chance of the event", "[0,1]", "1e-5 to 0.05"),
    Symbol("sensitivity", "Δ", "L2 sensitivity of the query", "[0,inf)", "any", "l2_norm_clip, max_grad_norm", True),
    Symbol("sigma", "σ", "standard deviation of the noise", "(0,inf)", "any", "std, scale, stddev"),
    Symbol("noise_multiplier", "σ/Δ", "noise over sensitivity in DP-SGD", "(0,inf)", "0.5 to 10", "sigma, z"),
    Symbol("sampling_rate", "q", "chance of a record to be in a batch", "[0,1]", "1e-4 to 0.1", "q, sample_rate", True),
    Symbol("steps", "T", "number of noisy steps", "[1,inf)", "1 to 1e6", "num_steps, T", True),
    Symbol("epochs", "k", "times that the data are gone through", "(0,inf)", "1 to 100", "num_epochs", True),
)

ADJACENCIES = {
    "add-remove": ("one unit joins or leaves", "add-or-remove-one, unbounded DP"),
    "replace-one": ("one unit's data become any others, the number of units is public", "substitution, bounded DP"),
    "zero-out": ("one unit's data are blanked and add nothing, the number of units is public", "replace-special"),
}
"""Which data sets are neighbours: what each word means, and what others call it."""

SYMBOLS: dict[str, Symbol] = {entry.name: entry for entry in _ALL}


def symbol(name: str) -> Symbol:
    """The quantity called `name`."""
    return SYMBOLS[name]


def finite(name: str, value: Any) -> float:
    """`value` as one finite float, for an argument called `name` that is no quantity of its own."""
    return Symbol(name, name, "a finite number", "(-inf,inf)", "any", up=True).number(value)


def whole(name: str, value: Any) -> int:
    """`value` as an int of at least 1 and below MOST_COUNTED, for an argument called `name` that counts something."""
    if isinstance(value, bool) or not (isinstance(value, Integral) and 1 <= int(value) < MOST_COUNTED):
        most = " and below 10^4000" if isinstance(value, Integral) and int(value) > 1 else ""
        raise ValueError(f"{name} must be a whole number of at least 1{most}, got {name}={spelled(value)}.")
    return int(value)


MOST_COUNTED = 10**4000
"""Whatever is counted is fewer; Python refuses to write integers of more than 4,300 digits."""


def spelled(value: object, form: Callable[[object], str] = str) -> str:
    """A value for a refusal, whatever its size.

    Examples:
        >>> spelled(12), spelled(10**5000)
        ('12', 'an int with too many digits')
    """
    try:
        return form(value)
    except ValueError:
        return f"an {type(value).__name__} with too many digits"


def check_text(name: str, value: str, longest: int | None = LONGEST) -> str:
    """`value` itself, if it is text of sensible length that both databases can store as it is."""
    if not (isinstance(value, str) and value.strip()):
        raise ValueError(f"{name} must be said in words, got {name}={value!r}.")
    if "\0" in value or value.encode("utf-8", "ignore").decode() != value:
        raise ValueError(f"{name} must be Unicode text without NUL, got {name}={value!r}.")
    if not (longest is None or len(value) <= longest):
        raise ValueError(f"{name} must have at most {longest:,} letters, got {len(value):,}.")
    return value


def notation() -> Iterator[str]:
    """The lines of docs/notation.md."""
    yield "# Notation\n"
    yield "Made by `psidp notation`. One quantity has one name everywhere: argument, flag, JSON key, column, axis.\n"
    yield "| name | letter | meaning | domain | typical | elsewhere |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for s in _ALL:
        yield f"| `{s.name}` | {s.letter} | {s.meaning} | {s.interval} | {s.typical} | {s.elsewhere} |"
    yield "\n## Adjacency\n"
    yield "For which neighbours a promise holds. It is always said; promises for different ones are never composed.\n"
    yield "| name | neighbours | elsewhere |"
    yield "| --- | --- | --- |"
    for name, (meaning, elsewhere) in ADJACENCIES.items():
        yield f"| `{name}` | {meaning} | {elsewhere} |"
