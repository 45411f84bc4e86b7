"""Black box: run a mechanism on two neighbouring datasets, score what comes out, and test what it claims."""

from dataclasses import dataclass, field
from math import ceil, inf, sqrt
from typing import Any, Literal

import numpy as np

from psidp.auditing.independent import audit
from psidp.auditing.ranks import Ranks
from psidp.auditing.result import AuditResult
from psidp.auditing.runs import Mechanism, Progress, outputs
from psidp.auditing.scorers import Scorer, chosen
from psidp.auditing.scores import CONFIDENCE
from psidp.guarantee import Guarantee
from psidp.maths.mann_whitney import MannWhitney
from psidp.maths.normal import quantile

__all__ = ["MechanismAudit", "audit_mechanism", "runs_needed"]

TRAINING = 0.25
"""Share of the first runs on which the score is learnt."""
POWER = 0.9
"""Chance with which a mechanism that is worse by the tolerance has to be caught before PASS is said."""
MARGIN, MARGIN_OF_PAIRS = 1.2, 1.45
"""What the ranks' proved bound needs in excess of the normal approximation, and what the pairs need in their place."""


@dataclass(frozen=True, eq=False)
class MechanismAudit:
    """What so many runs say about a mechanism's claim."""

    verdict: Literal["PASS", "FAIL", "NOT ENOUGH RUNS"]
    """PASS: not refuted, and a mechanism worse by the tolerance would have been with probability 0.9."""
    more: int
    """Further runs on each dataset after which the next look would decide; 0 unless there are not enough."""
    stage: int
    """How often the mechanism was looked at; look j pays alpha 2^-j."""
    score: str
    """What the learnt score looks at."""
    training: int
    """Runs on each dataset that taught the score and were then set aside."""
    tolerance: float
    result: AuditResult
    """The audit of the other runs at this look's confidence."""
    scorer: Scorer = field(repr=False)

    @property
    def psi(self) -> float:
        """Lower bound on the mechanism's psi."""
        return self.result.psi

    def to_dict(self) -> dict[str, Any]:
        """The verdict and the audit behind it as plain values."""
        own = ("verdict", "more", "stage", "score", "training", "tolerance")
        return {name: getattr(self, name) for name in own} | {"result": self.result.to_dict()}


def audit_mechanism(
    mechanism: Mechanism,
    D: Any,
    D_prime: Any,
    *,
    runs: int = 2000,
    claimed: Guarantee,
    confidence: float = 0.95,
    tolerance: float = 0.1,
    processes: int | None = None,
    progress: Progress | None = None,
    seed: int | None = None,
    previous: MechanismAudit | None = None,
) -> MechanismAudit:
    """Run any callable on two neighbouring datasets and say PASS, FAIL or NOT ENOUGH RUNS about its claim.

    Guarantees:
        A mechanism that keeps its claim is called FAIL with probability 1 - confidence at most, over all looks
        together: look j pays (1 - confidence) 2^-j. The score is learnt on runs that the test never sees. No audit
        proves privacy: PASS says that this attack would have caught a mechanism worse than claimed by the tolerance.

    Args:
        mechanism: called with one dataset, gives a number or an array of numbers of one shape; run in processes of its
            own when that pays.
        D: a dataset.
        D_prime: a neighbour of it, in the claim's sense of neighbour.
        runs: runs on each of the two, a quarter of which teaches the score at the first look.
        claimed: the Guarantee to test.
        confidence: chance that a true claim is not called FAIL, (0, 1).
        tolerance: how much worse than claimed, relatively, a mechanism must be for PASS to promise that it is caught.
        processes: how many; unless told, as many as pay.
        progress: called with the runs done and wanted; unless told, a bar on a terminal.
        seed: of the audit's own dice, never of the mechanism's.
        previous: what an earlier look said about the same mechanism: its runs and its score are kept, and `runs` more
            are made.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> def noisy(x):
        ...     return x + rng.normal(0.0, 1.0)
        >>> audit_mechanism(noisy, 0.0, 1.0, runs=800, claimed=Guarantee(psi=0.5), seed=1).verdict
        'FAIL'
    """
    alpha = 1.0 - CONFIDENCE.number(confidence)
    _refuse(runs, claimed, tolerance, previous)
    outs, ins = outputs(mechanism, [D, D_prime], runs, processes, progress)
    stage = 1 if previous is None else previous.stage + 1
    if previous is None:
        training = max(int(TRAINING * runs), 2)
        scorer = chosen(outs[:training], ins[:training])
        low, high = scorer(outs[training:]), scorer(ins[training:])
    else:
        training, scorer = previous.training, previous.scorer
        before = previous.result.scores
        low, high = np.concatenate([before.outs, scorer(outs)]), np.concatenate([before.ins, scorer(ins)])
    share = alpha * 2.0**-stage
    result = audit(high, low, 1.0 - share, claimed=claimed, seed=seed)
    needed, next_look = (runs_needed(claimed, tolerance, a) for a in (share, share / 2.0))
    verdict: Literal["PASS", "FAIL", "NOT ENOUGH RUNS"] = "FAIL" if result.refuted else "PASS"
    more = 0
    if not result.refuted and result.n_in < needed:
        verdict, more = "NOT ENOUGH RUNS", next_look - result.n_in
    return MechanismAudit(verdict, more, stage, scorer.name, training, float(tolerance), result, scorer)


def runs_needed(claimed: Guarantee, tolerance: float, alpha: float) -> int:
    """Test runs on each dataset with which a Gaussian mechanism worse by the tolerance is caught with chance 0.9.

    By the normal approximation to the ranks' half of the test, with a margin; it plans runs and certifies nothing.

    Examples:
        >>> runs_needed(Guarantee(psi=1.0), 0.1, 0.05)
        3210
    """
    worse = claimed.psi * (1.0 + tolerance) if claimed.psi > 0.0 else tolerance
    here, there = (MannWhitney(psi, claimed.kappa, 1, 1) for psi in (claimed.psi, worse))
    gap = here.loss - there.loss
    spread = sqrt(2.0 * max(here.term_variance, there.term_variance))
    runs = 0
    for margin in (MARGIN, MARGIN_OF_PAIRS):
        reach = -float(quantile(alpha / 2.0)) * margin + float(quantile(POWER))
        runs = ceil(min((reach * spread / gap) ** 2 if gap > 0.0 else inf, 1e12))
        if Ranks.reach(runs, runs, claimed.kappa, alpha / 2.0):
            break
    return runs


def _refuse(runs: int, claimed: object, tolerance: float, previous: object) -> None:
    """Refuse what no run could make right."""
    if isinstance(runs, bool) or not (isinstance(runs, int) and runs >= 20):
        raise ValueError(f"runs (of the mechanism on each dataset) must be a whole number of at least 20, got {runs}.")
    if not isinstance(claimed, Guarantee):
        raise TypeError(f"claimed must be a Guarantee, such as Guarantee(psi=1.0), got {type(claimed).__name__}.")
    if not 0.0 < tolerance < inf:
        raise ValueError(f"tolerance (how much worse than claimed) must be in (0, inf), got tolerance={tolerance}.")
    if previous is not None and not isinstance(previous, MechanismAudit):
        raise TypeError(f"previous must be what audit_mechanism gave back, got {type(previous).__name__}.")
    if isinstance(previous, MechanismAudit) and previous.result.claimed != claimed:
        raise ValueError("previous must be about the same claim: a claim that changes between looks cannot be tested.")
