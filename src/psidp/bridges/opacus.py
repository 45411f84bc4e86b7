"""Opacus: an accountant that PrivacyEngine can use, with psidp's certified epsilon."""

from typing import Any

from psidp.accounting import DPSGD, account
from psidp.errors import MissingExtraError

__all__ = ["MECHANISM", "accountant_class", "register"]

MECHANISM = "psidp"


def register() -> type[Any]:
    """Make `PrivacyEngine(accountant="psidp")` work; gives the accountant's class back.

    Opacus must sample by Poisson (its default, poisson_sampling=True): the account is for that and for nothing else.
    """
    try:
        from opacus.accountants import registry
    except ImportError as missing:
        raise MissingExtraError("opacus", "opacus") from missing
    made = accountant_class()
    registry.register_accountant(MECHANISM, made, force=True)
    return made


def accountant_class() -> type[Any]:
    """The accountant: step, get_epsilon, mechanism and state_dict as Opacus expects them.

    A refused step or a refused state leaves the history as it was.
    """
    try:
        from opacus.accountants.accountant import IAccountant
    except ImportError as missing:
        raise MissingExtraError("opacus", "opacus") from missing

    class CertifiedAccountant(IAccountant):  # type: ignore[misc]
        """History of (noise_multiplier, sample_rate, steps), priced by psidp.account."""

        def __init__(self) -> None:
            super().__init__()

        def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
            """Record one noisy step."""
            DPSGD(noise_multiplier, sample_rate, 1)
            if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
                self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
            else:
                self.history.append((noise_multiplier, sample_rate, 1))

        def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
            """The upper end of the certified interval; 0 before the first step."""
            runs = [DPSGD(noise, rate, count) for noise, rate, count in self.history]
            return float(account(runs).epsilon(delta).upper) if runs else 0.0

        def __len__(self) -> int:
            return sum(count for _, _, count in self.history)

        @classmethod
        def mechanism(cls) -> str:
            """The name under which Opacus finds this accountant."""
            return MECHANISM

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            """Take over a history, all of it or nothing."""
            for noise, rate, count in (state_dict or {}).get("history", []):
                DPSGD(noise, rate, count)
            super().load_state_dict(state_dict)

    return CertifiedAccountant
