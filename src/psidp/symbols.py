"""The quantities psidp speaks of, each declared once: name, letter, meaning, domain, typical range, other names.

A name here is the name everywhere: Python argument, command-line flag, JSON key, column and axis label.
The object that holds a domain also tests it and writes the refusal, so that the two cannot drift apart.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, nextafter
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SYMBOLS", "Symbol", "finite", "masked", "nullable", "symbol", "whole"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """One quantity: what it is called, what it means, and where it lives."""

    name: str
    letter: str
    meaning: str
    domain: str
    typical: str
    elsewhere: str = ""

    lower: float = field(init=False)
    upper: float = field(init=False)

    def __post_init__(self) -> None:
        lower, upper = self.domain[1:-1].split(",")
        object.__setattr__(self, "lower", float(lower))
        object.__setattr__(self, "upper", float(upper))

    def array(self, value: Any) -> NDArray[np.float64]:
        """`value` as float64 with every entry inside the domain, or a refusal that names the first outside."""
        numbers = self._numbers(value)
        inside = self._inside(numbers)
        if not inside.all():
            where = np.unravel_index(int(np.argmin(inside)), inside.shape)
            raise ValueError(self.refusal(float(numbers[where]), where))
        return numbers

    def number(self, value: Any) -> float:
        """`value` as one float inside the domain."""
        numbers = self.array(value)
        if numbers.ndim:
            raise TypeError(f"{self.name} ({self.meaning}) must be one number, got shape {numbers.shape}.")
        return float(numbers)

    def at_least(self, value: Any) -> float:
        """The smallest float inside the domain that is not below one exact number, such as a Fraction."""
        number = self.number(value)
        return number if not _exact(value) > number else self.number(nextafter(number, inf))

    def at_most(self, value: Any) -> float:
        """The largest float inside the domain that is not above one exact number, such as a Fraction."""
        number = self.number(value)
        return number if not _exact(value) < number else self.number(nextafter(number, -inf))

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

    def _inside(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where the entries lie in the domain; in positive form, so that NaN lies outside."""
        above = numbers >= self.lower if self.domain[0] == "[" else numbers > self.lower
        below = numbers <= self.upper if self.domain[-1] == "]" else numbers < self.upper
        return np.asarray(above & below)

    def _numbers(self, value: Any) -> NDArray[np.float64]:
        """`value` as float64 without ever reading text, booleans, masks or complex numbers as numbers."""
        try:
            raw = np.asarray(value)
        except ValueError as error:
            raise TypeError(f"{self.name} ({self.meaning}) must be a rectangular array of numbers.") from error
        if raw.dtype.kind not in "iufO" or _hides_no_number(value):
            raise TypeError(self._no_number(value))
        if raw.dtype.kind == "O":
            return self._objects(raw)
        with np.errstate(over="ignore"):  # a long double beyond the floats becomes inf
            return raw.astype(np.float64, copy=False)

    def _objects(self, raw: NDArray[Any]) -> NDArray[np.float64]:
        """Fractions and large integers, one by one."""
        out = np.empty(raw.shape)
        for where, entry in np.ndenumerate(raw):
            if not isinstance(entry, Real) or isinstance(entry, bool | np.bool_):
                raise TypeError(self._no_number(entry))
            try:
                out[where] = float(entry)
            except OverflowError:
                raise ValueError(self.refusal("a number too large for a float")) from None
        return out

    def _no_number(self, value: object) -> str:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else shown[:37] + "..."
        return (
            f"{self.name} ({self.meaning}) must be a real number or an array of them, got {shown} "
            f"of type {type(value).__name__}."
        )


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


def _exact(value: Any) -> Any:
    """One number as it was given: of a type that compares with a float without being rounded to one."""
    return value.item() if isinstance(value, np.ndarray) else value


def _hides_no_number(value: Any) -> bool:
    """Whether NumPy would read a mask or a boolean as a number, on its own or among numbers in a list."""
    if isinstance(value, list | tuple):
        return any(map(_hides_no_number, value))
    if not isinstance(value, np.ndarray):
        return isinstance(value, bool | np.bool_)
    masked = sys.modules.get("numpy.ma")  # where nobody loaded it there is no mask, and loading it is slow
    return value.dtype.kind == "b" or (masked is not None and isinstance(value, masked.MaskedArray))


_ALL = (
    Symbol("psi", "ψ", "sensitivity index Delta/sigma", "[0,inf)", "0.1 to 2", "mu in GDP; 1/noise_multiplier"),
    Symbol("kappa", "κ", "probability of outright failure", "[0,1)", "0 or below 1e-6", "delta slack"),
    Symbol("epsilon", "ε", "privacy loss bound", "[0,inf]", "0.1 to 10", "eps"),
    Symbol("delta", "δ", "probability slack of (epsilon, delta)-DP", "[0,1]", "1e-10 to 1e-5", "delta"),
    Symbol("log_delta", "log δ", "natural logarithm of delta", "[-inf,0]", "-25 to -10"),
    Symbol("alpha", "α", "order of the Renyi divergence", "[1,inf]", "1 to 64", "order, lambda"),
    Symbol("rho", "ρ", "Renyi divergence of order alpha", "[0,inf]", "0 to 20", "epsilon(alpha), RDP epsilon"),
    Symbol("zcdp", "ρ", "zero-concentrated DP parameter", "[0,inf)", "0.005 to 2", "rho"),
    Symbol("fpr", "x", "false positive rate of the attack", "[0,1]", "1e-5 to 0.1", "alpha, type I error"),
    Symbol("tpr", "R(x)", "true positive rate of the attack", "[0,1]", "fpr to 1", "power, 1 - beta"),
    Symbol("fnr", "f(x)", "false negative rate of the attack", "[0,1]", "0 to 1 - fpr", "beta, type II error"),
    Symbol("auc", "AUC", "area under the ROC curve", "[0.5,1]", "0.5 to 0.99", "AUROC, C statistic"),
    Symbol("advantage", "Adv", "largest TPR - FPR of any attack", "[0,1]", "0 to 0.99", "total variation, eta"),
    Symbol("prior", "π", "probability of membership before the release", "[0,1]", "0.001 to 0.5", "baseline"),
    Symbol("probability", "p", "chance of the event", "[0,1]", "1e-5 to 0.05"),
    Symbol("sensitivity", "Δ", "L2 sensitivity of the query", "[0,inf)", "any", "l2_norm_clip, max_grad_norm"),
    Symbol("sigma", "σ", "standard deviation of the noise", "(0,inf)", "any", "std, scale, stddev"),
    Symbol("noise_multiplier", "σ/Δ", "noise over sensitivity in DP-SGD", "(0,inf)", "0.5 to 10", "sigma, z"),
    Symbol("sampling_rate", "q", "chance of a record to be in a batch", "[0,1]", "1e-4 to 0.1", "q, sample_rate"),
    Symbol("steps", "T", "number of noisy steps", "[1,inf)", "1 to 1e6", "num_steps, T"),
    Symbol("epochs", "k", "times that the data are gone through", "(0,inf)", "1 to 100", "num_epochs"),
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
    return Symbol(name, name, "a finite number", "(-inf,inf)", "any").number(value)


def whole(name: str, value: Any) -> int:
    """`value` as an int of at least 1, for an argument called `name` that counts something."""
    if isinstance(value, bool) or not (isinstance(value, Integral) and int(value) >= 1):
        raise ValueError(f"{name} must be a whole number of at least 1, got {name}={value}.")
    return int(value)


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
