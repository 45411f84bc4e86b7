"""Linear strategies in whole numbers: encode, sensitivity, plan, decode, errors of any linear question.

This floor knows no rows, no ledger and no dice: what it encodes is exact, and what it decodes was released.
"""

from psidp.strategies.choice import Choice, Expected, chosen
from psidp.strategies.optimise import banded, optimised
from psidp.strategies.participation import Participation
from psidp.strategies.strategy import Strategy
from psidp.strategies.toeplitz import Toeplitz
from psidp.strategies.workload import Question, Workload

__all__ = [
    "Choice",
    "Expected",
    "Participation",
    "Question",
    "Strategy",
    "Toeplitz",
    "Workload",
    "banded",
    "chosen",
    "optimised",
]
