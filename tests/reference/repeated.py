"""Many releases of one question with fresh noise, where the exact totals are read once."""

from psidp.tables import table
from psidp.tables.question import prepared


def repeated(question, psi, times):
    """The answers of a question at this psi. What is chosen from noisy numbers is chosen again each time."""
    draw = prepared(question.at(psi))
    return [table._answer(draw()) for _ in range(times)]
