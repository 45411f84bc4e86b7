"""Opacus: an accountant that PrivacyEngine can use, and exact noise in place of its own."""

from typing import Any

from psidp.accounting import DPSGD, account
from psidp.errors import MissingExtraError
from psidp.symbols import symbol

__all__ = ["MECHANISM", "accountant_class", "exact_noise", "register"]

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


def exact_noise(optimizer: Any) -> Any:
    """The optimizer that `make_private` gave, with psidp's noise in place of Opacus' own: `exact_noise(optimizer)`.

    From now on its add_noise leaves in p.grad a rounding of summed_grad + sigma N, N a true normal, with
    sigma = noise_multiplier * max_grad_norm, under a key from the operating system made for each call: no generator,
    no seed, no attack on floating point. NaN counts as 0. All else is Opacus': it clips and sums in floats, so that
    the sensitivity of its sum is max_grad_norm up to rounding errors, which nobody has bounded (docs/torch.md).

    Refused, with the optimizer as it was: optimizers that add noise in another way (distributed ones, adaptive
    clipping), and a noise_multiplier of 0.
    """
    try:
        from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    except ImportError as missing:
        raise MissingExtraError("opacus", "opacus") from missing
    from psidp.bridges.torch.noise import add_noise_

    known = (DPOptimizer.add_noise, DPOptimizerFastGradientClipping.add_noise)
    if getattr(type(optimizer), "add_noise", None) not in known:
        raise TypeError(
            f"optimizer must be the DPOptimizer that make_private gave, got {type(optimizer).__name__}. Optimizers "
            "that are distributed or adapt their clipping add noise in ways of their own."
        )
    _sigma(optimizer)

    def add_noise() -> None:
        """Opacus' own bookkeeping without noise, then exact noise on each p.grad; none is left bare by an error."""
        sigma, multiplier = _sigma(optimizer), optimizer.noise_multiplier
        optimizer.noise_multiplier = 0.0
        try:
            type(optimizer).add_noise(optimizer)
            for p in optimizer.params:
                add_noise_(p.grad, sigma)
        except BaseException:
            for p in optimizer.params:
                p.grad = None
            raise
        finally:
            optimizer.noise_multiplier = multiplier

    optimizer.add_noise = add_noise
    return optimizer


def _sigma(optimizer: Any) -> float:
    """Standard deviation of the noise on the sum, read anew for each step, since schedulers change it."""
    if hasattr(optimizer, "_adjusted_noise_multiplier"):
        raise TypeError("optimizer must not adapt its clipping: what it then adds is not accounted here.")
    return symbol("noise_multiplier").number(optimizer.noise_multiplier) * float(optimizer.max_grad_norm)


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
