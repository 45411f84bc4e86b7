"""The card of a budget's report: everything that was released from the budget since it was opened."""

from typing import Any

from psidp.ledger.report import Report
from psidp.present.card.parts import Total

__all__ = ["report_words"]


def report_words(report: Report) -> dict[str, Any]:
    """The fields of the card in words; its promise is the lifetime of the budget, across resets and renewals."""
    b = report.budget
    return {
        "title": f"Everything released from the budget {b.name}",
        "mechanism": "all releases of the budget together",
        "bound": "",
        "covered": (f"all releases that the ledger lists for the budget {b.name} since it was opened: {b.purpose}",),
        "not_covered": ("releases from the same data that were not entered in this ledger",),
        "publisher": b.actor,
        "total": Total(f"all budgets of the ledger for one {b.unit}", report.unit_total.psi, report.unit_total.kappa),
    }
