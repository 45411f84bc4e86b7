"""The trainer keeps its promise: planned before, paid before, true Poisson batches, and silence on the data."""

import copy
import json
import os
from dataclasses import fields, replace
from io import StringIO

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

import psidp
from psidp.bridges.torch import PrivateTrainer
from psidp.bridges.torch.step.rehearsal import REHEARSED
from psidp.bridges.torch.step.slots import overflow
from psidp.bridges.torch.training.plan import planned
from psidp.bridges.torch.training.training import Progress
from psidp.maths.binomial import binomial_tail

torch.set_num_threads(1)
LOSS = nn.functional.cross_entropy


def separable(records=200):
    torch.manual_seed(5)
    features = torch.randn(records, 4)
    return features, (features.sum(dim=1) > 0).long()


def made(data=None, *, model=None, optimizer=torch.optim.SGD, loss=LOSS, **asked):
    model = nn.Linear(4, 2) if model is None else model
    asked = {"sampling_rate": 0.2, "clip": 1.0, "noise_multiplier": 1.0, "steps": 20} | asked
    held = optimizer(model.parameters(), lr=0.5) if isinstance(optimizer, type) else optimizer
    return PrivateTrainer(model, held, loss, separable() if data is None else data, **asked)


# The plan


def test_a_target_and_a_length_give_the_noise():
    training = made(noise_multiplier=None, steps=50, epsilon=2.0, delta=1e-6).training
    least = psidp.calibrate(epsilon=2.0, delta=1e-6, sampling_rate=0.2, steps=50)
    assert least <= training.run.noise_multiplier <= least * (1 + 1e-5)
    assert training.epsilon <= 2.0


def test_a_target_and_the_noise_give_the_length_and_one_step_more_would_pass_it():
    for target in ({"epsilon": 3.0, "delta": 1e-5}, {"psi": 1.0, "kappa": 1e-9}):
        training = made(steps=None, noise_multiplier=2.0, **target).training
        more = psidp.account(psidp.DPSGD(2.0, 0.2, training.run.steps + 1))
        if "psi" in target:
            assert training.psi <= 1.0 < more.guarantee(1e-9).psi
        else:
            assert training.epsilon <= 3.0 < more.epsilon(1e-5).upper
        assert made(steps=1000, noise_multiplier=2.0, **target).run == training.run
        assert made(steps=5, noise_multiplier=2.0, **target).run.steps == 5


def test_epochs_are_steps_times_the_rate():
    for rate, epochs, steps in ((0.2, 3, 15), (1 / 3, 2, 6), (0.1, 0.5, 5), (1.0, 4, 4), (0.01, 0.001, 1)):
        assert made(steps=None, epochs=epochs, sampling_rate=rate).run.steps == steps


def test_calibrated_noise_has_six_digits_and_is_never_rounded_down():
    asked = {"noise_multiplier": None, "epochs": None, "psi": None, "delta": 1e-5, "kappa": 1e-10, "unit": "one"}
    for epsilon, rate, steps in ((0.01, 0.1, 1000), (1.0, 0.01, 100), (8.0, 0.3, 40)):
        noise = planned(epsilon=epsilon, sampling_rate=rate, steps=steps, **asked).noise_multiplier
        assert noise == float(f"{noise:.6g}")
        assert psidp.account(psidp.DPSGD(noise, rate, steps)).epsilon(1e-5).upper <= epsilon


