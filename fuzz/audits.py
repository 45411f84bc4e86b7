"""Whatever an attack's scores are, the audit's answer hangs together: only ranks count, ties never help the auditor."""

from math import inf
from random import Random
from typing import Any
from unittest.mock import patch

from fuzz.campaign import Relapse
from psidp import Guarantee, audit
from psidp.auditing import independent
from psidp.auditing.pairs import pair_wins

__all__ = ["RELAPSES", "explore"]

METHODS = ("both", "pairs", "ranks", "threshold")
ODD = (inf, -inf, 0.0, -0.0, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308)


def explore(random: Random) -> None:
    """Twenty audits of small tables of scores, some of them ties only, some upside down."""
    for _ in range(20):
        scores = _scores(random)
        ins = [random.choice(scores) for _ in range(random.randrange(1, 60))]
        outs = [random.choice(scores) for _ in range(random.randrange(1, 60))]
        given: dict[str, Any] = {"confidence": random.uniform(0.01, 0.999), "method": random.choice(METHODS)}
        given["seed"] = random.randrange(2**32)
        _look(ins, outs, Guarantee(random.choice((0.0, random.uniform(0.0, 4.0)))), given)
        _look_at_nothing(ins, outs, given)


def _scores(random: Random) -> list[float]:
    """A few values, so that there are ties."""
    return [
        random.choice((*ODD, float(random.randrange(9)), random.gauss(0, 1))) for _ in range(random.randrange(1, 12))
    ]


def _look(ins: list[float], outs: list[float], claimed: Guarantee, given: dict[str, Any]) -> None:
    result, told = audit(ins, outs, claimed=claimed, **given), f"audit({ins}, {outs}, claimed={claimed!r}, **{given})"
    assert 0.0 <= result.psi <= 12.0, f"{told}: psi {result.psi}"
    assert 0.0 < (result.p_value or 0.0) <= 1.0, f"{told}: p-value {result.p_value}"
    assert result.auc_interval[0] <= result.auc_interval[1], f"{told}: {result.auc_interval}"
    low, high = result.tpr(0.1)
    assert 0.0 <= low <= high <= 1.0, f"{told}: tpr in [{low}, {high}]"
    band = result.roc()
    assert ((band.lower <= band.tpr) & (band.tpr <= band.upper)).all(), f"{told}: the curve leaves its band"
    places = {value: float(place) for place, value in enumerate(sorted({*ins, *outs}))}
    ranked = audit([places[x] for x in reversed(ins)], [places[x] for x in outs], claimed=claimed, **given)
    assert ranked.psi == result.psi, f"{told}: psi {result.psi}, but {ranked.psi} for its ranks in another order"


def _look_at_nothing(ins: list[float], outs: list[float], given: dict[str, Any]) -> None:
    """Where no in-score beats an out-score there is no evidence at all."""
    top = max(ins)
    above = [max(x, top) for x in outs]
    found = audit(ins, above, **given).psi
    assert found == 0.0, f"audit({ins}, {above}, **{given}) proves psi {found} from ties"


def _with_ties(scores: Any, seed: int) -> tuple[int, int, int]:
    wins, ties, pairs = pair_wins(scores, seed)
    return wins + ties, 0, pairs


RELAPSES: dict[str, Relapse] = {
    "ties count for the auditor": lambda: patch.object(independent, "pair_wins", _with_ties),
}
