"""Random numbers of models and data sets: drawn for each example, fresh, and by nobody's company."""

import random
from contextlib import nullcontext
from threading import Event, Thread

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import Dataset

from psidp.bridges.torch import PrivateStep, PrivateTrainer
from psidp.bridges.torch.step.batch_dependence import dependence
from psidp.bridges.torch.step.rng import drawn_from, renew, set_aside
from psidp.bridges.torch.training import records as module
from psidp.bridges.torch.training.records import Records

CPU = torch.device("cpu")
ONES = torch.ones(8, 6)


class Attention(nn.Module):
    """A block with dropout in its attention and after it."""

    def __init__(self):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(6, 2, 64, dropout=0.3, batch_first=True)

    def forward(self, x):
        return self.block(x.unsqueeze(1)).squeeze(1)


MODELS = {
    "dropout": lambda: nn.Sequential(nn.Linear(6, 40), nn.Dropout(0.5), nn.Linear(40, 6)),
    "alpha": lambda: nn.Sequential(nn.Linear(6, 40), nn.AlphaDropout(0.5), nn.Linear(40, 6)),
    "attention": Attention,
}


def step_of(model):
    return PrivateStep(model, mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=8, micro_batch=8)


def states():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002


@pytest.mark.parametrize("name", MODELS)
def test_each_example_has_masks_of_its_own_and_each_micro_batch_fresh_ones(name):
    step = step_of(MODELS[name]())
    seen = []
    for _ in range(2):
        torch.manual_seed(0)
        found = step.gradients(ONES, torch.zeros(8, 6))
        seen += torch.cat([g.flatten(1) for g in found], 1).tolist()
    assert len({tuple(row) for row in seen}) == 16


@pytest.mark.parametrize("name", MODELS)
def test_masks_stay_at_their_places_whatever_the_company(name):
    found = dependence(step_of(MODELS[name]()), torch.randn(8, 6), torch.randn(8, 6))
    assert found.compared > 0
    assert found.by_company == 0


def test_masks_are_those_of_dropout():
    step = step_of(nn.Sequential(nn.Dropout(0.25), nn.Linear(600, 1, bias=False)))
    kept = step.gradients(torch.ones(8, 600), torch.full((8, 1), -1e6))[0] != 0
    share = float(kept.double().mean())
    assert abs(share - 0.75) < 6 * (0.75 * 0.25 / kept.numel()) ** 0.5


class Lots(nn.Module):
    """A model that draws, once told to, from one of the generators that micro-batches are seeded with."""

    def __init__(self, name):
        super().__init__()
        self.inner, self.name, self.on = nn.Linear(6, 6), name, True

    def forward(self, x):
        draw = {"python": random.random, "numpy": np.random.rand, "torch": lambda: torch.rand(())}
        return self.inner(x) * (1.0 + draw[self.name]()) if self.on and self.name != "nothing" else self.inner(x)


def summed(step, n):
    """The arrangements that a call sums, as rows of micro-batches."""
    seen, arranged = [], step.places.arranged
    step.places.arranged = lambda who: seen.append(arranged(who)) or seen[-1]
    try:
        step(torch.randn(n, 6), torch.randn(n, 6))
    finally:
        step.places.arranged = arranged
    return [who.reshape(-1, step.micro_batch) for who in seen]


def moved_up(who):
    """Whether every example is in the first micro-batch in which its place is free."""
    return bool(np.all((who[1:] < 0) | (who[:-1] >= 0)))


@pytest.mark.parametrize("name", [*MODELS, "python", "numpy", "torch", "nothing"])
def test_where_a_model_draws_random_numbers_nobody_is_moved_to_another_micro_batch(name):
    model = Lots(name) if name not in MODELS else MODELS[name]()
    step = PrivateStep(model, mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=8, micro_batch=4)
    summed(step, 8)
    assert step.places.by_lot == (name != "nothing")
    draws = [who for _ in range(20) for who in summed(step, 8)]
    assert len(draws) == 20
    assert all(map(moved_up, draws)) == (name == "nothing")
    assert all(who.max(axis=1).min() >= 0 for who in draws)  # none is computed for nobody


def test_a_model_that_begins_to_draw_has_its_step_summed_once_more_with_nobody_moved():
    model = Lots("torch")
    model.on = 0
    step = PrivateStep(model, mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=8, micro_batch=4)
    assert [len(summed(step, 8)) for _ in range(3)] == [1, 1, 1]
    model.on = 1  # a truth value or a text would be rehearsed
    first, second = summed(step, 8)
    assert moved_up(first)
    assert sorted(second[second >= 0]) == list(range(8))
    assert step.places.by_lot
    draws = [who for _ in range(20) for who in summed(step, 8)]
    assert len(draws) == 20
    assert not all(map(moved_up, draws))