@pytest.mark.parametrize(("asked", "said"), [
    ({"noise_multiplier": None}, "two of these must be given"),
    ({"steps": None}, "a run must end"),
    ({"epochs": 2}, "steps or epochs, not both"),
    ({"epsilon": 1.0, "psi": 1.0}, "one target must be given"),
    ({"steps": None, "epsilon": 1e-3}, r"not one step meets epsilon=0.001 and delta=1e-05"),
    ({"epsilon": float("nan")}, "epsilon .* must be in"),
    ({"psi": 0.0}, r"psi .* must be in \(0, inf\) as a target"),
    ({"epsilon": float("inf")}, r"epsilon .* must be in \(0, inf\) as a target"),
    ({"sampling_rate": 0.0}, r"sampling_rate .* must be in \(0, 1\]"),
    ({"sampling_rate": 1.5}, "sampling_rate .* must be in"),
    ({"sampling_rate": float("nan")}, "sampling_rate .* must be in"),
    ({"steps": 0}, "steps .* must be in"),
    ({"steps": 2.5}, "steps .* must be a whole number"),
    ({"steps": None, "epochs": float("nan")}, "epochs .* must be a number in"),
    ({"delta": 0.0}, r"delta .* must be in \(0, 1\)"),
    ({"kappa": 0.0}, r"kappa .* must be in \(0, 1\)"),
    ({"noise_multiplier": 0.0}, "noise_multiplier .* must be in"),
    ({"clip": -1.0}, "clip"),
    ({"clip": float("nan")}, "clip"),
    ({"every": 0}, "every"),
    ({"unit": ""}, "unit must say whose data"),
    ({"budget": "models"}, "ledger must be given with a budget"),
    ({"ledger": "ledger.db", "budget": "models"}, "ledger must be a psidp.Ledger"),
    ({"checkpoint": "no/such/folder/run.pt"}, "checkpoint must be in a folder that is there"),
])  # fmt: skip
def test_what_cannot_be_planned_is_refused_with_a_sentence(asked, said):
    with pytest.raises((ValueError, TypeError), match=said):
        made(**asked)


def test_draws_that_exceed_their_places_are_part_of_the_promise():
    trainer = made(delta=1e-6, kappa=1e-9)
    assert trainer.failure == 1e-9 * 2.0**-20
    assert 20 * overflow(40.0, trainer._step.slots) <= trainer.failure
    alone = made(micro_batch=1)
    assert alone.failure == 0.0
    assert alone.training.psi == psidp.account(alone.run).guarantee(1e-10).psi
    with pytest.raises(ValueError, match=r"expected_batch .* must be about as large as the sampling_rate"):
        made(expected_batch=20.0)
    for public in (39.5, 60.0):
        made(expected_batch=public)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"expected_batch .* must be in \(0, inf\)"):
            made(expected_batch=wrong)


# Model, optimizer and data


@pytest.mark.parametrize(("data", "said"), [
    ((torch.zeros(0, 4), torch.zeros(0).long()), "at least one record"),
    ((torch.zeros(3, 4), torch.zeros(4).long()), "the same number of examples"),
    ((torch.zeros(3, 4),), r"pairs \(input, target\), got tuple of 1"),
    ([], "at least one record"),
    ([torch.zeros(4)], r"pairs \(input, target\)"),
    (iter([]), "a Dataset with length and index, got list_iterator"),
    (torch.utils.data.ChainDataset([]), "a Dataset with length and index"),
    (None, "a Dataset with length and index"),
])  # fmt: skip
def test_data_that_cannot_be_sampled_is_refused(data, said):
    model = nn.Linear(4, 2)
    with pytest.raises((ValueError, TypeError), match=said):
        PrivateTrainer(
            model, torch.optim.SGD(model.parameters(), lr=1.0), LOSS, data, sampling_rate=0.2, clip=1.0,
            noise_multiplier=1.0, steps=2,
        )  # fmt: skip


def test_models_and_optimizers_that_cannot_be_trained_privately_are_refused():
    with pytest.raises(ValueError, match=r"BatchNorm1d.* mixes the examples of a batch"):
        made(model=nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)))
    with pytest.raises(TypeError, match="got LBFGS, which asks for the loss again"):
        made(optimizer=torch.optim.LBFGS)
    with pytest.raises(TypeError, match=r"must be a torch.optim.Optimizer, got int"):
        made(optimizer=3)
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    with pytest.raises(ValueError, match=r"trainable parameters; 1.weight is not among them"):
        made(model=model, optimizer=torch.optim.SGD(model[0].parameters(), lr=0.1))
    other = torch.optim.SGD([*model.parameters(), *nn.Linear(1, 1).parameters()], lr=0.1)
    with pytest.raises(ValueError, match="parameters of the model only"):
        made(model=model, optimizer=other)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    with pytest.raises(TypeError, match="needs no metric: the loss on the data is private"):
        made(model=model, optimizer=optimizer, schedule=plateau)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Rprop"])
def test_any_optimizer_of_gradients_trains(kind):
    data = separable()
    model = nn.Linear(4, 2)
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    made(data, model=model, optimizer=optimizer, steps=4).fit()
    assert not model.weight.equal(before)


