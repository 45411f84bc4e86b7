"""The Gaussian mechanism: a query's answer plus exact Gaussian noise, with psi = sensitivity/sigma and no slop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from psidp.forms import check_form
from psidp.guarantee import Guarantee
from psidp.ledger.ledger import Ledger
from psidp.maths.notion import Notions, known_by_our_names, spelled_out
from psidp.maths.sensitivity import Adjacency
from psidp.mechanism.clipping import ClippedSum
from psidp.mechanism.release import Release
from psidp.noise.gaussian import LARGEST, RoundedGaussian, noisy_integer, noisy_integers, noisy_total, noisy_totals
from psidp.symbols import nullable, symbol

__all__ = ["GaussianMechanism"]

FORM = "psidp-release-1"


@dataclass(frozen=True, slots=True)
class GaussianMechanism:
    """x plus Gaussian noise of standard deviation sigma, rounded once to a power-of-two grid.

    Guarantees:
        What is released is a function of the real number x + sigma N, N a true normal, and of nothing else,
        for every finite x that a double, an integer or an array of them can hold. So `guarantee` is that of
        the continuous mechanism: psi = sensitivity/sigma, rounded up in the last place, in any number of
        dimensions, with no attack on floating point (docs/design/noise.md). The randomness is AES-256 keyed
        by the operating system; it cannot be seeded.

    Args:
        sensitivity: how far one unit of privacy can move the query, in L2 norm, [0, inf).
        sigma: standard deviation of the noise, [2^-990, 2^991).
        adjacency: "add-remove" or "replace-one".
        unit: whose data the guarantee protects, in words.
        grid: step of the released values, a power of two in [sigma 2^-44, sigma]; unless told, 2^24 to 2^25
            times below sigma.
        ledger: where every release is paid for before it is drawn; none by default.
        budget: the budget in that ledger.

    NaN silently counts as 0, and values beyond plus or minus `limit` as that limit: an error would reveal
    data. Both are part of the query, and the sensitivity has to hold for the query with them.

    Examples:
        >>> mechanism = GaussianMechanism(sensitivity=1.0, sigma=2.0)
        >>> mechanism.guarantee
        Guarantee(psi=0.5)
        >>> release = mechanism.release(123.4)
        >>> low, high = release.confidence_interval(0.999999999)
        >>> low < 123.4 < high
        True

    References:
        Mironov, "On significance of the least significant bits for differential privacy", CCS 2012; Haney,
        Desfontaines, Hartman, Shrestha and Hay, "Precision-based attacks and interval refining", 2022.
    """

    sensitivity: float
    sigma: float
    adjacency: Adjacency = "add-remove"
    unit: str = "record"
    grid: float | None = None
    ledger: Ledger | None = None
    budget: str = ""
    guarantee: Guarantee = field(init=False, compare=False)
    _noise: RoundedGaussian = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sensitivity = symbol("sensitivity").number(self.sensitivity)
        if (self.ledger is None) != (not self.budget):
            raise TypeError("ledger and budget must be given together.")
        noise = RoundedGaussian(self.sigma, self.grid)
        guarantee = Guarantee.gaussian(
            sensitivity=sensitivity, sigma=noise.sigma, adjacency=self.adjacency, unit=self.unit
        )
        for name, value in (
            ("sensitivity", sensitivity),
            ("sigma", noise.sigma),
            ("grid", noise.grid),
            ("guarantee", guarantee),
            ("_noise", noise),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    @known_by_our_names
    @spelled_out
    def calibrate(
        cls,
        sensitivity: float,
        *,
        guarantee: Guarantee | None = None,
        grid: float | None = None,
        ledger: Ledger | None = None,
        budget: str = "",
        psi: float | None = None,
        adjacency: Adjacency | None = None,
        unit: str | None = None,
        **notions: Unpack[Notions],
    ) -> Self:
        """The mechanism with the least noise that keeps a guarantee, or epsilon= and delta=, or any one notion.

        Guarantees:
            sigma is rounded up, so that the mechanism's own guarantee is never weaker than the one asked for.

        Examples:
            >>> GaussianMechanism.calibrate(1.0, epsilon=1.0, delta=1e-6).sigma
            4.2246...
            >>> GaussianMechanism.calibrate(3.0, guarantee=Guarantee(psi=0.5)).sigma
            6.0
        """
        asked: dict[str, Any] = {"psi": psi, **notions, "adjacency": adjacency, "unit": unit}
        terms = {name: value for name, value in asked.items() if value is not None}
        if psi is not None:
            terms["psi"] = symbol("psi").at_most(psi)  # a target here, and not a loss
        if guarantee is None:
            guarantee = Guarantee.gaussian(**terms)
        elif terms:
            raise TypeError(f"calibrate takes a guarantee or {', '.join(terms)}, not both.")
        sigma = guarantee.sigma(sensitivity)
        return cls(sensitivity, sigma, guarantee.adjacency, guarantee.unit, grid, ledger, budget)

    @property
    def limit(self) -> float:
        """Values beyond plus or minus this count as this."""
        return self._noise.limit

    def release(
        self,
        x: Any,
        *,
        integers: bool = False,
        out: NDArray[Any] | None = None,
        purpose: str = "",
        partition: str = "",
        retry_key: str = "",
        request: Any = None,
    ) -> Release:
        """x with noise, as a Release: a number for a number, an array of the same shape for an array.

        Args:
            x: a float, an integer of any size, an array of float16, float32, float64 or integers (or anything
                that turns into one), or a ClippedSum.
            integers: whole numbers out; only for whole numbers in.
            out: array for the result, which may be x itself; only for arrays of floats.
            purpose, partition, retry_key, request: with a ledger, as `Ledger.spend` takes them. The spend is durable
                before anything is drawn. Under a key that was answered, that answer comes back, whatever x is now
                (nothing derived from x is kept, so nothing can be compared): its `stored` is True.

        Refused before any noise is drawn: text, booleans, complex numbers, objects, masked arrays and arrays of
        pandas' nullable types, Arrow and Polars (by their type, whether something is missing or not), an `out` that
        does not fit, a ClippedSum that one unit can move further than the mechanism's sensitivity, and
        what the budget does not cover.
        """
        draw, stored = self._prepared(x, integers, out), False
        if self.ledger is None:
            payment = {"purpose": purpose, "partition": partition, "retry_key": retry_key, "request": request}
            if given := [name for name, value in payment.items() if value not in ("", None)]:
                raise TypeError(f"{', '.join(given)} must be given with a ledger: this mechanism has none.")
            value = draw()
        else:
            public = {"shape": list(np.shape(x)), "integers": integers, "asked": request}
            event = {"kind": "gaussian", "sensitivity": self.sensitivity, "sigma": self.sigma}
            spend = self.ledger.spend(
                self.budget,
                self.guarantee,
                purpose=purpose,
                event=event,
                partition=partition,
                retry_key=retry_key,
                request=public,
            )
            with spend as entry:
                value, stored = _unpacked(entry.answer(lambda: _packed(draw())), out), entry.stored
        rounding = 0.5 * self._noise.grid + (0.5 if integers else 0.0)
        return Release(value, self.sigma, self._noise.grid, rounding, self.guarantee, stored=stored)

    def _prepared(self, x: Any, integers: bool, out: NDArray[Any] | None) -> Callable[[], Any]:
        """The function that draws, once everything is checked; nothing is drawn yet."""
        noise = self._noise
        if isinstance(x, float) and not integers and out is None:
            return lambda: noise.add_one(float(x))
        if isinstance(x, ClippedSum):
            return self._prepared_sum(x, integers, out)
        if isinstance(x, int) and not isinstance(x, bool) and out is None:
            return lambda: noisy_integer(noise, x) if integers else noisy_total(noise, x)
        array = _numbers(x)
        if array.dtype.kind == "f":
            if integers:
                raise TypeError("integers=True must be used with whole numbers in, got an array of floats.")
            _refuse_unless_fits(out, array)
            beside = _whole_beside_floats(x)
            return lambda: _plain(_with_whole(noise, noise.add(array, out), beside))
        if out is not None:
            raise TypeError("out must be used with arrays of floats, got whole numbers in.")
        totals = np.minimum(array, np.uint64(LARGEST)) if array.dtype == np.uint64 else array
        whole = totals.astype(np.int64)
        return lambda: _plain(noisy_integers(noise, whole) if integers else noisy_totals(noise, whole))

    def _prepared_sum(self, total: ClippedSum, integers: bool, out: NDArray[Any] | None) -> Callable[[], Any]:
        """A clipped sum, if its sensitivity is no larger than the mechanism's."""
        needed = total.sensitivity(self.adjacency)
        if not needed <= self.sensitivity:
            raise ValueError(
                f"sensitivity (L2 sensitivity of the query) must be at least {needed} for this clipped sum under "
                f"{self.adjacency}, got sensitivity={self.sensitivity}."
            )
        if integers or out is not None:
            raise TypeError("a clipped sum must be released without integers= and out=.")
        return lambda: _plain(noisy_totals(self._noise, total.totals, total.unit))


