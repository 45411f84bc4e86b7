"""The trainer: DP-SGD from a promise to a model, with every step in the account."""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from itertools import tee
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NoReturn

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from psidp.accounting import BandMF, FixedOrder
from psidp.bridges.torch.step.adaptive_clip import AdaptiveClip
from psidp.bridges.torch.step.per_layer_clip import PerLayerClip
from psidp.bridges.torch.step.places import Empty
from psidp.bridges.torch.step.private_step import PrivateStep
from psidp.bridges.torch.step.ranks import Ranks
from psidp.bridges.torch.training.batches import (
    Batches,
    CyclicBatches,
    FixedBatches,
    PoissonBatches,
    classes_of,
)
from psidp.bridges.torch.training.correlated import correlated_noise
from psidp.bridges.torch.training.correlated_plan import Correlation, multiplier_of, planned_run
from psidp.bridges.torch.training.deals import Deals, SharedTally
from psidp.bridges.torch.training.journal import Tally, Terms
from psidp.bridges.torch.training.payment import Payment
from psidp.bridges.torch.training.plan import epoch_of, reserved, slots_for
from psidp.bridges.torch.training.records import Collate, Records
from psidp.bridges.torch.training.run_state import RunState
from psidp.bridges.torch.training.together import join, refuse_other_model, refuse_users_of_ranks, together
from psidp.bridges.torch.training.trained import Trained
from psidp.bridges.torch.training.training import Progress, Training, validated
from psidp.bridges.torch.training.units import units_of
from psidp.bridges.torch.training.update import Update
from psidp.ledger.ledger import Ledger
from psidp.maths.sensitivity import Adjacency
from psidp.symbols import Symbol, whole

__all__ = ["PrivateTrainer"]

EXPECTED = Symbol("expected_batch", "", "a public number that sums are divided by", "(0,inf)", "any")
BEFORE = ", before the first step: nothing was spent"