def test_it_learns_from_tensors_and_from_datasets_alike():
    features, labels = separable(400)
    datasets = (
        (features, labels),
        torch.utils.data.TensorDataset(features, labels),
        list(zip(features, labels, strict=True)),
        torch.utils.data.Subset(torch.utils.data.TensorDataset(features, labels), range(400)),
    )
    for data in datasets:
        trainer = made(data, steps=30)
        trainer.fit()
        right = (trainer.model(features).argmax(dim=1) == labels).float().mean()
        assert right > 0.85


def test_a_schedule_steps_with_the_optimizer_and_a_frozen_parameter_keeps_still():
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    model[0].requires_grad_(False)
    model[0].weight.grad = torch.ones(3, 4)  # somebody's gradient without noise
    before = model[0].weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    made(model=model, optimizer=optimizer, schedule=schedule, steps=3).fit()
    assert optimizer.param_groups[0]["lr"] == 0.125
    assert model[0].weight.equal(before)


class Counting(list):
    """A dataset that remembers who was asked for."""

    asked = None

    def __getitem__(self, number):
        if self.asked is not None:
            self.asked.append(number)
        return super().__getitem__(number)


def test_batches_are_poisson_batches_whatever_torch_is_seeded_with():
    """False alarms: 1e-9 for the total, 1e-9 for two equal runs; batches of a fixed size would show as no spread."""
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002
        data = Counting(zip(*separable(100), strict=True))
        trainer, sizes = made(data, steps=60, sampling_rate=0.3, noise_multiplier=10.0), []
        data.asked = []
        trainer.fit(watch=lambda _, data=data, sizes=sizes: sizes.append(len(data.asked)))
        runs.append(data.asked)
        found = len(data.asked)
        assert binomial_tail(found, 6000, 0.3) > 1e-9
        assert binomial_tail(6000 - found, 6000, 0.7) > 1e-9
        assert np.std(np.diff(sizes)) > 1.5  # binomial: 4.6
    assert runs[0] != runs[1]


def test_empty_batches_are_steps_like_others():
    trainer = made(separable(3), sampling_rate=1e-6, steps=5, expected_batch=1.0)
    before = trainer.model.weight.detach().clone()
    assert trainer.fit().applied == 5
    assert not trainer.model.weight.equal(before)
    assert made(list(zip(*separable(3), strict=True)), sampling_rate=1e-6, steps=2).fit().applied == 2


# The ledger


@pytest.fixture
def ledger(tmp_path):
    made = psidp.Ledger(tmp_path / "ledger.db")
    made.open("models", psi=6.0, kappa=1e-9, unit="patient", actor="Ann", purpose="tests")
    yield made
    made.dispose()


def states(ledger):
    return [entry.state for entry in ledger.entries()]


def test_the_whole_run_is_in_the_ledger_before_its_first_gradient_and_what_it_used_after(ledger, tmp_path):
    def loss(output, target):
        with (tmp_path / "seen").open("a") as log:  # a list that grows would be refused
            print(*states(ledger), file=log)
        return LOSS(output, target)

    trainer = made(loss=loss, ledger=ledger, budget="models", unit="patient", steps=10)
    assert states(ledger) == ["opened"]
    first = trainer.fit(epochs=1)
    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    made_up = seen.index(["opened", "spent"])
    assert seen[:made_up] == [["opened"]] * REHEARSED  # examples that are made up
    assert all("spent" in state for state in seen[made_up:])
    assert (first.started, first.finished) == (5, False)
    last = trainer.fit()
    assert trainer.fit() == last
    assert states(ledger) == ["opened", "spent", "answered", "answered"]
    spent, *used = list(ledger.entries())[1:]
    assert spent.details() == {
        "by": ledger.actor,
        "kind": "dpsgd", "noise_multiplier": 1.0, "sampling_rate": 0.2, "steps": 10, "sampling": "poisson",
        "kappa": 1e-10, "failure": trainer.failure,
    }  # fmt: skip
    assert [(e.refers, e.details()["steps"]) for e in used] == [(2, 5), (2, 10)]
    assert spent.psi == last.psi == first.psi
    assert last.ledger_head == str(ledger.head())
    ledger.verify()


def test_a_budget_that_does_not_cover_the_run_refuses_before_anything_is_read(ledger, tmp_path):
    trainer = made(
        ledger=ledger, budget="models", unit="patient", noise_multiplier=0.3, steps=100, checkpoint=tmp_path / "run.pt"
    )
    head, before = ledger.head(), trainer.model.weight.detach().clone()
    with pytest.raises(psidp.errors.BudgetExceededError, match="Budget 'models' has psi 6 left") as caught:
        trainer.fit()
    assert "larger noise_multiplier" in caught.value.__notes__[-1]
    assert ledger.head() == head
    assert trainer.model.weight.equal(before)
    assert [path.name for path in tmp_path.glob("run*")] == []
    with pytest.raises(psidp.errors.MismatchError, match="unit 'patient'"):
        made(ledger=ledger, budget="models").fit()
    with pytest.raises(psidp.errors.UnknownBudgetError):
        made(ledger=ledger, budget="other")


