"""The card of a budget's report: everything that was released from the budget since it was opened."""

from typing import Any

from psidp.ledger.report import Report
from psidp.present.card.parts import Total

__all__ = ["UNTOLD", "report_words"]

UNTOLD = "psidp clipped it in what a curator released; a card that is made with the ledger says in which releases"
"""What a report alone knows of limits, where a curator released something."""


def report_words(report: Report) -> dict[str, Any]:
    """The fields of the card in words; its promise is the lifetime of the budget, across resets and renewals."""
    b = report.budget
    return {
        "title": f"Everything released from the budget {b.name}",
        "mechanism": "all releases of the budget together",
        "bound": UNTOLD if report.units else "",
        "covered": (f"all releases that the ledger lists for the budget {b.name} since it was opened: {b.purpose}",),
        "not_covered": ("releases from the same data that were not entered in this ledger",),
        "total": Total(f"all budgets of the ledger for one {b.unit}", report.unit_total.psi, report.unit_total.kappa),
    }
