"""Choice: what is chosen from noisy numbers before totals are drawn, at a share of psi^2. One file for each."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # a question imports its choices
    from psidp.tables.question import Priced

__all__ = ["Choice"]


class Choice(Protocol):
    """One stage: an exact query made of ordinary measures, noise, and a question with one unknown less."""

    def open(self, priced: "Priced") -> bool:
        """Whether the question leaves this unknown."""

    def sql(self, priced: "Priced") -> list[str]:
        """The texts that `exact` runs."""

    def exact(self, priced: "Priced") -> Any:
        """The exact numbers that the choice needs. Draws nothing: of the first stage this runs before payment."""

    def settled(self, priced: "Priced", exact: Any) -> "Priced":
        """The question without this unknown, and what was found. Draws noise."""
