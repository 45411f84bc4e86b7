"""The private step: per-example gradients in, a noisy mean out, with the sensitivity that it claims."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from math import ldexp
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.autograd.graph import disable_saved_tensors_hooks
from torch.func import vmap

from psidp.bridges.torch.step.adaptive_clip import AdaptiveClip, TrackedClip
from psidp.bridges.torch.step.clipping import ClippedTotals, bound_of, fineness_for, noisy
from psidp.bridges.torch.step.examples import Examples, count, mapped, plain
from psidp.bridges.torch.step.hugging_face import split
from psidp.bridges.torch.step.per_layer_clip import LayeredTotals, PerLayerClip
from psidp.bridges.torch.step.places import Empty, Places
from psidp.bridges.torch.step.ranks import ALONE, Ranks
from psidp.bridges.torch.step.recording import Recording, refuse_modes, steady
from psidp.bridges.torch.step.rehearsal import varies, zeros
from psidp.bridges.torch.step.rng import Watch, drawn_from, renew, set_aside
from psidp.bridges.torch.step.state import (
    MANY,
    Unchanged,
    held_by,
    modules_of,
    nothing_escapes,
    refuse_changes,
    refuse_company,
    refuse_scripts,
)
from psidp.bridges.torch.step.surroundings import Surroundings
from psidp.bridges.torch.step.trainable import bytes_of_one, refuse_classes, refuse_hooks, trainable
from psidp.bridges.torch.step.user_places import EveryExample, UserPlaces, seated, weighed
from psidp.bridges.torch.step.vmap_refusal import SAVED, refusal
from psidp.maths.rounding import product_up
from psidp.symbols import Symbol, finite, symbol, whole

__all__ = ["PrivateStep"]

ROWS = 2**34
"""On a GPU gradients of single examples are kept if they take no more than these bytes: else they are formed twice."""

NOISY = "_psidp_noisy"
"""Attribute of gradients that a step wrote."""

SWITCHES = (bool, str)
"""Attributes of these types choose what code does."""

MULTIPLIERS = (2.0**-100, 2.0**100)
CLIP = Symbol("clip", "C", "largest L2 norm of one example's gradient", "(0,inf)", "1")


class Noise(Protocol):
    """What adds noise to exact totals, in the place of independent noise; `fineness` says in which units."""

    fineness: int

    def __call__(self, totals: torch.Tensor, sigma: float) -> torch.Tensor:
        """Totals (64-bit integers, flat) in, noisy doubles out; sigma is noise_multiplier times the clip, in units."""


class PrivateStep:
    r"""One step of DP-SGD: adds to `p.grad` a noisy mean of clipped per-example gradients.

    .. math:: \texttt{grad} = \frac{2^u}{n} \Bigl(\sum_i k_i + \frac{\sigma}{2^u} N\Bigr), \qquad
        \lVert k_i \rVert_2 \le \lfloor C 2^{-u} \rfloor, \quad \sigma \ge \texttt{noise\_multiplier} \cdot C

    Guarantees:
        What one example adds is an integer vector of norm at most C = clip, over all parameters together, whatever its
        gradient holds; NaN and infinity make it zero. So a step is a Gaussian mechanism of psi = 1/noise_multiplier,
        before sampling, except for an event of probability `kappa`. Kernels of torch give a gradient other last bits in
        another place of its micro-batch; so places are drawn at random among a public number, and nobody's place
        depends on who else was drawn. What is divided by is a public number too, never the size of the draw.
        docs/design/step.md says what is proved, what is measured and what is assumed.

    Args:
        model: without BatchNorm, and one that changes no buffer as it runs; its trainable parameters float32, bfloat16
            or float64 on one device. Wrappers that spread it over several are refused, and so is a process that is one
            of several.
        loss: loss(output, target) -> one number, for a batch of one: it is called for each example alone.
        clip: largest L2 norm of one example's gradient, C, in [2^-100, 2^101). Or a PerLayerClip, with a bound for each
            layer; or an AdaptiveClip, which follows a quantile of the norms.
        noise_multiplier: sigma over clip, in [2^-100, 2^100].
        expected_batch: what the sum is divided by, the expected size of a draw: sampling rate times size of the data.
        micro_batch: examples at a time at most; micro-batches are all of one size, filled up with zeros. Unless told,
            the expected draw, or 256, or fewer for a large model; on a CPU the first call settles on what takes the
            least time: fewer, which leaves fewer places empty, or for a small model all places at once.
        memory: bytes that gradients of single examples may take. Without micro_batch, it follows from them. On a GPU
            these gradients are kept where they fit, into 2^34 bytes unless told; where they do not, activations and
            output gradients are kept, and gradients formed twice from them, a few at a time. Activations come on top.
        slots: places; an empty one beside a full one costs as much. Unless told, so many that a Poisson draw exceeds
            them once in 2^40 steps: 2.0 times a draw of 64, 1.48 of 256, 1.23 of 1,024, 1.11 of 4,096. With 0, only as
            many as were drawn: then one other example changes its place with a neighbour, and can move the sum by up to
            twice the clip more.
        empty: what happens to micro-batches in which nobody is. "skipped", with all examples moved into as few as hold
            them, each in its place, unless the model draws random numbers, as for dropout; or "computed": then their
            number does not depend on the draw. So it is, too, where model or loss count their passes.
        kappa: or the chance at most of a draw to exceed the places, from which slots follow.
        noise: what adds the noise, where it is not independent from step to step; PrivateTrainer gives it.
        examples_per_user: for privacy of users instead of examples. What is clipped is then the mean gradient of a user
            over at most so many of its examples; clip, expected_batch, micro_batch and slots count users.
        ranks: processes that compute a step together; PrivateTrainer gives them.

    Examples:
        >>> model, loss = nn.Linear(3, 1), nn.functional.mse_loss
        >>> step = PrivateStep(model, loss, clip=1.0, noise_multiplier=1.1, expected_batch=8)
        >>> step(torch.ones(5, 3), torch.zeros(5, 1))
        >>> model.weight.grad.shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., torch.Tensor],
        *,
        clip: float | PerLayerClip | AdaptiveClip,
        noise_multiplier: float,
        expected_batch: float,
        micro_batch: int | None = None,
        memory: int | None = None,
        slots: int | None = None,
        kappa: float | None = None,
        empty: Empty = "skipped",
        noise: Noise | None = None,
        examples_per_user: int | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self._ranks = ranks
        self.parameters = trainable(model, ranks.size)
        if isinstance(loss, type):
            raise TypeError(f"loss must be callable as loss(output, target), got a class. Make one: {loss.__name__}().")
        if not callable(loss):
            raise TypeError(f"loss must be callable as loss(output, target), got {type(loss).__name__}.")
        self.clipping = clip if isinstance(clip, PerLayerClip | AdaptiveClip) else CLIP.number(clip)
        self._noise = noise
        self._refuse_clip()
        self.noise_multiplier = symbol("noise_multiplier").number(noise_multiplier)
        if not MULTIPLIERS[0] <= self.noise_multiplier <= MULTIPLIERS[1]:
            raise ValueError(
                "noise_multiplier (noise over sensitivity in DP-SGD) must be in [2^-100, 2^100], "
                f"got noise_multiplier={noise_multiplier}."
            )
        self.expected_batch = finite("expected_batch", expected_batch)
        if not self.expected_batch > 0:
            raise ValueError(
                "expected_batch (the expected size of a draw, a public number) must be in (0, inf), "
                f"got expected_batch={expected_batch}."
            )
        self.examples_per_user = None if examples_per_user is None else whole("examples_per_user", examples_per_user)
        self._each = self.examples_per_user or 1
        one = bytes_of_one(self.parameters) * self._each
        self.places = Places(
            self.expected_batch, micro_batch=micro_batch, memory=memory, slots=slots, kappa=kappa, empty=empty,
            bytes_of_one=one, each=self._each, tensors=len(self.parameters), ranks=ranks.size,
            chooses=self._device.type == "cpu",
        )  # fmt: skip
        room = ROWS if memory is None else memory
        fits = self._device.type == "cuda" and self.micro_batch * one <= room
        self._as_rows = fits or noise is not None  # units of correlated noise are too coarse for rounded factors
        self._tracked: TrackedClip | None = None
        if isinstance(self.clipping, AdaptiveClip):
            self._tracked = TrackedClip(self.clipping, self.noise_multiplier, self.expected_batch)
        self._model, self._loss = model, loss
        of_model = set(model.modules())
        self._of_loss = [module for module in modules_of(loss) if module not in of_model]
        refuse_hooks(self._of_loss)
        refuse_classes(self._of_loss)
        refuse_scripts(self._modules(), loss)
        self._not_trained = {id(p): f"{name} of {type(module).__name__}" for module in self._of_loss
                             for name, p in module._parameters.items() if p is not None}  # fmt: skip
        self._undefined = torch.zeros((), dtype=torch.int64, device=self._device)
        self._rehearsed: set[tuple[Any, ...]] = set()
        self._copied: set[str] = set()

    @property
    def micro_batch(self) -> int:
        """Examples at a time; on a CPU, where none was given, settled in the first call, to fewer or to more."""
        return self.places.micro_batch

    @property
    def slots(self) -> int:
        """Places for the examples of a draw; 0 where there are as many as are drawn."""
        return self.places.slots

    @property
    def _fineness(self) -> int:
        """Bits of the bound on what an example adds: so few that totals of all places are exact."""
        return fineness_for(self.places.most) if self._noise is None else self._noise.fineness

    def __repr__(self) -> str:
        return (
            f"PrivateStep(clip={self.clip}, noise_multiplier={self.noise_multiplier}, "
            f"expected_batch={self.expected_batch}, micro_batch={self.micro_batch}, slots={self.slots})"
        )

    @property
    def clip(self) -> float:
        """Largest L2 norm of one example's gradient; where it adapts, in the next step. It is public."""
        if self._tracked is not None:
            return self._tracked.now
        return self.clipping.norm if isinstance(self.clipping, PerLayerClip) else cast(float, self.clipping)

    @clip.setter
    def clip(self, clip: float) -> None:
        if self._tracked is None:
            raise AttributeError("clip of a step must stay as it is, unless it is an AdaptiveClip. Make a new step.")
        self._tracked.put(CLIP.number(clip))

    @property
    def kappa(self) -> float:
        """Chance at most that an example more or less makes another change its place, in a step with Poisson draws."""
        return self.places.kappa

    @property
    def copied(self) -> list[str]:
        """Parameters of which every example is given a copy, since no faster way is known; complete after one step."""
        return [name for name in self.parameters if name in self._copied]

    @property
    def undefined(self) -> int:
        """How many examples so far had a gradient with NaN or infinity, which adds zero. Private: never show it."""
        return int(self._undefined)

    def __call__(
        self, inputs: Examples, targets: Examples, users: Any = None, *, places: NDArray[np.int64] | None = None
    ) -> None:
        """Add to `p.grad` of each trainable parameter, as `backward` does. A draw may be empty: noise alone.

        Call `optimizer.zero_grad()` between steps; a gradient that no private step wrote is refused.
        A tensor goes to the model as model(inputs), a tuple or list as model(*inputs), a dict as model(**inputs).
        With examples_per_user, `users` names the user of each example; of a user with more, so many are drawn.
        `places` says which example is in each of this rank's places, where several ranks share a draw.
        """
        seats = seated(users, count(inputs, targets), self.examples_per_user)
        self._refuse_another_model()
        self._refuse_gradients()
        self._ready(inputs, targets)
        if places is None:
            self.places.settle()
        moves, who = self.places.moves, seats.units if places is None else places
        totals, undefined = self._summed(seats, inputs, targets, who)
        if moves and not self.places.moves:  # seen only now: once more, with nobody moved to another micro-batch
            totals, undefined = self._summed(seats, inputs, targets, who)
        self._release(totals, ldexp(self._rescaled, totals.unit) / self.expected_batch)
        if self._tracked is not None and isinstance(totals, ClippedTotals):
            self._tracked.move(totals.factors, totals.unit, self._ranks)
        self._undefined = undefined

    def rehearse(self, inputs: Examples, targets: Examples) -> None:
        """Learn what a model does from one example that is made up, in the shapes and types of these; no draw tells it.

        What it takes, whether it draws random numbers, what has to be refused. A step does it before anything else, for
        new shapes of an example, and in each mode of the model: train or eval, and other switches of its modules.
        """
        modes, watch, reached = self._modes(inputs, targets), Watch(), set[str]()

        def passed(
            inputs: Examples, targets: Examples, seed: bytes | None = None, **more: Any
        ) -> Iterator[torch.Tensor]:
            units = count(inputs, targets)
            users = None if self.examples_per_user is None else range(units)
            some, wanted, weights = seated(users, units, self.examples_per_user).all(inputs, targets)
            recording = self._recorded(some, wanted, seed, weights=weights, rehearsing=True, **more)
            reached.update(recording.reached)
            return recording.gradients()

        modules = self._modules()
        with set_aside(self._device), nothing_escapes(lambda: held_by(modules, self._loss)):
            passed(zeros(inputs), zeros(targets), watch=watch)
            around = Surroundings([self._loss, *modules])
            by_lot = watch.by_lot or varies(passed, inputs, targets)
            refuse_changes(around, self.slots)
            refuse_company(passed, inputs, targets, min(MANY, self.micro_batch))
            counts = refuse_changes(around, self.slots)
        self._refuse_unreached(reached)
        self.places.work = watch.work / self._each
        self.places.by_lot |= by_lot
        self.places.counts |= counts
        self._rehearsed.add(modes)

    def _ready(self, inputs: Examples, targets: Examples) -> None:
        """Rehearse in a mode of the model that is new; where the model changes it as it runs, in the other one too."""
        for _ in range(2):
            if self._modes(inputs, targets) in self._rehearsed:
                return
            self.rehearse(inputs, targets)

    def _modes(self, inputs: Examples, targets: Examples) -> tuple[Any, ...]:
        """What code may branch on: shapes and types of an example, and switches of all modules, as train or eval."""
        shapes: list[Any] = []
        mapped(lambda tensor: shapes.append((tensor.shape[1:], tensor.dtype)), [inputs, targets])
        switches = [
            (name, value)
            for module in self._modules()
            for name, value in vars(module).items()
            if isinstance(value, SWITCHES)
        ]
        return (*shapes, *switches)

    def _modules(self) -> list[nn.Module]:
        """Those of the model, and those of the loss."""
        return [*self._model.modules(), *self._of_loss]

    def _refuse_unreached(self, reached: set[str]) -> None:
        """Refuse parameters without a gradient, which PyTorch leaves alone and noise would move."""
        missing = [name for name, p in self.parameters.items() if p.numel() and name not in reached]
        if missing:
            raise ValueError(
                f"model must use all trainable parameters; no gradient comes to {', '.join(missing[:3])}"
                f"{f' and {len(missing) - 3} more' if missing[3:] else ''}, so that noise alone would move them. "
                "Freeze them with requires_grad_(False), or take out what cuts them off, such as detach() or no_grad()."
            )

    def _summed(
        self, seats: EveryExample | UserPlaces, inputs: Examples, targets: Examples, who: int | NDArray[np.int64]
    ) -> tuple[ClippedTotals | LayeredTotals, torch.Tensor]:
        """Totals of a draw of so many, or in these places, and how many of all examples so far were undefined."""
        totals, undefined = self._totals(), self._undefined.to(self._device, copy=True)
        where = self.places.arranged(who)
        for some, wanted, live, weights in seats.micro_batches(inputs, targets, where, self.micro_batch, self._device):
            recording = self._recorded(some, wanted, weights=weights)
            undefined += totals.add_contributions(list(recording.contributions.values()), live)
            recording.clear()
        return totals, undefined

    def gradients(
        self, inputs: Examples, targets: Examples, users: Any = None, *, seed: bytes | None = None
    ) -> list[torch.Tensor]:
        """Per-example gradients of one micro-batch, unclipped and private: a tensor for each parameter.

        What the model draws, such as masks of dropout, is drawn for each example, and anew in each call unless 24 bytes
        are given as a seed. With examples_per_user, those of users, in the order in which they come.
        """
        some, wanted, weights = seated(users, count(inputs, targets), self.examples_per_user).all(inputs, targets)
        self._ready(inputs, targets)
        return list(self._recorded(some, wanted, seed, weights=weights).gradients())

    def contributions(
        self, inputs: Examples, targets: Examples, users: Any = None, *, seed: bytes | None = None
    ) -> torch.Tensor:
        """What each example, or user, of a micro-batch adds to the totals, in units: a row of integers. Private."""
        seats = seated(users, count(inputs, targets), self.examples_per_user)
        some, wanted, weights = seats.all(inputs, targets)
        self._ready(inputs, targets)
        recording = self._recorded(some, wanted, seed, weights=weights)
        found = []
        for place in range(seats.units):
            totals = self._totals()
            live = torch.arange(seats.units, device=self._device) == place
            totals.add_contributions(list(recording.contributions.values()), live)
            found.append(totals.units)
        return torch.stack(found)

    def _totals(self) -> ClippedTotals | LayeredTotals:
        """Totals of a step, at zero."""
        how = {"fineness": self._fineness, "places": self.places.most}
        if isinstance(self.clipping, PerLayerClip):
            return LayeredTotals(self.parameters, self.clipping, **how)
        return ClippedTotals(list(self.parameters.values()), self.clip, **how)

    @property
    def _rescaled(self) -> float:
        """First clip over that of this step, if it adapts: gradients then have the same noise in all steps."""
        return 1.0 if self._tracked is None else self._tracked.asked.initial / self._tracked.now

    @property
    def _sigma(self) -> float:
        """The noise of a step's totals, in units, never rounded down."""
        multiplier = self.noise_multiplier if self._tracked is None else self._tracked.gradient_multiplier
        return product_up(multiplier, ldexp(self.clip, -bound_of(self.clip, self._fineness)[1]))

    def _refuse_clip(self) -> None:
        """Refuse bounds that are too large or too small, and those that move where the noise remembers."""
        if isinstance(self.clipping, PerLayerClip):
            for bound in [self.clipping.norm, *self.clipping.layers(self.parameters).values()]:
                bound_of(bound)
        elif isinstance(self.clipping, float):
            bound_of(self.clipping)
        elif self._noise is not None:
            raise ValueError(
                "clip must be a number or a PerLayerClip where noise is correlated (bands, or a fixed order), got an "
                "AdaptiveClip: noise of one step is taken back in later ones, in the same units. Take bands=1."
            )

    def _recorded(
        self, inputs: Examples, targets: Examples, seed: bytes | None = None, *,
        weights: torch.Tensor | None = None, watch: Watch | None = None, rehearsing: bool = False,
    ) -> Recording:  # fmt: skip
        """One pass over a micro-batch, with what each example, or each user, adds to each parameter.

        In a rehearsal, whose first pass may build what the others find there, `refuse_changes` sees what changes.
        """
        refuse_modes()
        inputs, targets = mapped(plain, inputs), mapped(plain, targets)
        modules = self._modules()
        kept = Unchanged(() if rehearsing else held_by(modules, self._loss))
        recording = Recording(self.parameters, count(inputs, targets), as_rows=self._as_rows, each=self._each)

        def loss_of_one(marker: torch.Tensor, inputs: Examples, targets: Examples) -> torch.Tensor:
            with recording.under(marker):
                return self._loss_of_one(inputs, targets, self._model)

        each = vmap(loss_of_one, randomness="different")
        with set_aside(self._device), steady(), split(modules), watch or nullcontext():
            seed = renew(self._device, seed)
            try:
                with torch.enable_grad(), disable_saved_tensors_hooks(SAVED):
                    losses = weighed(each(recording.marker, inputs, targets), weights)
                    recording.backward(losses, self._not_trained)
            except RuntimeError as error:
                told = refusal(error, self._model)
                if told is None:
                    raise
                raise told from error
            self.places.by_lot |= drawn_from(self._device, seed)
        kept.check(self.places.counts)
        self._copied |= {name for name, c in recording.contributions.items() if c.copied}
        return recording

    def _loss_of_one(self, inputs: Examples, targets: Examples, model: Callable[..., Any]) -> torch.Tensor:
        """The loss of one example, as a batch of one."""
        inputs = mapped(lambda tensor: tensor.unsqueeze(0), inputs)
        targets = mapped(lambda tensor: tensor.unsqueeze(0), targets)
        given: tuple[Any, ...] = tuple(inputs) if isinstance(inputs, list) else (inputs,)
        named = inputs if isinstance(inputs, dict) else {}
        value = self._loss(model(*(() if named else given), **named), targets)
        if not (isinstance(value, torch.Tensor) and value.numel() == 1):
            shape = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise ValueError(f"loss must give one number for a batch of one, got {shape}. Take its mean or sum.")
        return value.reshape(())

    def _refuse_another_model(self) -> None:
        """Refuse a model that no longer has the parameters and the modules that the step was made for."""
        now = trainable(self._model, self._ranks.size)
        if not (now.keys() == self.parameters.keys() and all(now[name] is p for name, p in self.parameters.items())):
            raise ValueError(
                "model has other trainable parameters than when the step was made. Make a new PrivateStep for it."
            )

    def _refuse_gradients(self) -> None:
        """Refuse gradients that no step wrote: noise on the new part would leave them as they are."""
        for name, p in self.parameters.items():
            if not (p.grad is None or hasattr(p.grad, NOISY)):
                raise ValueError(
                    f"{name}.grad must be None before a step, or come from a step, to which the next one adds. Call "
                    "optimizer.zero_grad(): what another backward pass left there has no noise."
                )

    def _release(self, totals: ClippedTotals | LayeredTotals, scale: float) -> None:
        """Totals with noise, times a public number, as the parameters' gradients, on every rank."""
        noise, sigma = self._noise, self._sigma
        if self._ranks.size == 1:
            self._write(totals.noisy(sigma) if noise is None else noise(totals.taken(), sigma), scale)
            return
        add = noisy if noise is None else noise
        types = {p.dtype for p in self.parameters.values()}
        dtype = types.pop() if len(types) == 1 else torch.float64
        self._write(self._ranks.released(totals.taken(), lambda sums: add(sums, sigma).mul_(scale), dtype), 1.0)

    def _write(self, noisy: torch.Tensor, scale: float) -> None:
        """The noisy totals times a public number as the parameters' gradients."""
        start = 0
        for p in self.parameters.values():
            part = noisy[start : start + p.numel()].mul_(scale).to(p.dtype, copy=True).view(p.shape)
            p.grad = part if p.grad is None else p.grad + part
            setattr(p.grad, NOISY, True)
            start += p.numel()

    @property
    def _device(self) -> torch.device:
        """Where the parameters are."""
        return next(iter(self.parameters.values())).device
