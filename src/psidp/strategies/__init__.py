"""Linear strategies in whole numbers: encode, sensitivity, plan, decode, errors of any linear question.

This floor knows no rows, no ledger and no randomness: it encodes exact totals and decodes released numbers.
"""

from psidp.strategies.bands import Band, BandChoice, best_bands
from psidp.strategies.basis import Basis
from psidp.strategies.choice import Choice, Expected, chosen
from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals
from psidp.strategies.optimise import banded, optimised
from psidp.strategies.ordered import Ordered, ordered
from psidp.strategies.participation import Participation
from psidp.strategies.residual_plan import ResidualPlan, least_psi, least_total, least_worst
from psidp.strategies.strategy import Strategy
from psidp.strategies.toeplitz import Toeplitz
from psidp.strategies.training import ModelError
from psidp.strategies.workload import Question, Workload

__all__ = [
    "Band",
    "BandChoice",
    "Basis",
    "Choice",
    "Expected",
    "Haar",
    "Marginals",
    "ModelError",
    "Ordered",
    "Participation",
    "Question",
    "ResidualPlan",
    "Strategy",
    "Toeplitz",
    "Workload",
    "banded",
    "best_bands",
    "chosen",
    "least_psi",
    "least_total",
    "least_worst",
    "optimised",
    "ordered",
]
