"""Guarantee: the one value everything speaks in.

Guarantee(psi, kappa) promises: psi-GDP except for an event of probability at most kappa, that is
delta(epsilon) <= kappa + (1 - kappa) delta_psi(epsilon) for every epsilon >= 0, for both directions of adjacency.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from html import escape
from math import expm1, fsum, inf, log1p
from typing import Any, Self, Unpack, cast, overload

import numpy as np

from psidp.errors import IncomparableError, MismatchError
from psidp.maths.bayes import loss_tail_quantile
from psidp.maths.covering import psi_covering_pure, psi_covering_rdp, psi_covering_zcdp
from psidp.maths.elementwise import Array, Reals
from psidp.maths.normal import TINY, UNIT
from psidp.maths.notion import GaussianNotions, known_by_our_names, psi_of, spelled_out, worth
from psidp.maths.profile import delta_from_psi
from psidp.maths.profile_inverse import epsilon_from_psi
from psidp.maths.renyi import rho_from_psi
from psidp.maths.roc import auc_from_psi, fnr_from_psi, tpr_from_psi
from psidp.maths.rounding import bounded, root_above, root_below
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.notebook_view import NotebookView
from psidp.symbols import float_above, float_below, symbol, whole

__all__ = ["Guarantee", "compose"]

_TOO_WEAK = "promises so little that the psi which covers it is too large for a float"


@total_ordering
@dataclass(frozen=True, slots=True, eq=True, repr=False)
class Guarantee(NotebookView):
    """psi-GDP except for an event of probability at most kappa, for a stated adjacency and unit of privacy.

    Args:
        psi: sensitivity index Delta/sigma, [0, inf).
        kappa: probability of outright failure, [0, 1).
        adjacency: "add-remove" or "replace-one".
        unit: whose data the guarantee protects, in words: "record", "patient", "household".

    Every method rounds to the private side. Guarantees compare by privacy loss: g < h means that g is more private,
    and comparing two whose curves cross is refused.

    Examples:
        >>> g = Guarantee(psi=1.0)
        >>> g.epsilon(1e-5), g.auc
        (4.37717..., 0.76024...)
        >>> Guarantee.gaussian(epsilon=1, delta=1e-5) < g
        True
    """

    psi: float
    kappa: float = 0.0
    adjacency: Adjacency = "add-remove"
    unit: str = "record"

    def __post_init__(self) -> None:
        object.__setattr__(self, "psi", symbol("psi").number(self.psi) + 0.0)
        object.__setattr__(self, "kappa", symbol("kappa").number(self.kappa) + 0.0)
        check_adjacency(self.adjacency)
        if not (isinstance(self.unit, str) and self.unit.strip()):
            raise ValueError(f'unit must say whose data is protected, such as "record", got unit={self.unit!r}.')

    @classmethod
    @known_by_our_names
    @spelled_out
    def gaussian(
        cls,
        *,
        psi: float | None = None,
        adjacency: Adjacency = "add-remove",
        unit: str = "record",
        **notions: Unpack[GaussianNotions],
    ) -> Self:
        """The guarantee of the Gaussian mechanism that has one property, given in exactly one way.

        epsilon=, delta= | sensitivity=, sigma= | auc= | advantage= | tpr=, fpr= | alpha=, rho= | zcdp= | psi=

        Not for a claim about another mechanism: for that there are from_pure, from_approximate, from_zcdp and from_rdp.
        Targets are met from the private side: the psi given back never exceeds epsilon at delta, as computed.

        Examples:
            >>> Guarantee.gaussian(sensitivity=1, sigma=2).psi
            0.5
            >>> Guarantee.gaussian(auc=0.75)
            Guarantee(psi=0.9538...)
        """
        named: dict[str, Any] = {"psi": psi, **notions}
        given = {name: value for name, value in named.items() if value is not None}
        return cls(psi=psi_of(given), adjacency=adjacency, unit=unit)

    @classmethod
    def from_pure(cls, epsilon: float, *, adjacency: Adjacency = "add-remove", unit: str = "record") -> Self:
        """What epsilon-DP of any mechanism is worth: psi = 2 Phi^-1(e^eps/(1 + e^eps)); randomised response needs it.

        Examples:
            >>> round(Guarantee.from_pure(1.0).psi, 4)
            1.232
        """
        epsilon = symbol("epsilon").at_least(epsilon)
        return cls(worth(psi_covering_pure(epsilon), {"epsilon": epsilon}), 0.0, adjacency, unit)

    @classmethod
    def from_approximate(
        cls, epsilon: float, delta: float, *, adjacency: Adjacency = "add-remove", unit: str = "record"
    ) -> Self:
        """What (epsilon, delta)-DP of any mechanism is worth: the psi of epsilon-DP, with kappa = delta.

        Examples:
            >>> Guarantee.from_approximate(1.0, 1e-6).kappa
            1e-06
        """
        delta = symbol("delta").number(delta)
        epsilon = symbol("epsilon").at_least(epsilon)
        pure = cls.from_pure(worth(inf if delta == 1.0 else epsilon, {"epsilon": epsilon, "delta": delta}))
        return cls(pure.psi, delta, adjacency, unit)

    @classmethod
    def from_zcdp(cls, rho: float, kappa: float, *, adjacency: Adjacency = "add-remove", unit: str = "record") -> Self:
        """What rho-zCDP of any mechanism is worth: the smallest psi that, with kappa, covers the improved conversion.

        Above rho = 35, say, where that conversion's delta at 0 is 1 to the last digit, psi is that of the
        (epsilon, kappa)-DP that follows: a promise still, but up to twice the smallest psi.

        Examples:
            >>> round(Guarantee.from_zcdp(0.5, kappa=1e-6).psi, 3)
            1.54
        """
        rho = symbol("zcdp").at_least(rho)
        return cls(worth(psi_covering_zcdp(rho, _positive(kappa)), {"zcdp": rho}, _TOO_WEAK), kappa, adjacency, unit)

    @classmethod
    def from_rdp(
        cls, alpha: float, rho: float, kappa: float, *, adjacency: Adjacency = "add-remove", unit: str = "record"
    ) -> Self:
        """What (alpha, rho)-RDP of any mechanism is worth: the smallest psi that, with kappa, covers the conversion.

        Above rho = 35, say, psi is that of the (epsilon, kappa)-DP that follows, as in from_zcdp.

        Examples:
            >>> round(Guarantee.from_rdp(8.0, 0.5, kappa=1e-6).psi, 3)
            1.03
        """
        alpha, rho = symbol("alpha").at_most(alpha), symbol("rho").at_least(rho)
        if not (alpha > 1.0 and rho < inf):
            raise ValueError(f"RDP must have alpha > 1 and a finite rho, got alpha={alpha}, rho={rho}.")
        psi = worth(psi_covering_rdp(alpha, rho, _positive(kappa)), {"alpha": alpha, "rho": rho}, _TOO_WEAK)
        return cls(psi, kappa, adjacency, unit)

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Reals) -> Array: ...
    def delta(self, epsilon: Reals) -> float | Array:
        """Smallest delta such that (epsilon, delta)-DP holds: kappa + (1 - kappa) delta_psi(epsilon)."""
        return self._mixed(delta_from_psi(self.psi, epsilon))

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: Reals) -> Array: ...
    def epsilon(self, delta: Reals) -> float | Array:
        """Smallest epsilon such that (epsilon, delta)-DP holds; inf where delta <= kappa."""
        if self.kappa == 0.0:
            return epsilon_from_psi(self.psi, delta)
        target = symbol("delta").array(delta)
        rest = np.clip((target - self.kappa) / (1.0 - self.kappa) * (1.0 - 4.0 * UNIT), 0.0, 1.0)
        epsilon = np.where(target > self.kappa, epsilon_from_psi(self.psi, rest), inf)
        return float(epsilon) if epsilon.ndim == 0 else epsilon

    @overload
    def roc(self, fpr: float) -> float: ...
    @overload
    def roc(self, fpr: Reals) -> Array: ...
    def roc(self, fpr: Reals) -> float | Array:
        """Largest true positive rate of any attack at a false positive rate."""
        if self.kappa == 0.0:
            return tpr_from_psi(self.psi, fpr)
        return self._mixed(tpr_from_psi(self.psi, self._stretched(fpr)))

    @overload
    def tradeoff(self, fpr: float) -> float: ...
    @overload
    def tradeoff(self, fpr: Reals) -> Array: ...
    def tradeoff(self, fpr: Reals) -> float | Array:
        """Smallest false negative rate of any attack at a false positive rate: the f of f-DP."""
        if self.kappa == 0.0:
            return fnr_from_psi(self.psi, fpr)
        rate = (1.0 - self.kappa) * (1.0 - 4.0 * UNIT) * fnr_from_psi(self.psi, self._stretched(fpr))
        lowest = np.maximum(rate - 2.0 * TINY, 0.0)
        return lowest if lowest.ndim else float(lowest)

    @overload
    def rdp(self, alpha: float) -> float: ...
    @overload
    def rdp(self, alpha: Reals) -> Array: ...
    def rdp(self, alpha: Reals) -> float | Array:
        """Renyi divergence of order alpha; inf while kappa > 0, since failure has no finite divergence."""
        return rho_from_psi(self.psi, alpha) if self.kappa == 0.0 else rho_from_psi(self.psi, alpha) + inf

    @property
    def auc(self) -> float:
        """Largest area under an attack's ROC curve: 1 - (1 - kappa)^2 Phi(-psi/sqrt 2)."""
        if self.kappa == 0.0:
            return float(auc_from_psi(self.psi))
        rest = (1.0 - self.kappa) ** 2 * (1.0 - float(auc_from_psi(self.psi)))
        return min(1.0, 1.0 - rest * (1.0 - 4.0 * UNIT) + 2.0 * UNIT)

    @property
    def advantage(self) -> float:
        """Largest TPR - FPR of any attack: 1 - 2 (1 - kappa) Phi(-psi/2)."""
        return float(self.delta(0.0))

    def sigma(self, sensitivity: float) -> float:
        """Noise for which a Gaussian mechanism of this sensitivity keeps the guarantee, rounded up."""
        sensitivity = symbol("sensitivity").number(sensitivity)
        if not self.psi > 0.0:
            raise ValueError("psi must be above 0 to choose sigma: psi=0 needs infinite noise.")
        return bounded(float_above(Fraction(sensitivity) / Fraction(self.psi)))

    def odds_multiplier(self, probability: float) -> float:
        """Factor by which a release multiplies an attacker's odds at most, except with this probability; rounded up.

        Holds for every mechanism with this guarantee; inf where probability <= kappa.

        Examples:
            >>> round(Guarantee(psi=1.0).odds_multiplier(0.01), 1)
            22.7
        """
        return loss_tail_quantile(self.psi, self.kappa, symbol("probability").number(probability))

    def group(self, k: int) -> Self:
        """The guarantee for groups of k: k psi. Refused while kappa > 0, where no such rule holds."""
        k = whole("k", k)
        if self.kappa > 0.0:
            raise ValueError(f"group privacy needs kappa = 0, got kappa={self.kappa}.")
        psi = bounded(float_above(k * Fraction(self.psi)))
        return type(self)(psi, 0.0, self.adjacency, self.unit)

    def shares(self, n: int) -> Self:
        """The guarantee of each of n equal releases that fit into this one, the last one included.

        psi/sqrt(n) and kappa/n, both rounded down, so that n of them compose to no more: in `compose`, and in a ledger,
        which adds up psi^2 to the last bit. (psi/sqrt(n) in floats may be a hair too large, and then the last release
        is refused.) `Ledger.split` does another thing: it gives what is left to several budgets.

        Examples:
            >>> week = Guarantee(psi=1.0).shares(52)
            >>> week.psi, compose([week] * 52).psi <= 1.0
            (0.13867..., True)
        """
        n = whole("n", n)
        psi = root_below(Fraction(self.psi) ** 2 / n)
        kappa = self.kappa if n == 1 else float_below(Fraction(self.kappa) / n * (1 - Fraction(1, 2**49)))
        return type(self)(psi, kappa, self.adjacency, self.unit)

    def __lt__(self, other: object) -> bool:
        return self._at_least_as_private(other) and self != other if isinstance(other, Guarantee) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._at_least_as_private(other) if isinstance(other, Guarantee) else NotImplemented

    def _at_least_as_private(self, other: "Guarantee") -> bool:
        """Whether no attack does better against this one than against the other; refused where the two curves cross.

        True exactly when neither kappa nor advantage is larger (docs/design/guarantee.md); advantages so close that
        rounding could hide a crossing count as crossing.
        """
        _same_terms([self, other])
        if self.kappa <= other.kappa and self.psi <= other.psi:
            return True
        if self.kappa >= other.kappa and self.psi >= other.psi:
            return False
        mine, theirs, room = self.advantage, other.advantage, 1.0 + 64.0 * UNIT
        if self.kappa < other.kappa and mine * room <= theirs:
            return True
        if self.kappa > other.kappa and mine >= theirs * room:
            return False
        raise IncomparableError(f"{self!r} and {other!r} cross: each is more private against some attack.")

    def _mixed(self, rate: float | Array) -> float | Array:
        """kappa + (1 - kappa) rate, rounded up."""
        if self.kappa == 0.0:
            return rate
        mixed = np.minimum((self.kappa + (1.0 - self.kappa) * rate) * (1.0 + 4.0 * UNIT), 1.0)
        return mixed if mixed.ndim else float(mixed)

    def _stretched(self, fpr: Reals) -> Array:
        """fpr/(1 - kappa), at most 1, rounded up."""
        rate = symbol("fpr").array(fpr)
        return np.where(rate > 0.0, np.minimum(rate / (1.0 - self.kappa) * (1.0 + 4.0 * UNIT) + 2.0 * TINY, 1.0), 0.0)

    def to_dict(self) -> dict[str, float | str]:
        """The guarantee as plain values."""
        return {"psi": self.psi, "kappa": self.kappa, "adjacency": self.adjacency, "unit": self.unit}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """The guarantee that to_dict wrote."""
        unknown = set(values) - {"psi", "kappa", "adjacency", "unit"}
        if unknown or "psi" not in values:
            raise ValueError(f"a guarantee has psi, kappa, adjacency and unit, got {sorted(values)}.")
        return cls(**cast("dict[str, Any]", dict(values)))

    def to_json(self) -> str:
        """The guarantee as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The guarantee that to_json wrote."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError("a guarantee in JSON is an object with psi, kappa, adjacency and unit.")
        return cls.from_dict(values)

    def __repr__(self) -> str:
        shown = [f"psi={self.psi!r}"]
        shown += [f"kappa={self.kappa!r}"] if self.kappa else []
        shown += [f"adjacency={self.adjacency!r}"] if self.adjacency != "add-remove" else []
        shown += [f"unit={self.unit!r}"] if self.unit != "record" else []
        return f"Guarantee({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = {
            "psi": f"{self.psi:.6g}",
            "kappa": f"{self.kappa:.3g}",
            "epsilon at delta = 1e-5": f"{self.epsilon(1e-5):.4g}",
            "advantage": f"{self.advantage:.4g}",
            "AUC": f"{self.auc:.4g}",
            "adjacency": self.adjacency,
            "unit": self.unit,
        }
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
        return f"<table>{cells}</table>"


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of all together: psi = sqrt(sum psi_i^2), kappa = 1 - prod(1 - kappa_i), both rounded up.

    Valid also when each mechanism is chosen after seeing what the earlier ones released, as long as the guarantees
    themselves were fixed beforehand.

    Examples:
        >>> compose([Guarantee(3.0), Guarantee(4.0)]).psi
        5.0

    References:
        Dong, Roth and Su 2022, Corollary 3.3.
    """
    parts = list(guarantees) if isinstance(guarantees, Iterable) else [guarantees]
    if not (parts and all(isinstance(g, Guarantee) for g in parts)):
        raise TypeError(f"compose needs at least one Guarantee and nothing else, got {guarantees!r}.")
    _same_terms(parts)
    square = sum((Fraction(g.psi) ** 2 for g in parts), Fraction(0))
    psi = bounded(root_above(square))
    kappa = -expm1(fsum(log1p(-g.kappa) for g in parts))
    kappa = kappa * (1.0 + 8.0 * UNIT) if sum(g.kappa > 0.0 for g in parts) > 1 else max(g.kappa for g in parts)
    return Guarantee(psi, kappa, parts[0].adjacency, parts[0].unit)


def _same_terms(parts: list[Guarantee]) -> None:
    for name in ("adjacency", "unit"):
        values = sorted({str(getattr(g, name)) for g in parts})
        if len(values) > 1:
            raise MismatchError(f"guarantees must share one {name}, got {' and '.join(map(repr, values))}.")


def _positive(kappa: float) -> float:
    kappa = symbol("kappa").number(kappa)
    if not kappa > 0.0:
        raise ValueError(f"kappa (probability of outright failure) must be above 0 here, got kappa={kappa}.")
    return kappa