def _numbers(x: Any) -> NDArray[Any]:
    """x as an array of real numbers; refused by its type alone, never by its values."""
    if nullable(x):
        raise TypeError(
            "x (the value to release) must be a number or an array without a mask or missing values, got "
            f"{type(x).__name__}. Fill it first: x.filled(0) of a masked array, x.to_numpy(...) of a series."
        )
    array = _listed(x) if isinstance(x, list | tuple) else np.asarray(x)
    plain = array.dtype.kind in "iu" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8)
    if not plain:
        raise TypeError(
            "x (the value to release) must be a number or an array of float16, float32, float64 or integers, "
            f"got {type(x).__name__} of {array.dtype}."
        )
    return array


def _listed(x: Any) -> NDArray[Any]:
    """A list of Python's numbers as an array, whose type depends on their types and not on their values: NumPy's own
    choice depends on how large they are, so that a refusal or another type would reveal data."""
    leaves = np.array(x, dtype=object)
    kinds = {type(leaf) for leaf in leaves.flat}
    whole = {kind for kind in kinds if issubclass(kind, int | np.integer) and not issubclass(kind, bool)}
    if not (whole and all(issubclass(kind, float | np.float16 | np.float32) for kind in kinds - whole)):
        return leaves if bool in kinds else np.asarray(x)
    if whole == kinds:
        return np.array([min(max(int(n), -LARGEST), LARGEST) for n in leaves.flat], np.int64).reshape(leaves.shape)
    # Whole ones beside floats are drawn apart, as they are: as floats, two that differ by 1 could differ by 2.
    return np.array([0.0 if type(n) in whole else float(n) for n in leaves.flat], np.float64).reshape(leaves.shape)


