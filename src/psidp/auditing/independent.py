"""Independent runs: the audit of scores of which each comes from a run of its own."""

import secrets
from collections.abc import Callable
from math import sqrt
from typing import Any, Literal

from psidp.auditing.curves import Gaussian
from psidp.auditing.fixed_threshold import FixedThreshold
from psidp.auditing.pairs import pair_p_value, pair_psi, pair_wins
from psidp.auditing.ranks import Ranks
from psidp.auditing.result import AuditResult
from psidp.auditing.scores import CONFIDENCE, Scores, checked_seed
from psidp.auditing.thresholds import Thresholds
from psidp.guarantee import Guarantee
from psidp.maths.normal import quantile

__all__ = ["METHODS", "Method", "audit"]

Method = Literal["both", "pairs", "ranks", "threshold", "clopper-pearson"]
METHODS = ("both", "pairs", "ranks", "threshold", "clopper-pearson")
Test = tuple[float, float | None]
"""A lower bound on psi, and the p-value of the claim."""


def audit(
    in_scores: Any,
    out_scores: Any,
    confidence: float = 0.95,
    method: Method = "both",
    *,
    claimed: Guarantee | None = None,
    threshold: float | None = None,
    scores_from: Literal["independent runs", "one run"] = "independent runs",
    seed: int | None = None,
) -> AuditResult:
    """Lower bound on psi proved by an attack's scores, and a test of a claimed Guarantee.

    Guarantees:
        Whatever the mechanism and the attack, the bound exceeds the mechanism's psi with probability 1 - confidence at
        most, at every number of scores; likewise a true claim gets a p-value of p or less with probability p at most.
        docs/design/audit.md proves it, tests/auditing/test_validity.py and `./dev bench audit_validity` measure it.

    Args:
        in_scores: scores of independent runs with the person, a high score saying "in"; infinite ones are fine.
        out_scores: scores of independent runs without.
        confidence: chance that the bound holds, (0, 1).
        method: "both" (ranks and thresholds, each at half the price), "ranks" (tightest when the leak is spread over
            all scores), "threshold" (when it sits in the extremes), "pairs" (exact and simple), "clopper-pearson"
            (one threshold that was chosen beforehand).
        claimed: the Guarantee to test, as it is written: with kappa, in-scores may be +inf and out-scores -inf.
        threshold: for "clopper-pearson" only; a score strictly above it says "in".
        scores_from: "one run" is refused, since canaries of one run are not independent: see audit_one_run.
        seed: of the random pairs and the simulated experiments; fresh unless told, and kept in the result.

    The score and its orientation must be fixed before these scores are seen. Ties between in and out count for out.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> result = audit(rng.normal(1, 1, 10_000), rng.normal(0, 1, 10_000), claimed=Guarantee(psi=0.5), seed=1)
        >>> result.psi > 0.95, result.refuted
        (True, True)

    References:
        docs/design/audit.md; Clopper and Pearson 1934; Mann and Whitney 1947.
    """
    alpha = 1.0 - CONFIDENCE.number(confidence)
    _refuse(method, threshold, scores_from, claimed)
    scores = Scores.of(in_scores, out_scores)
    seed = secrets.randbits(53) if seed is None else checked_seed(seed)
    kappa = 0.0 if claimed is None else claimed.kappa
    used = _used(method, scores, kappa, alpha)
    tests = [_TESTS[name](scores, alpha / len(used), kappa, claimed, seed, threshold) for name in used]
    p_values = [p for _, p in tests if p is not None]
    return AuditResult(
        psi=max(psi for psi, _ in tests),
        estimate=max(sqrt(2.0) * float(quantile(min(max(scores.auc, 0.5), 1.0 - 1e-16))), 0.0),
        method=method,
        used=used,
        confidence=float(confidence),
        kappa=kappa,
        claimed=claimed,
        p_value=min(1.0, len(used) * min(p_values)) if p_values else None,
        seed=seed,
        scores=scores,
    )


def _used(method: Method, scores: Scores, kappa: float, alpha: float) -> tuple[str, ...]:
    """The tests a method makes; sizes and alpha decide, never the scores themselves."""
    if method not in ("both", "ranks"):
        return (method,)
    each = alpha / 2.0 if method == "both" else alpha
    ranks = "ranks" if Ranks.reach(scores.n_in, scores.n_out, kappa, each) else "pairs"
    return (ranks, "threshold") if method == "both" else (ranks,)


def _by_pairs(
    scores: Scores, alpha: float, kappa: float, claimed: Guarantee | None, seed: int, threshold: float | None
) -> Test:
    wins, _, pairs = pair_wins(scores, seed)
    return pair_psi(wins, pairs, alpha, kappa), None if claimed is None else pair_p_value(wins, pairs, claimed)


def _by_ranks(
    scores: Scores, alpha: float, kappa: float, claimed: Guarantee | None, seed: int, threshold: float | None
) -> Test:
    ranks = Ranks(scores, alpha, kappa, seed)
    return ranks.psi(), None if claimed is None else ranks.p_value(claimed.psi)


def _by_threshold(
    scores: Scores, alpha: float, kappa: float, claimed: Guarantee | None, seed: int, threshold: float | None
) -> Test:
    ladder, curves = Thresholds(scores), Gaussian(kappa)
    p_value = None if claimed is None else ladder.p_value(curves, claimed.psi)
    return ladder.strength(curves, alpha), p_value


def _by_fixed(
    scores: Scores, alpha: float, kappa: float, claimed: Guarantee | None, seed: int, threshold: float | None
) -> Test:
    assert threshold is not None
    fixed = FixedThreshold.of(scores, threshold)
    return fixed.psi(alpha, kappa), None if claimed is None else fixed.p_value(claimed)


_TESTS: dict[str, Callable[[Scores, float, float, Guarantee | None, int, float | None], Test]] = {
    "pairs": _by_pairs,
    "ranks": _by_ranks,
    "threshold": _by_threshold,
    "clopper-pearson": _by_fixed,
}


def _refuse(method: str, threshold: float | None, scores_from: str, claimed: object) -> None:
    """Refuse what no score could make right."""
    if scores_from == "one run":
        raise ValueError(
            f'method "{method}" needs one run for each score: the scores of one run depend on each other, and every '
            "bound for independent runs then claims too much. Use psidp.audit_one_run."
        )
    if scores_from != "independent runs":
        raise ValueError(f'scores_from must be "independent runs" or "one run", got scores_from={scores_from!r}.')
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got method={method!r}.")
    if (method == "clopper-pearson") != (threshold is not None):
        raise ValueError(
            'threshold must be given for method "clopper-pearson" and for no other, '
            f"got threshold={threshold} with method={method!r}."
        )
    if threshold is not None and not abs(threshold) < float("inf"):
        raise ValueError(f"threshold (chosen before the scores were seen) must be a finite number, got {threshold}.")
    if claimed is not None and not isinstance(claimed, Guarantee):
        raise TypeError(f"claimed must be a Guarantee, such as Guarantee(psi=1.0), got {type(claimed).__name__}.")
