r"""One run: an audit that stays valid when all canaries go through a single run and depend on each other at will.

Each canary is included by a fair coin of its own. The attack names some canaries "in" and as many "out"; the number of
right guesses bounds psi. With p_i = P(i right of r guesses, m canaries), flipping one coin shows for every set I of
counts

.. math:: \sum_{i \in I} \frac{i}{m} p_i \le R\Big(\sum_{i \in I} \frac{r - i + 1}{m} p_{i-1}\Big)

(docs/design/audit.md). Taking I = {i, i+1, ...} from the observed count downwards shows what P(so many right) can be.

References:
    Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2024.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.auditing.curves import Approximate, Curves, Gaussian
from psidp.auditing.result import FORM
from psidp.auditing.scores import CONFIDENCE, checked
from psidp.guarantee import Guarantee
from psidp.maths.binomial import binomial_tail
from psidp.maths.bisection import bracket, ratio_of, within
from psidp.symbols import symbol

__all__ = ["OneRunResult", "audit_one_run", "possible"]

SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Shares of the canaries that are guessed when the caller names no number; each pays an equal part of alpha."""
UNFAIR = 1e-9
"""Coins less likely than this to be fair are refused."""
PRECISION = 1e-6
Guesses = tuple[tuple[int, int], ...]
"""(right, made) for each number of guesses."""