def test_a_training_that_is_stopped_by_an_error_notes_the_steps_it_used_and_can_go_on(ledger):
    def watch(progress):
        if progress.started == 7:
            raise KeyboardInterrupt

    trainer = made(ledger=ledger, budget="models", unit="patient")
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(watch=watch)
    assert list(ledger.entries())[-1].details()["steps"] == 7
    assert trainer.fit().started == 20
    assert states(ledger).count("spent") == 1


def test_a_ledger_that_is_gone_at_the_end_does_not_hide_the_error(ledger, monkeypatch):
    trainer = made(ledger=ledger, budget="models", unit="patient")
    monkeypatch.setattr(psidp.Ledger, "record_usage", lambda *_: 1 / 0)
    with pytest.raises(KeyError, match="stop") as caught:
        trainer.fit(watch=lambda _: {}["stop"])
    assert caught.value.__notes__ == [
        "1 of 20 steps were started and count. Call fit again to go on.",
        "The ledger could not note that 1 steps were used: division by zero",
    ]


def test_a_mistake_in_model_loss_or_files_is_found_before_anything_is_paid(ledger, tmp_path):
    features, labels = separable()
    paid = {"ledger": ledger, "budget": "models", "unit": "patient"}
    for data in ((features, labels.float()), (features[:, :3], labels), (features.double(), labels)):
        with pytest.raises(RuntimeError) as caught:
            made(data, **paid).fit()
        assert "nothing was spent" in caught.value.__notes__[-1]
    with pytest.raises(TypeError, match="watch must be callable, got int"):
        made(**paid).fit(watch=3)
    with pytest.raises(ValueError, match="checkpoint must be where files can be written"):
        made(**paid, checkpoint="/proc/run.pt").fit()
    with pytest.raises(ValueError, match="checkpoint must be a file, got the folder"):
        made(**paid, checkpoint=tmp_path)
    assert states(ledger) == ["opened"]


def test_the_number_of_records_is_in_nothing_that_is_shown_where_a_public_one_is_given(tmp_path):
    """Neighbours have the same price and the same terms."""
    seen = []
    for records in (200, 201):
        features, labels = (torch.cat([part, part[:1]])[:records] for part in separable())
        trainer = made((features, labels), expected_batch=40.0, checkpoint=tmp_path / f"{records}.pt")
        training = trainer.fit(epochs=1)
        terms = json.loads((tmp_path / f"{records}.pt.steps").read_bytes().partition(b"\n")[0])
        del terms["identity"]
        seen.append((training, training.epsilon, training.psi, terms))
    assert seen[0] == seen[1]


def test_one_thread_at_a_time_trains():
    trainer, answers = made(), []

    def again(_):
        with pytest.raises(RuntimeError, match="is training already") as caught:
            trainer.fit()
        answers.append(caught)

    trainer.fit(epochs=1, watch=again)
    assert len(answers) == 5


# What is shown


def test_progress_tells_certified_numbers_and_nothing_of_the_data():
    def shown(data):
        seen = []
        trainer = made(data, steps=12)
        trainer.fit(watch=seen.append)
        return seen, repr(trainer), psidp.card(trainer.training, date="2026-01-31").to_json(), trainer

    features, labels = separable()
    spoiled = torch.where(torch.arange(200)[:, None] % 3 == 0, torch.nan, features)
    clean, dirty = shown((features, labels)), shown((spoiled, labels))
    assert clean[:3] == dirty[:3]
    assert dirty[3]._step.undefined > 0 == clean[3]._step.undefined
    seen = clean[0]
    assert [p.ended for p in seen] == [p.started in (5, 10, 12) for p in seen]
    curve = psidp.account([psidp.DPSGD(1.0, 0.2, 10), psidp.Guarantee(0.0, clean[3].failure)])
    assert (seen[9].epsilon, seen[9].psi) == (curve.epsilon(1e-5).upper, curve.guarantee(1e-10).psi)
    assert seen[9].epsilon < seen[10].epsilon < seen[11].epsilon == clean[3].training.epsilon
    assert {f.name for f in fields(Progress)} == {
        "run", "started", "epoch", "epochs", "ended", "delta", "kappa", "failure", "score",
    }  # fmt: skip