class PrivateTrainer:
    """Trains a model by DP-SGD within a promise that is fixed, and paid for, before the first step.

    Guarantees:
        The trained model, every checkpoint and everything `watch` is shown have together the price of the planned run
        (docs/design/trainer.md): batches are Poisson batches from the operating system's entropy, gradients are clipped
        and noised by PrivateStep, and a step counts on the disk before its noise is drawn, so that no kill and no
        resumption loses one.

    Args:
        model, loss: as PrivateStep takes them, on one device. The model stays in the mode, train or eval, in which it
            comes. Under torchrun, after init_process_group, every process makes the same trainer of a model that is not
            wrapped, and they train it together (docs/distributed.md): rank 0's state goes to all, and rank 0 alone
            keeps ledger and checkpoint and calls watch and validate.
        optimizer: any torch optimizer of the model's parameters that needs no closure.
        data: (inputs, targets) as tensors, or a map-style Dataset of such pairs; each record is read by its own number.
        collate: collate(record) -> (inputs, target), for a Dataset of other records, such as dicts. It sees one record
            at a time and pads to a public length, as PadTo does: to the longest of a draw, one record would move the
            others' gradients.
        workers: processes that read a Dataset ahead; none unless told.
        sampling_rate: chance q of a record to be in a batch, (0, 1].
        clip: largest L2 norm of one example's gradient; or PerLayerClip, or AdaptiveClip without bands.
        noise_multiplier, steps or epochs, epsilon or psi: any two; the third follows. With all three the run is as long
            as was asked or as the target allows, whichever is shorter. An epoch is 1/q steps.
        delta, kappa: where epsilon and psi are promised and told.
        unit: whose data a record is; unless told "record", or "user" where there are users.
        users, examples_per_user: privacy of users. A name for each record, text or whole number (None: nobody's, and it
            takes no part), and how many examples of a user a step takes at most, by lot. Users are then what is drawn
            at the sampling rate, clipped, counted in expected_batch and micro_batch, and protected.
        expected_batch: a public number to divide sums by; unless told, q times the number of records, which is then
            public too.
        micro_batch, memory, empty: examples at a time at most, the bytes for their gradients, and what becomes of
            micro-batches in which nobody is; see PrivateStep.
        schedule: a torch LRScheduler, stepped with the optimizer.
        ledger, budget, purpose: who pays. The whole run is one entry, written before the first step.
        checkpoint: a file to keep the run in; beside it goes a journal, its name with `.steps`. If there is a run in
            it, this is the same run going on: model and optimizer take over its state.
        every: steps from checkpoint to checkpoint; an epoch unless told.
        bands: for how many steps the noise remembers: 1 is DP-SGD, more correlate it, and "auto" takes the number of
            least error at the target (`choice` shows what it compared). With b bands step t draws from class t mod b
            of the records alone, at b times the rate, and 4 (b - 1) bytes are kept for every parameter, in memory only.
        workload: which error counts: "prefix", of the sums of gradients so far, or "last", of the last step's
            parameters, with the momentum and weight decay of the optimizer, SGD.
        ids: a name for each record, text or whole number, by which it finds its class. Without them classes go by
            position, and the promise is for a record blanked, with the number of records public (adjacency "zero-out").
        order: "sampled", or "fixed": no sampling at all, the records in one order in every epoch, 1/sampling_rate
            batches each. The price is one exact psi, for a record blanked, or replaced (adjacency="replace-one").
        adjacency: which data sets are neighbours; unless told, as ids and order say.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> trainer = PrivateTrainer(
        ...     model, torch.optim.SGD(model.parameters(), lr=0.1), nn.functional.mse_loss,
        ...     (torch.ones(100, 2), torch.zeros(100, 1)),
        ...     sampling_rate=0.1, clip=1.0, epochs=2, epsilon=3.0, delta=1e-5,
        ... )
        >>> training = trainer.fit()
        >>> training.started, training.epsilon <= 3.0
        (20, True)
    """

    _ranks: Ranks

    @together
    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Callable[..., torch.Tensor],
        data: Any,
        *,
        sampling_rate: float,
        clip: float | PerLayerClip | AdaptiveClip,
        collate: Collate | None = None,
        workers: int = 0,
        noise_multiplier: float | None = None,
        steps: int | None = None,
        epochs: float | None = None,
        epsilon: float | None = None,
        psi: float | None = None,
        delta: float = 1e-5,
        kappa: float = 1e-10,
        unit: str | None = None,
        users: Any = None,
        examples_per_user: int | None = None,
        expected_batch: float | None = None,
        micro_batch: int | None = None,
        memory: int | None = None,
        empty: Empty = "skipped",
        schedule: LRScheduler | None = None,
        ledger: Ledger | None = None,
        budget: str = "",
        purpose: str = "training a model",
        checkpoint: str | os.PathLike[str] | None = None,
        every: int | None = None,
        bands: int | Literal["auto"] = 1,
        workload: Literal["prefix", "last"] = "prefix",
        ids: Any = None,
        order: Literal["sampled", "fixed"] = "sampled",
        adjacency: Adjacency | None = None,
    ) -> None:
        if not self._ranks.first:
            checkpoint, ledger, budget = None, None, ""
        path = None if checkpoint is None else Path(checkpoint)
        first = next(iter(model.parameters()), None) if isinstance(model, nn.Module) else None
        self._records = Records(data, torch.device("cpu") if first is None else first.device, collate, workers)
        self._units = units_of(users, examples_per_user, ids, unit, self._records.size)
        self._named, records = self._units.names is not None, self._units.size
        refuse_users_of_ranks(self._ranks, users)
        said = Correlation.asked(bands, workload, order, adjacency, self._named, model, optimizer, path)
        said = replace(said, kept=self._ranks.told(said.kept))
        self.run, strategy, self.choice = planned_run(
            said, sampling_rate=sampling_rate, noise_multiplier=noise_multiplier, steps=steps, epochs=epochs,
            epsilon=epsilon, psi=psi, delta=delta, kappa=kappa, unit=self._units.unit,
        )  # fmt: skip
        self.delta, self.kappa = float(delta), 0.0 if isinstance(self.run, FixedOrder) else float(kappa)
        self._update = Update(optimizer, schedule)
        rate = float(sampling_rate) if isinstance(self.run, FixedOrder) else self.run.sampling_rate
        self._rate, self._epoch = rate, epoch_of(rate)
        divisor = rate * records if expected_batch is None else EXPECTED.number(expected_batch)
        self.failure, slots = 0.0, None
        if isinstance(self.run, FixedOrder):
            slots = FixedBatches(records, self._epoch).largest
        elif micro_batch != 1:
            mean = divisor if expected_batch is None else 1.02 * divisor + 1.0  # perhaps it is a round number
            slots = slots_for(mean, self.run, self.delta, self.kappa)
            self.failure = reserved(self.run, slots, records, self.delta, self.kappa)
        self._noise = (
            None if strategy is None else correlated_noise(strategy, model, multiplier_of(self.run), self._ranks)
        )
        self._step = PrivateStep(
            model, loss, clip=clip, noise_multiplier=multiplier_of(self.run), expected_batch=divisor,
            micro_batch=micro_batch, memory=memory, slots=slots, empty=empty, noise=self._noise,
            examples_per_user=examples_per_user, ranks=self._ranks,
        )  # fmt: skip
        self._update.check_holds(model, self._step.parameters)
        self.model, self._trained = model, Trained(model, self._update, self._step)
        self._public_size, self._busy = expected_batch is None, Lock()
        self._every = self._epoch if every is None else whole("every", every)
        self._payment = Payment.agreed(ledger, budget, purpose)
        self._keep = RunState(path, self._described(), paid=self._payment is not None)
        self._started, self._ahead = self._keep.started, workers > 0
        self._noted: int | None = None
        self._batches = self._units.drawn(self._drawn())
        if self._keep.begun:
            self._take_up()
        alike = {"micro_batch": self._step.micro_batch, "every": self._every, "workers": workers}
        join(self._ranks, self._described() | alike, (self._records, data), self._keep, self._trained)
        self._started = self._keep.started

    def __repr__(self) -> str:
        run = self.run
        bands = f", bands={run.bands}" if isinstance(run, BandMF) else ""
        return (
            f"PrivateTrainer(noise_multiplier={run.noise_multiplier}, sampling_rate={self._rate}, "
            f"steps={run.steps}{bands}, started={self._started})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateTrainer must not be copied: the copy would take steps that nobody counts.")

    @property
    def training(self) -> Training:
        """What was promised and how far it went, now."""
        head = self._payment.head if self._payment is not None and self._keep.begun else None
        far, told = (self._started, self._trained.applied), (self.delta, self.kappa, self.failure)
        return Training(self.run, *far, self._step.clipping, *told, head, self._units.examples_per_user)

    @property
    def clip(self) -> float:
        """Largest norm of one example's gradient, of the next step where it adapts. It is public."""
        return self._step.clip

    @together
    def fit(
        self,
        *,
        epochs: int | None = None,
        watch: Callable[[Progress], object] | None = None,
        validate: Callable[[nn.Module], float] | None = None,
    ) -> Training:
        """Train to the end of the plan, or for so many epochs of it; then what was promised and how far it went.

        The loss on the data is private and shown nowhere. What `validate` computes is as private as what it reads, so
        let it read public data only.

        Args:
            epochs: at most so many; fit can be called again.
            watch: called after every step with a Progress, such as `psidp.training_bar()`.
            validate: called after every epoch with the model in eval mode; its number is in Progress.score.
        """
        length = None if epochs is None else whole("epochs", epochs) * self._epoch
        for name, given in (("watch", watch), ("validate", validate)):
            if given is not None and not callable(given):
                raise TypeError(f"{name} must be callable, got {type(given).__name__}.")
        if not self._ranks.first:
            watch = validate = None
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("this trainer is training already, in another thread.")
        try:
            self._rehearse()
            self._pay()
            with self._keep.tally() as held:
                tally = self._shared(held)
                if tally.started != self._started:
                    raise RuntimeError("this run went on elsewhere since the trainer was made. Make a new one here.")
                last = self.run.steps if length is None else min(self.run.steps, tally.started + length)
                last = self._ranks.told(last)
                try:
                    self._train(tally, last, watch, validate)
                    if self._noise is not None and self._started == self.run.steps:
                        self._noise.wipe()
                except BaseException as error:
                    self._started = tally.started
                    error.add_note(self._far)
                    self._note(error)
                    raise
                self._note()
        finally:
            self._busy.release()
        return self.training

    def _rehearse(self) -> None:
        """Before anything is paid, and to settle places: zeros in the shape of a record, through model and loss."""
        if self._keep.begun and self._step.places.settled:
            return
        try:
            self._step.rehearse(*self._records.zeros())
        except Exception as error:
            error.add_note(f"Found with an example that was made up{'' if self._keep.begun else BEFORE}.")
            raise
        self._step.places.take(self._ranks.told(self._step.places.settle()))

    def _train(self, tally: Tally, last: int, watch: Any, validate: Any) -> None:
        """Steps until `last` of them were started; a checkpoint every so often and at the end."""
        score: float | None = None
        deals = Deals(self._ranks, self._batches, self._step.slots, self._step.micro_batch)
        draws, whose = tee(deals.draws(range(tally.started, last)))  # workers read ahead
        with closing(self._records.batches(draws)) as batches:
            while tally.started < last:
                tally.begin()
                self._started = tally.started
                if self._noise is not None:
                    self._noise.at(self._started - 1)
                self._update.clear()
                self._step(*next(batches), *self._units.of(next(whose)), places=deals.places())
                self._update.apply()
                self._trained.applied += 1
                if self._started % self._every == 0 or self._started == last:
                    self._save()
                ended = self._started % self._epoch == 0 or self._started == last
                if ended and validate is not None:
                    score = validated(self.model, validate)
                if watch is not None:
                    watch(self._progress(ended, score))

    @property
    def _far(self) -> str:
        """How far a run is that was stopped, and what to do."""
        if not self._ranks.first:
            return "Rank 0 counts the steps that were started."
        todo = "Call fit again to go on." if self._keep.path is None else "Make this trainer again to go on."
        return f"{self._started} of {self.run.steps} steps were started and count. {todo}"

    def _progress(self, ended: bool, score: float | None) -> Progress:
        epoch, epochs = -(-self._started // self._epoch), -(-self.run.steps // self._epoch)
        told = (self.delta, self.kappa, self.failure)
        return Progress(self.run, self._started, epoch, epochs, ended, *told, score)

    # The account

    def _pay(self) -> None:
        """Once, before the first step: the whole run."""
        if self._keep.begun:
            return
        self._keep.ready()
        if self._payment is not None:
            self._payment.pay(self.run, self.kappa, self.failure)
        self._keep.begin(None if self._payment is None else self._payment.receipt)

    def _note(self, error: BaseException | None = None) -> None:
        """What was used, in the ledger; trouble with it does not hide an error that was there before."""
        if self._payment is None or self._noted == self._started:
            return
        try:
            self._payment.note(self._started)
            self._noted = self._started
        except Exception as trouble:
            if error is None:
                raise
            error.add_note(f"The ledger could not note that {self._started} steps were used: {trouble}")

    # Resuming

    def _described(self) -> Terms:
        """What the run is, as plain values."""
        run, step = self.run, self._step
        more: Terms = {} if run.adjacency == "add-remove" else {"adjacency": run.adjacency}
        if self._noise is not None:
            more |= {"coefficients": list(self._noise.strategy.coefficients)}
        if isinstance(run, BandMF):
            more |= {"bands": run.bands, "classes": "by id" if self._named else "by position"}
        elif isinstance(run, FixedOrder):
            more |= {"order": "fixed"}
        shapes = [(name, list(value.shape), str(value.dtype)) for name, value in self.model.state_dict().items()]
        return {
            "noise_multiplier": run.noise_multiplier,
            "sampling_rate": self._rate,
            "steps": run.steps,
            "unit": run.unit,
            "clip": step.clipping if isinstance(step.clipping, float) else step.clipping.terms,
            "expected_batch": step.expected_batch,
            "records": self._units.terms(self._public_size),
            "delta": self.delta,
            "kappa": self.kappa,
            "model": sha256(repr(shapes).encode()).hexdigest(),
            "optimizer": self._update.name,
            "slots": step.slots,
            "failure": self.failure,
        } | more

    def _drawn(self) -> Batches:
        """How units come into batches; classes are salted with the run's own public name."""
        run, records = self.run, self._units.size
        if isinstance(run, FixedOrder):
            return FixedBatches(records, self._epoch)
        if not isinstance(run, BandMF):
            return PoissonBatches(records, run.sampling_rate)
        classes = classes_of(records, self._units.names, run.bands, self._keep.terms["identity"])
        return CyclicBatches(classes, run.bands, run.class_rate)

    def _take_up(self) -> None:
        """Go on with the run that is kept; what may fail comes before the model changes."""
        if self._payment is not None:
            self._noted = self._payment.take_up(self._keep.terms["receipt"], self._started)
        if self._keep.state is not None:
            self._trained.load(self._keep.state)

    def _save(self) -> None:
        refuse_other_model(self._ranks, self.model)
        self._keep.save(self._trained.state())

    def _shared(self, tally: Tally) -> Tally:
        """Rank 0's count of steps, which the others follow with the same model."""
        refuse_other_model(self._ranks, self.model)
        self._started = self._ranks.told(self._started)
        return SharedTally(self._ranks, tally, self._started, self._ahead)