@dataclass(frozen=True, eq=False)
class OneRunResult:
    """What one run with canaries proves. Each statement holds with the stated confidence."""

    psi: float
    """Lower bound, rounded down."""
    confidence: float
    kappa: float
    canaries: int
    guesses: Guesses
    claimed: Guarantee | None
    p_value: float | None
    """Smallest alpha at which the claim is refuted; None without a claim."""
    method: str = field(default="one run", init=False)

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at this confidence; False without a claim."""
        return self.p_value is not None and self.p_value <= 1.0 - self.confidence

    def epsilon(self, delta: float) -> float:
        """Lower bound on epsilon at delta for any mechanism, rounded down."""
        curves = Approximate(symbol("delta").number(delta))
        return _strength(curves, self.guesses, self.canaries, 1.0 - self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "form": FORM,
            "psi": self.psi,
            "method": self.method,
            "confidence": self.confidence,
            "kappa": self.kappa,
            "canaries": self.canaries,
            "guesses": [{"right": right, "made": made} for right, made in self.guesses],
            "claimed": None if self.claimed is None else self.claimed.to_dict(),
            "p_value": self.p_value,
            "refuted": self.refuted,
            "epsilon": {"delta": 1e-5, "lower": self.epsilon(1e-5)},
        }


def audit_one_run(
    included: Any,
    scores: Any,
    confidence: float = 0.95,
    *,
    guesses: int | None = None,
    claimed: Guarantee | None = None,
) -> OneRunResult:
    """Lower bound on psi from one run with canaries, valid however the canaries depend on each other.

    Guarantees:
        The bound exceeds the mechanism's psi with probability 1 - confidence at most, whatever the mechanism does with
        the canaries together; tests/auditing/test_one_run.py tries the trap in which bounds for independent runs fail.

    Args:
        included: for each canary whether its own fair coin put it into the data.
        scores: for each canary the attack's score, a high one saying "in"; or guesses 1 (in), -1 (out), 0 (none).
        confidence: chance that the bound holds, (0, 1).
        guesses: how many canaries are guessed, half of them "in" and half "out": fixed before the scores are seen.
            Unless told, five numbers are tried and paid for. Guesses given as 1, -1 and 0 must then have this number,
            or be about all canaries.
        claimed: the Guarantee to test.

    Canaries with equal scores are guessed wrong first: ties count against the auditor.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> included = rng.random(1000) < 0.5
        >>> audit_one_run(included, included + rng.normal(0, 0.5, 1000)).psi > 0.8
        True
    """
    alpha = 1.0 - CONFIDENCE.number(confidence)
    coins, row = _coins(included), checked("scores", scores)
    if coins.shape != row.shape:
        raise ValueError(f"included and scores must have one entry a canary, got {coins.size} and {row.size}.")
    if claimed is not None and not isinstance(claimed, Guarantee):
        raise TypeError(f"claimed must be a Guarantee, such as Guarantee(psi=1.0), got {type(claimed).__name__}.")
    made = _made(coins, row, guesses)
    kappa = 0.0 if claimed is None else claimed.kappa
    curves = Gaussian(kappa)
    p_value = None if claimed is None else _p_value(curves, claimed.psi, made, coins.size)
    psi = _strength(curves, made, coins.size, alpha)
    return OneRunResult(psi, float(confidence), kappa, int(coins.size), made, claimed, p_value)


def possible(curves: Curves, strength: float, right: int, made: int, canaries: int, chance: float) -> bool:
    """Whether P(at least `right` of `made` guesses right) = `chance` is compatible with the curve.

    With r_i = sum over j >= i of (j/m) p_j and h_i = sum over j >= i of ((r - j)/m) p_j the theorem says
    h_(i-1) >= R^-1(r_i), and r_0 + h_0 = r/m. Both grow least if all the chance sits at `right` itself.
    """
    r, h = chance * right / canaries, chance * (made - right) / canaries
    for i in range(right, 0, -1):
        wanted = curves.inverse(strength, r)
        if not wanted > h:
            return True
        r += (i - 1) / (made - i + 1) * (wanted - h)
        h = wanted
        if r + h > made / canaries * (1.0 + 1e-9):
            return False
    return True


def _p_value(curves: Curves, strength: float, guesses: Guesses, canaries: int) -> float:
    """Smallest alpha at which some number of guesses refutes the curve, to a relative 1e-6, rounded up."""
    smallest = 1.0
    for right, made in guesses:

        def left(alpha: float, right: int = right, made: int = made) -> bool:
            return possible(curves, strength, right, made, canaries, alpha)

        if not left(1.0):
            smallest = min(smallest, bracket(left, 1e-12, 1.0, ratio_of(1.0 + 1e-6), geometric=True)[1])
    return min(1.0, smallest * len(guesses))


def _strength(curves: Curves, guesses: Guesses, canaries: int, alpha: float) -> float:
    """Largest strength that some number of guesses refutes at its part of alpha, rounded down."""
    best = 0.0
    for right, made in guesses:

        def refuted(strength: float, right: int = right, made: int = made) -> bool:
            return not possible(curves, strength, right, made, canaries, alpha / len(guesses))

        best = max(best, _last(refuted, best, curves.largest))
    return best * (1.0 - 1e-9)


def _last(refuted: Callable[[float], bool], low: float, high: float) -> float:
    """The largest refuted strength in [low, high], or low."""
    return bracket(refuted, low, high, within(PRECISION))[0] if refuted(low) else low


def _coins(included: Any) -> NDArray[np.bool_]:
    """The coins as booleans, refused unless they can have been fair."""
    row = checked("included", included)
    if not np.isin(row, (0.0, 1.0)).all():
        raise ValueError("included (which canaries were in the data) must be True or False for each canary.")
    heads = int(row.sum())
    if binomial_tail(max(heads, row.size - heads), row.size, 0.5) < UNFAIR:
        raise ValueError(
            f"included must come from fair coins, one a canary: {heads} of {row.size} in the data is too far from half."
        )
    return np.asarray(row, dtype=bool)


def _made(coins: NDArray[np.bool_], row: NDArray[np.float64], guesses: int | None) -> Guesses:
    """Right guesses for each number of guesses; ready guesses must be as many as was said, or about every canary."""
    numbers = _numbers(guesses, row.size)
    if not np.isin(row, (-1.0, 0.0, 1.0)).all():
        return tuple((_right(coins, row, n), n) for n in numbers)
    made, said = int((row != 0.0).sum()), row.size if guesses is None else guesses
    if made != said:
        raise ValueError(
            f"guesses (how many canaries are guessed, fixed before the scores are seen) must be the number of 1 and "
            f"-1, got guesses={said} and {made} of them."
        )
    return ((int((row == np.where(coins, 1.0, -1.0)).sum()), made),)


def _numbers(guesses: int | None, canaries: int) -> list[int]:
    """How many canaries are guessed: even numbers, fixed by the number of canaries alone."""
    if guesses is None:
        return sorted({max(2 * ceil(share * (canaries // 2)), 2) for share in SHARES}) if canaries > 1 else [1]
    if isinstance(guesses, bool) or not (isinstance(guesses, int) and 1 <= guesses <= canaries):
        raise ValueError(f"guesses must be a whole number from 1 to {canaries}, the number of canaries, got {guesses}.")
    return [guesses]


def _right(coins: NDArray[np.bool_], scores: NDArray[np.float64], made: int) -> int:
    """Right guesses when the highest half of `made` is called in and the lowest half out; ties guessed wrong first."""
    called_in = made - made // 2
    from_top = np.lexsort((coins, -scores))
    from_bottom = np.lexsort((~coins, scores))
    top = from_top[:called_in]
    bottom = from_bottom[: made // 2]
    return int(coins[top].sum()) + int((~coins[bottom]).sum())