def test_progress_tells_the_certified_cost_of_the_steps_so_far_at_every_step():
    seen, trainer = [], made(steps=12)
    trainer.fit(watch=seen.append)
    failed = psidp.Guarantee(0.0, trainer.failure)
    for progress in seen[3:]:
        curve = psidp.account([psidp.DPSGD(1.0, 0.2, progress.started), failed])
        assert (progress.epsilon, progress.psi) == (curve.epsilon(1e-5).upper, curve.guarantee(1e-10).psi)
    assert [p.steps for p in seen] == [12] * 12
    before = replace(seen[0], started=0)
    assert (before.epsilon, before.psi) == (0.0, 0.0)


def test_what_is_told_after_very_few_steps_is_told_as_of_four():
    seen = []
    made(steps=6, sampling_rate=0.5, noise_multiplier=4.0).fit(watch=seen.append)
    assert [p.epsilon for p in seen[:4]] == [seen[3].epsilon] * 4
    assert 0.0 < seen[0].epsilon < seen[4].epsilon < seen[5].epsilon


def test_a_public_score_is_computed_after_each_epoch_in_eval_mode():
    model = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5).eval())
    modes, scores = [], []

    def validate(model):
        modes.append((model.training, model[1].training, torch.is_grad_enabled()))
        return len(modes) / 8

    made(model=model, steps=10).fit(validate=validate, watch=lambda seen: scores.append(seen.score))
    assert modes == [(False, False, False)] * 2
    assert (model.training, model[1].training) == (True, False)
    assert scores == [None] * 4 + [0.125] * 5 + [0.25]


def test_the_bar_says_epsilon_and_psi_after_each_epoch():
    page = StringIO()
    with psidp.training_bar(Console(file=page, width=150)) as bar:
        training = made(steps=10).fit(watch=bar, validate=lambda _: 0.75)
    lines = [line for line in page.getvalue().splitlines() if line.startswith("epoch")]
    assert len(lines) == 2
    assert lines[0].startswith("epoch 1 of 2: epsilon ")
    shown = float(lines[1].split("epsilon ")[1].split(" ")[0])
    assert training.epsilon <= shown <= training.epsilon * 1.001
    assert lines[1].endswith("(kappa 1e-10), score 0.75")


def test_the_card_says_the_whole_planned_run_also_when_it_stopped_early(ledger):
    trainer = made(ledger=ledger, budget="models", unit="patient", clip=0.7)
    training = trainer.fit(epochs=1)
    card = psidp.card(training, title="a model", date="2026-01-31")
    assert psidp.Card.from_json(card.to_json()) == card
    assert card.guarantee == training.guarantee
    assert 0 <= training.psi / psidp.account(trainer.run).guarantee(1e-10).psi - 1 < 1e-6
    mechanism = card.mechanism
    assert (mechanism.name, mechanism.sensitivity, mechanism.steps, mechanism.sampling) == (
        "DP-SGD",
        0.7,
        20,
        "poisson",
    )
    assert card.ledger_head == str(ledger.head())
    assert psidp.card(trainer.run, kappa=1e-6).guarantee.kappa == 1e-6


# Copies


def test_a_trainer_is_neither_copied_nor_carried_through_a_fork():
    trainer = made()
    trainer.fit(epochs=1)
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="must not be copied"):
            copied(trainer)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            trainer.fit()
        except RuntimeError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"this one is a fork" in os.read(read, 1000)
    os.close(read)
    os.close(write)


class Sum(nn.Module):
    """A model of two inputs."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 2), nn.Linear(3, 2)

    def forward(self, one, two):
        return self.one(one) + self.two(two)


def test_a_model_of_several_inputs_is_trained_from_tensors_and_from_items():
    features, labels = separable(40)
    both = (features, torch.zeros(40, 3))
    items = [((a, b), label) for a, b, label in zip(*both, labels, strict=True)]
    named = [({"one": a, "two": b}, label) for (a, b), label in items]
    for data in ((both, labels), items, named):
        assert made(data, model=Sum(), steps=3).fit().applied == 3
        assert made(data, model=Sum(), steps=2, sampling_rate=1e-9).fit().applied == 2