def test_where_nobody_is_moved_nothing_is_summed_once_more():
    model = Lots("torch")
    model.on = False
    step = PrivateStep(
        model, mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=8, micro_batch=4, empty="computed"
    )
    assert len(summed(step, 8)) == 1
    model.on = True
    assert len(summed(step, 8)) == 1
    assert step.places.by_lot


def test_it_is_seen_whether_a_generator_was_drawn_from():
    with set_aside(CPU):
        for draw in (random.random, np.random.rand, lambda: torch.rand(1), lambda: torch.randn(1)):
            seed = renew(CPU)
            assert not drawn_from(CPU, seed)
            renew(CPU, seed)
            draw()
            assert drawn_from(CPU, seed)


def test_a_step_with_dropout_leaves_the_callers_generators_as_they_were():
    step = step_of(MODELS["dropout"]())
    before = states()
    step(ONES, torch.zeros(8, 6))
    assert states() == before


def test_a_refused_step_leaves_them_too():
    step = PrivateStep(nn.Linear(6, 6), lambda a, b: a, clip=1.0, noise_multiplier=1.0, expected_batch=8)
    before = states()
    with pytest.raises(ValueError, match="loss must give one number"):
        step(ONES, ONES)
    assert states() == before


def test_a_seed_renews_all_generators_to_the_same_state():
    with set_aside(CPU):
        drawn = []
        for _ in range(2):
            renew(CPU, bytes(range(24)))
            drawn.append((random.random(), np.random.random(), torch.rand(1).item()))  # noqa: NPY002
    assert drawn[0] == drawn[1]


def test_two_threads_do_not_draw_from_each_others_seeds():
    before, entered, done = states(), Event(), Event()

    def other():
        with set_aside(CPU):
            renew(CPU)
            entered.set()
            done.wait(60)

    thread, drawn = Thread(target=other), []
    for together in (False, True):
        with set_aside(CPU):
            renew(CPU, bytes(24))
            if together:
                thread.start()
                entered.wait(0.2)  # in vain, if it has to wait for this one
            drawn.append(torch.rand(4).tolist())
    done.set()
    thread.join()
    assert drawn[0] == drawn[1]
    assert states() == before


def test_a_step_in_another_thread_waits_before_it_changes_what_all_threads_share():
    step = step_of(MODELS["dropout"]())
    thread = Thread(target=step.gradients, args=(ONES, ONES))
    with set_aside(CPU):
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert not torch.backends.cudnn.deterministic
    thread.join()
    assert not torch.backends.cudnn.deterministic


class Augmented(Dataset):
    """Records that come with a random number from each generator; reading record 3 uses up many more."""

    def __len__(self):
        return 10

    def __getitem__(self, number):
        drawn = [random.random(), float(np.random.random()), torch.rand(1, dtype=torch.float64).item()]  # noqa: NPY002
        torch.rand(1000 if number == 3 else 1)
        rest = [x * 2**24 % 1 for x in drawn]  # the bits that float32 does not hold, and without which some are equal
        return torch.tensor([*drawn, *rest], dtype=torch.float32), torch.zeros(6)


def test_each_record_is_read_with_fresh_random_numbers_and_the_callers_stay():
    records = Records(Augmented(), CPU)
    seen = []
    with set_aside(CPU):
        for _ in range(2):
            renew(CPU, bytes(24))
            seeded = states()
            seen.append(records.batch(np.array([0, 3, 5]))[0])
            assert states() == seeded
    assert len(torch.cat(seen).view(6, 2, 3).transpose(1, 2).reshape(18, 2).unique(dim=0)) == 18


def test_records_that_are_augmented_on_the_models_device_have_fresh_random_numbers_there(monkeypatch):
    renewed, device = [], torch.device("meta")
    monkeypatch.setattr(module, "set_aside", lambda device: renewed.append(("aside", device)) or nullcontext())
    monkeypatch.setattr(module, "renew", lambda device: renewed.append(("renewed", device)))
    records = Records(Augmented(), device)
    renewed.clear()
    records.batch(np.array([2, 4]))
    assert renewed == [("aside", device), ("renewed", device), ("renewed", device)]


def test_a_trainer_takes_models_with_dropout_and_data_with_augmentation():
    model = MODELS["dropout"]()
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), mse_loss, Augmented(),
        sampling_rate=0.5, clip=1.0, noise_multiplier=1.0, steps=4,
    )  # fmt: skip
    before = model[0].weight.detach().clone()
    assert trainer.fit().applied == 4
    assert model[1].training
    assert not torch.equal(model[0].weight, before)
