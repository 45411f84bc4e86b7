"""What follows from a promise: the numbers and the sentences of a card, computed once for all of its formats."""

from functools import lru_cache
from typing import Any

from psidp.accounting.upper import UpperEnds
from psidp.guarantee import Guarantee
from psidp.maths.normal import UNIT
from psidp.present.words import DELTAS, EPSILONS, sentences

__all__ = ["derived_numbers", "derived_sentences", "same"]

FPRS = (0.01, 0.001)


@lru_cache(maxsize=256)
def derived_numbers(promise: Guarantee | UpperEnds, delta: float, prior: float) -> dict[str, Any]:
    """The numbers of a card, which each of its formats asks for."""
    p, fpr = promise, FPRS[0]
    deltas = sorted({*DELTAS, delta}, reverse=True)
    rates = [float(rate) for rate in p.roc([*FPRS, prior])]
    hit = prior * rates[0]
    ppv = min(1.0, hit / (hit + (1.0 - prior) * fpr) * (1.0 + 8.0 * UNIT))
    return {
        "epsilon_at_delta": [{"delta": d, "epsilon": float(p.epsilon(d))} for d in deltas],
        "delta_at_epsilon": [{"epsilon": e, "delta": float(p.delta(e))} for e in EPSILONS],
        "advantage": p.advantage,
        "auc": p.auc,
        "tpr_at_fpr": [{"fpr": x, "tpr": tpr} for x, tpr in zip(FPRS, rates, strict=False)],
        "ppv": {"prior": prior, "fpr": fpr, "ppv": ppv},
        "reconstruction": {"prior": prior, "bound": rates[-1]},
    }


@lru_cache(maxsize=256)
def derived_sentences(promise: Guarantee | UpperEnds, gaussian: bool) -> tuple[str, ...]:
    """The words of a card, which each of its formats asks for."""
    return tuple(sentences(promise, gaussian))


def same(one: Any, other: Any, room: float) -> bool:
    """Whether plain values are equal, numbers to a relative `room`: last digits differ from machine to machine."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name], room) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b, room) for a, b in zip(one, other, strict=True))
    if isinstance(one, float | int) and isinstance(other, float | int):
        return abs(one - other) <= room * abs(one)
    return bool(one == other)