def _whole_beside_floats(x: Any) -> tuple[NDArray[np.bool_], NDArray[np.int64]] | None:
    """Where a list of floats has whole numbers, by their types, and these; None where it has none."""
    if not isinstance(x, list | tuple):
        return None
    leaves = np.array(x, dtype=object)
    places = np.array([isinstance(leaf, int | np.integer) for leaf in leaves.flat], bool).reshape(leaves.shape)
    totals = [min(max(int(n), -LARGEST), LARGEST) for n in leaves[places]]
    return (places, np.array(totals, np.int64)) if places.any() else None


def _with_whole(
    noise: RoundedGaussian, drawn: NDArray[Any], beside: tuple[NDArray[np.bool_], NDArray[np.int64]] | None
) -> NDArray[Any]:
    """What was drawn, with the whole numbers at their places."""
    if beside is not None:
        places, totals = beside
        drawn[places] = noisy_totals(noise, totals)
    return drawn


def _packed(value: Any) -> Any:
    """A drawn value as JSON can hold it: arrays and NumPy's numbers with the name of their type."""
    named = isinstance(value, np.ndarray | np.generic)
    return {"form": FORM} | ({"dtype": value.dtype.name, "value": value.tolist()} if named else {"value": value})


def _unpacked(packed: dict[str, Any], out: NDArray[Any] | None) -> Any:
    """The value that was packed, in `out` if there is one."""
    check_form(packed.get("form"), FORM, "the stored release")
    if "dtype" not in packed:
        return packed["value"]
    value = np.asarray(packed["value"], dtype=packed["dtype"])
    if out is None:
        return value if value.ndim else value[()]
    out[...] = value
    return out


def _plain(array: NDArray[Any]) -> Any:
    """A number for an array without dimensions, else the array itself."""
    return array if array.ndim else array[()]


def _refuse_unless_fits(out: NDArray[Any] | None, x: NDArray[Any]) -> None:
    """Refuse an `out` that cannot take the result."""
    if out is None:
        return
    fits = isinstance(out, np.ndarray) and out.shape == x.shape and out.dtype == x.dtype
    if not (fits and out.flags.writeable):
        raise ValueError(
            f"out must be a writeable array of {x.dtype} and shape {x.shape}, "
            f"got {getattr(out, 'dtype', type(out).__name__)} and shape {getattr(out, 'shape', None)}."
        )
