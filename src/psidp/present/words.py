"""What a guarantee means, as a table of equivalent statements and as sentences for people who never heard of it."""

import re
from dataclasses import dataclass

from psidp.accounting.upper import UpperEnds
from psidp.guarantee import Guarantee
from psidp.maths.bayes import bayes_error, odds_multiplier
from psidp.maths.renyi import rho_from_psi
from psidp.present.formatting import down, per_thousand, up

__all__ = ["OUTRIGHT", "Statement", "article", "sentences", "statements", "suspicion"]

OUTRIGHT = "kappa, outright failure"
"""The quantity that only a guarantee with kappa has."""
DELTAS = (1e-3, 1e-5, 1e-8)
EPSILONS = (0.0, 1.0, 3.0)
FPRS = (0.001, 0.01, 0.1)
ALPHAS = (2.0, 8.0, 32.0)
VOWEL = re.compile(r"hour|honest|heir|[aeio]|u(?!n[ai]|s|t[ei]|ro)")
CONSONANT = re.compile(r"eu|one|once")
"""How words begin that sound like a vowel, and exceptions."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One way to say the same thing: the theory, the quantity with its condition, the value, and its digits."""

    theory: str
    quantity: str
    value: float
    shown: str


def statements(guarantee: Guarantee) -> list[Statement]:
    """Every equivalent statement of the paper's theorem, with numbers; each value rounded to the private side."""
    g = guarantee
    rows = [Statement("sensitivity index", "psi = Delta/sigma", g.psi, up(g.psi, 6))]
    if g.kappa:
        rows.append(Statement("sensitivity index", OUTRIGHT, g.kappa, up(g.kappa)))
    rows += [_up("(epsilon, delta)-DP", f"epsilon at delta = {d:g}", float(g.epsilon(d))) for d in DELTAS]
    rows += [_up("(epsilon, delta)-DP", f"delta at epsilon = {e:g}", float(g.delta(e))) for e in EPSILONS]
    rows += [Statement("Gaussian DP, f-DP", "mu", g.psi, up(g.psi, 6))]
    rows += [_down("Gaussian DP, f-DP", f"FNR at FPR = {x:g}", float(g.tradeoff(x))) for x in FPRS[1:]]
    rows += [_up("Renyi DP", f"rho at alpha = {a:g}", float(g.rdp(a))) for a in ALPHAS]
    if not g.kappa:
        rows.append(_up("zero-concentrated DP", "rho", float(rho_from_psi(g.psi, 1.0))))
    rows += [_up("ROC curve", f"TPR at FPR = {x:g}", float(g.roc(x))) for x in FPRS]
    rows += [_up("ROC curve", "area under it, AUC", g.auc), _up("ROC curve", "advantage, max TPR - FPR", g.advantage)]
    if not g.kappa:
        rows.append(_down("Bayes error", "at even odds", float(bayes_error(g.psi, 0.5))))
    return rows


def _up(theory: str, quantity: str, value: float) -> Statement:
    return Statement(theory, quantity, value, up(value))


def _down(theory: str, quantity: str, value: float) -> Statement:
    return Statement(theory, quantity, value, down(value))


def sentences(guarantee: Guarantee | UpperEnds, gaussian: bool = True) -> list[str]:
    """Three sentences with natural frequencies, a fourth where outright failure is possible; `gaussian`: it is one.

    Of a guarantee, or of the upper ends of a run's curve.
    """
    g = guarantee
    right = (1.0 + g.advantage) / 2.0
    caught = float(g.roc(0.01))
    factor = g.odds_multiplier(0.01)
    if isinstance(g, Guarantee) and gaussian and not g.kappa:
        factor = float(odds_multiplier(g.psi, 0.01))
    said = [
        f"Someone who must tell from the release whether one {g.unit} was in the data, and would be right 500 times "
        f"in 1,000 by tossing a coin, is right at most {per_thousand(right)} times in 1,000, however clever.",
        f"An attacker who wrongly accuses no more than 10 of 1,000 that are not in the data finds at most "
        f"{per_thousand(caught)} of 1,000 that are in the data, instead of 10 by guessing.",
        _odds(factor, g.unit),
    ]
    if g.kappa:
        said.append(f"With a probability of at most {up(g.kappa, 2)} the protection fails outright.")
    return said


def _odds(factor: float, unit: str) -> str:
    """How much a suspicion of 1 in 1,000 may grow."""
    if factor == float("inf"):
        return f"Nothing keeps a suspicion that {article(unit)} is in the data from becoming certainty."
    return (
        f"In 99 of 100 releases, someone who gave 1 chance in 1,000 to {article(unit)} being in the data should give "
        f"at most {suspicion(factor)} in 1,000 afterwards: the odds grow {up(factor, 3)} times at most."
    )


def suspicion(factor: float) -> str:
    """What 1 in 1,000 becomes when its odds grow: in whole numbers from 2 on, below with digits that tell it from 1.

    Examples:
        >>> suspicion(3.63), suspicion(1.01), suspicion(1.0)
        ('4', '1.01', '1')
    """
    rate = factor / (factor + 999.0)
    return up(1000.0 * rate, 3) if factor < 2.0 else per_thousand(rate)


def article(noun: str) -> str:
    """The noun with "a" or "an", by how it sounds.

    Examples:
        >>> article("aircraft"), article("patient"), article("user"), article("hour"), article("umbrella")
        ('an aircraft', 'a patient', 'a user', 'an hour', 'an umbrella')
    """
    word = noun.lower()
    vowel = VOWEL.match(word) and not CONSONANT.match(word)
    return f"{'an' if vowel else 'a'} {noun}"
