"""Opacus: an accountant that PrivacyEngine can use, and exact noise in place of its own."""

import warnings
from functools import wraps
from math import inf
from typing import Any

from psidp.accounting import DPSGD, account
from psidp.errors import MissingExtraError
from psidp.symbols import symbol

__all__ = ["MECHANISM", "accountant_class", "exact_noise", "register"]

MECHANISM = "psidp"


def register() -> type[Any]:
    """Make `PrivacyEngine(accountant="psidp")` work; gives the accountant's class back.

    Opacus must sample by Poisson (its default, poisson_sampling=True): the account is for that and for nothing else.
    So with this accountant make_private looks at the loader that it gives back. One that does not draw Poisson batches
    gets a warning, and from then on get_epsilon is infinite. Refused: nn.DataParallel, and a module that is not wrapped
    in a process that is one of several.
    """
    try:
        from opacus import PrivacyEngine
        from opacus.accountants import registry
    except ImportError as missing:
        raise MissingExtraError("opacus", "opacus") from missing
    made = accountant_class()
    registry.register_accountant(MECHANISM, made, force=True)
    if not hasattr(PrivacyEngine.make_private, "__wrapped__"):
        PrivacyEngine.make_private = _watched(PrivacyEngine.make_private)
    return made


def _watched(make_private: Any) -> Any:
    """make_private, which for our accountant looks at the module before and at the loader after."""

    @wraps(make_private)
    def watched(engine: Any, *, module: Any, **given: Any) -> Any:
        ours = engine.accountant.mechanism() == MECHANISM
        if ours:
            _refuse_company(module)
        made = make_private(engine, module=module, **given)
        if ours and not _draws_poisson(made[-1]):
            engine.accountant.poisson = False
            _warn(f"the loader ({type(made[-1]).__name__}) does not draw Poisson batches")
        return made

    return watched


def _refuse_company(module: Any) -> None:
    """Refuse what trains several models in silence; what Opacus itself spreads over processes is Opacus' business."""
    from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
    from torch.nn import DataParallel
    from torch.nn.parallel import DistributedDataParallel

    from psidp.bridges.torch.step.world import refuse_world, refuse_wrapper

    spread = (DistributedDataParallel, DifferentiallyPrivateDistributedDataParallel)
    if any(isinstance(part, DataParallel) for part in module.modules()):
        refuse_wrapper(module)
    if not (isinstance(module, spread) or any(base.__name__ == "FSDPModule" for base in type(module).__mro__)):
        refuse_world()


def _draws_poisson(loader: Any) -> bool:
    """Whether a loader draws its batches as Opacus' Poisson samplers do."""
    from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler, UniformWithReplacementSampler

    samplers = (UniformWithReplacementSampler, DistributedUniformWithReplacementSampler)
    return isinstance(getattr(loader, "batch_sampler", None), samplers)


def _warn(what: str) -> None:
    warnings.warn(
        f"{what}, and the account is for Poisson batches only: no epsilon is certified for this run, and get_epsilon "
        "is infinite. Leave poisson_sampling=True, the default, in a new PrivacyEngine, and iterate over the loader "
        "that make_private gives back.",
        stacklevel=3,
    )


def exact_noise(optimizer: Any) -> Any:
    """The optimizer that `make_private` gave, with psidp's noise in place of Opacus' own: `exact_noise(optimizer)`.

    From now on its add_noise leaves in p.grad a rounding of summed_grad + sigma N, N a true normal, with
    sigma = noise_multiplier * max_grad_norm, under a key from the operating system made for each call: no generator,
    no seed, no attack on floating point. NaN counts as 0. All else is Opacus': it clips and sums in floats, so that
    the sensitivity of its sum is max_grad_norm up to rounding errors, which nobody has bounded (docs/torch.md).

    Refused, with the optimizer as it was: optimizers that add noise in another way (distributed ones, adaptive
    clipping), a noise_multiplier of 0, and a process that is one of several.
    """
    try:
        from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    except ImportError as missing:
        raise MissingExtraError("opacus", "opacus") from missing
    from psidp.bridges.torch.noise.tensors import add_noise_
    from psidp.bridges.torch.step.world import refuse_world

    known = (DPOptimizer.add_noise, DPOptimizerFastGradientClipping.add_noise)
    if getattr(type(optimizer), "add_noise", None) not in known:
        raise TypeError(
            f"optimizer must be the DPOptimizer that make_private gave, got {type(optimizer).__name__}. Optimizers "
            "that are distributed or adapt their clipping add noise in ways of their own."
        )
    refuse_world()
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
            self.poisson = True
            """Whether every loader so far drew Poisson batches, as far as make_private could see."""

        def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
            """Record one noisy step."""
            DPSGD(noise_multiplier, sample_rate, 1)
            if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
                self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
            else:
                self.history.append((noise_multiplier, sample_rate, 1))

        def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
            """The upper end of the certified interval; 0 before the first step, inf where batches were not Poisson."""
            if self.history and not self.poisson:
                _warn("a loader of this run does not draw Poisson batches")
                return inf
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
            self.poisson = self.poisson and bool(state_dict.get("poisson", True))

        def state_dict(self, destination: Any = None) -> Any:
            """The history, and whether its batches were Poisson."""
            state = super().state_dict(destination)
            state["poisson"] = self.poisson
            return state

    return CertifiedAccountant
