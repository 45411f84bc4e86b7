"""Privacy of users: a user more or less moves the sum by at most the clip, whatever its examples hold."""

import importlib.util
import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import psidp
from psidp.bridges.torch import AdaptiveClip, PerLayerClip, PrivateStep, PrivateTrainer
from psidp.bridges.torch.step.clipping import bound_of
from psidp.bridges.torch.step.user_places import UserPlaces, lot
from psidp.bridges.torch.training.units import Users

torch.set_num_threads(1)
LOSS = nn.functional.cross_entropy
NAN, INF = float("nan"), float("inf")
CLIPS = [1.0, 0.1, 3.7, 1e-6, 1e6]


class Tagger(nn.Module):
    """Words, a table that is read and multiplied with, a mean over them: factors, gathers and rows in one model."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(40, 24)
        self.middle = nn.Sequential(nn.Linear(24, 48), nn.LayerNorm(48), nn.Tanh(), nn.Linear(48, 24))

    def forward(self, words):
        return self.middle(self.table(words.long() % 40)).mean(1) @ self.table.weight[:3].t()


class Series(nn.Module):
    """A recurrent layer and attention, which are written out for `vmap`."""

    def __init__(self):
        super().__init__()
        self.past = nn.LSTM(3, 6, batch_first=True)
        self.look = nn.MultiheadAttention(6, 2, batch_first=True)
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        seen = self.past(x)[0]
        return self.last(self.look(seen, seen, seen, need_weights=False)[0].mean(1))


MODELS = {
    "linear": (lambda: nn.Linear(5, 3), lambda n: torch.randn(n, 5)),
    "layers": (lambda: nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 3)), lambda n: torch.randn(n, 5)),
    "doubles": (lambda: nn.Linear(5, 3).double(), lambda n: torch.randn(n, 5).double()),
    "images": (
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 3)),
        lambda n: torch.randn(n, 1, 6, 6),
    ),
    "series": (Series, lambda n: torch.randn(n, 5, 3)),
    "words": (Tagger, lambda n: torch.randint(0, 40, (n, 7))),
}


def made(kind, each=4, **asked):
    torch.manual_seed(3)
    model = MODELS[kind][0]()
    asked = {"clip": 1.0, "noise_multiplier": 1.0, "expected_batch": 6} | asked
    return PrivateStep(model, LOSS, examples_per_user=each, **asked)


def drawn(kind, counts, seed=4):
    """Examples of users with so many each, in a mixed order, and whose they are."""
    torch.manual_seed(seed)
    users = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    return MODELS[kind][1](len(users)), torch.randint(0, 3, (len(users),)), users


def squares(row):
    return sum(k * k for k in row.tolist())


# The step


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("as_rows", [False, True])
def test_a_users_gradient_is_that_of_the_mean_of_its_losses(kind, as_rows):
    step = made(kind)
    step._as_rows = as_rows
    inputs, targets, users = drawn(kind, [1, 2, 3, 4])
    found = step.gradients(inputs, targets, users)
    names = list(dict.fromkeys(users.tolist()))
    for place, name in enumerate(names):
        at = np.flatnonzero(users == name)
        step._model.zero_grad()
        LOSS(step._model(inputs[at]), targets[at]).backward()
        for g, p in zip(found, step.parameters.values(), strict=True):
            torch.testing.assert_close(g[place], p.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("as_rows", [False, True])
def test_what_a_user_adds_has_norm_at_most_the_clip_in_integers(kind, as_rows):
    rng, seen = np.random.default_rng(5), 0
    for clip in CLIPS:
        step = made(kind, clip=clip)
        step._as_rows = as_rows
        bound, unit = bound_of(clip, step._fineness)
        assert Fraction(bound) * Fraction(2) ** unit <= Fraction(clip)
        inputs, targets, users = drawn(kind, rng.integers(1, 9, 5).tolist(), seed=int(rng.integers(1e6)))
        if inputs.is_floating_point():
            inputs *= float(10.0 ** rng.integers(-8, 8))
        for row in step.contributions(inputs, targets, users):
            assert squares(row) <= bound**2
            seen += squares(row) > (0.9 * bound) ** 2
    assert seen > 0  # some reach the bound, so that this could fail


@pytest.mark.parametrize("kind", ["linear", "layers", "images"])
def test_neighbouring_draws_by_user_differ_by_at_most_the_clip_in_exact_integers(kind, monkeypatch):
    """A user more or less, in the same places: users of 1 to 50 examples, NaN, infinity, huge and tiny ones."""
    rng, compared, undefined = np.random.default_rng([6, list(MODELS).index(kind)]), 0, 0
    monkeypatch.setattr("psidp.bridges.torch.step.user_places.lot", lambda many, few: np.arange(min(many, few)))
    for clip in CLIPS:
        step = made(kind, clip=clip, expected_batch=8, micro_batch=4)
        bound = bound_of(clip, step._fineness)[0]
        for _ in range(3):
            counts = [1, 2, 50, *rng.integers(1, 10, 4)]
            inputs, targets, users = drawn(kind, counts, seed=int(rng.integers(1e6)))
            with torch.no_grad():
                for bad, value in enumerate((NAN, INF, 1e30, 1e-30)):
                    inputs[np.flatnonzero(users == bad + 2)[-1]] *= value
            moved = []
            for left_out in (None, *range(len(counts))):
                there = users != left_out if left_out is not None else np.full(len(users), True)
                everyone = {name: place for place, name in enumerate(dict.fromkeys(users.tolist()))}
                others = list(dict.fromkeys(users[there].tolist()))
                places = np.full(step.slots, -1)
                places[[3 * everyone[name] for name in others]] = np.arange(len(others))
                monkeypatch.setattr("psidp.bridges.torch.step.places.order", lambda total, slots, p=places: p)
                moved.append(units_of_a_draw(step, inputs[there], targets[there], users[there], monkeypatch))
            for one in moved[1:]:
                assert squares(np.array(moved[0], dtype=object) - np.array(one, dtype=object)) <= bound**2
                compared += 1
            undefined += step.undefined
    assert compared == 105
    assert undefined > 0


def units_of_a_draw(step, inputs, targets, users, monkeypatch):
    """The exact totals that a step forms, before the noise."""
    kept = []
    with monkeypatch.context() as patched:
        patched.setattr(
            "psidp.bridges.torch.step.clipping.ClippedTotals.noisy",
            lambda totals, sigma: (kept.append(totals.units.tolist()), totals.units.double())[1],
        )
        step(inputs, targets, users)
    return kept[0]


def test_one_undefined_example_makes_its_user_zero_and_no_other():
    for value in (NAN, INF, -INF):
        step = made("layers")
        inputs, targets, users = drawn("layers", [4, 4, 1])
        before = step.contributions(inputs, targets, users)
        inputs[np.flatnonzero(users == users[0])[1]] = value
        after = step.contributions(inputs, targets, users)
        assert not after[0].any()
        assert before[0].any()
        assert torch.equal(before[1:], after[1:])


def test_a_loss_that_is_undefined_at_zeros_does_no_harm():
    """No place of a user is empty, so that nothing made up meets the loss in a place that counts."""

    def logarithm(output, target):
        return torch.log(output.square()).sum() + torch.sqrt(target)

    model = nn.Linear(2, 1, bias=False)
    step = PrivateStep(model, logarithm, clip=1.0, noise_multiplier=1.0, expected_batch=3, examples_per_user=8)
    step(torch.randn(4, 2), torch.ones(4), ["a", "a", "a", "b"])
    assert step.undefined == 0
    assert torch.isfinite(model.weight.grad).all()


def test_of_a_user_with_many_examples_so_many_are_taken_and_each_equally_often():
    taken = np.zeros(20)
    for _ in range(2000):
        some = lot(20, 5)
        assert len(set(some.tolist())) == 5
        taken[some] += 1
    assert 5 * ((taken / 2000 - 0.25) ** 2).sum() < 1.0
    assert abs(taken - 500).max() < 6 * np.sqrt(2000 * 0.25 * 0.75)  # 20 counts: a false alarm in 2e-8


def test_every_place_of_a_user_holds_an_example_of_its_own_and_weights_make_a_mean():
    rng = np.random.default_rng(7)
    for each in (1, 2, 5, 8):
        users = rng.integers(0, 12, 40)
        places = UserPlaces.of(users.tolist(), each)
        for name, row, weights in zip(dict.fromkeys(users.tolist()), places.examples, places.weights, strict=True):
            assert set(users[row]) == {name}
            taken = set(row.tolist())
            assert len(taken) == min(each, (users == name).sum())
            for example in taken:
                np.testing.assert_allclose(weights[row == example].sum(), 1 / len(taken), rtol=1e-15)


def test_a_users_integers_do_not_depend_on_its_company():
    step = made("layers", micro_batch=4)
    inputs, targets, users = drawn("layers", [3, 2, 4, 1])
    users = np.sort(users)
    whole = step.contributions(inputs, targets, users)
    others = inputs.clone()
    others[users != 2] = NAN
    assert torch.equal(step.contributions(others, targets, users)[2], whole[2])


@pytest.mark.parametrize("clip", [PerLayerClip(1.0), AdaptiveClip(quantile=0.5, initial=1.0)])
def test_clips_by_layer_and_clips_that_adapt_are_of_users(clip):
    step = made("layers", clip=clip, noise_multiplier=1e-3)
    inputs, targets, users = drawn("layers", [1, 9, 3, 3])
    now, bound = step.clip, bound_of(step.clip, step._fineness)[0]
    assert all(squares(row) <= bound**2 for row in step.contributions(inputs, targets, users))
    step(inputs, targets, users)
    total = sum(g.norm() ** 2 for g in (p.grad.double() for p in step.parameters.values())).sqrt()
    assert total <= 4 * now / 6 * 1.01 + 0.1


@pytest.mark.parametrize(("asked", "users", "said"), [
    ({}, None, "users .* must be given"),
    ({}, ["a"], "one name for each of the 2 examples, got 1"),
    ({"each": None}, ["a", "b"], "users .* must go with examples_per_user"),
    ({"each": 0}, ["a", "b"], "examples_per_user"),
    ({"each": 2.5}, ["a", "b"], "examples_per_user"),
])  # fmt: skip
def test_what_a_step_cannot_do_for_users_is_refused(asked, users, said):
    with pytest.raises((TypeError, ValueError), match=said):
        made("linear", **asked)(torch.zeros(2, 5), torch.zeros(2).long(), users)


# The trainer


def table(users=120, seed=8, most=1000):
    """Users with 1 to `most` examples, and which class an example has by its user's own taste."""
    rng = np.random.default_rng(seed)
    counts = np.unique(np.geomspace(1, most, users).astype(int), return_index=False)
    counts = np.concatenate([counts, rng.integers(1, 5, users - len(counts))])
    names = np.repeat(np.arange(users), counts)
    features = torch.tensor(rng.normal(size=(len(names), 4)), dtype=torch.float32)
    order = rng.permutation(len(names))
    return features, (features.sum(1) > 0).long(), names[order]


def trained(data=None, *, model=None, each=4, **asked):
    features, labels, names = table() if data is None else data
    model = nn.Linear(4, 2) if model is None else model
    asked = {"sampling_rate": 0.1, "clip": 1.0, "noise_multiplier": 1.0, "steps": 20} | asked
    return PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.5), LOSS, (features, labels),
        users=names, examples_per_user=each, **asked,
    )  # fmt: skip


def test_users_of_1_to_1000_examples_train_within_the_promise_and_learn():
    features, labels, names = table()
    counts = np.bincount(names)
    assert (counts.min(), counts.max(), len(counts)) == (1, 1000, 120)
    model = nn.Linear(4, 2)
    trainer = trained((features, labels, names), model=model, noise_multiplier=None, steps=100, psi=3.0)
    assert trainer._step.expected_batch == pytest.approx(12.0)
    training = trainer.fit()
    assert training.finished
    assert training.psi <= 3.0
    assert training.guarantee.unit == "user"
    assert (model(features).argmax(1) == labels).float().mean() > 0.8


def test_users_toss_coins_and_bring_at_most_so_many_examples():
    data = table(40, most=200)
    trainer = trained(data, sampling_rate=0.3, each=6)
    counts, drawn_users = np.bincount(data[2]), np.zeros(40)
    for step in range(300):
        numbers = trainer._batches.of(step)
        assert np.all(np.diff(numbers) > 0)
        mine = np.bincount(data[2][numbers], minlength=40)
        assert np.all((mine == 0) | (mine == np.minimum(counts, 6)))
        drawn_users += mine > 0
    assert abs(drawn_users - 90).max() < 6 * np.sqrt(300 * 0.3 * 0.7)  # 40 counts: a false alarm in 1e-7


def test_users_are_numbered_by_their_names_alone():
    names = ["Ann", "Bob", "Cem", "Ann", None, "Dan", NAN, "Bob"]
    users = Users(names, 3, 8, "user")
    assert users.size == 4
    turned = Users(names[::-1], 3, 8, "user")
    assert turned.names == users.names
    for number, name in enumerate(users.names):
        assert [names[k] for k in users.records(number)] == [name] * names.count(name)
    assert users.of(np.array([4, 6]))[0].tolist() == [-1, -1]
    fewer = Users([name for name in names if name != "Bob"], 3, 6, "user")
    assert fewer.names == [name for name in users.names if name != "Bob"]
    assert Users([1, "1", 2], 1, 3, "user").size == 3


def test_records_of_nobody_are_never_read():
    class Watched:
        def __len__(self):
            return 8

        def __getitem__(self, number):
            seen.add(number)
            return torch.ones(4), torch.tensor(1)

    seen, model = set(), nn.Linear(4, 2)
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), LOSS, Watched(), users=["a", "b", None, "a"] * 2,
        examples_per_user=2, sampling_rate=1.0, clip=1.0, noise_multiplier=1.0, steps=30,
    )  # fmt: skip
    trainer.fit()
    assert seen == {0, 1, 3, 4, 5, 7}


@pytest.mark.parametrize("workers", [0, 2])
def test_the_step_is_told_whose_each_example_is_also_where_workers_read_ahead(workers):
    names = np.arange(60) % 7

    class Named:
        def __len__(self):
            return 60

        def __getitem__(self, number):
            return torch.full((4,), float(names[number])), torch.tensor(0)

    model = nn.Linear(4, 2)
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), LOSS, Named(), users=[f"user {n}" for n in names],
        examples_per_user=3, sampling_rate=0.5, clip=1.0, noise_multiplier=1.0, steps=12, workers=workers,
    )  # fmt: skip
    told, real = [], trainer._step

    class Spy:
        def __getattr__(self, name):
            return getattr(real, name)

        def __call__(self, inputs, targets, users, **more):
            told.extend((int(x[0]), int(user)) for x, user in zip(inputs, users, strict=True))
            real(inputs, targets, users)

    trainer._step = Spy()
    trainer.fit()
    assert len(told) > 50
    assert len(set(told)) == len({user for _, user in told}) == 7


def test_places_divisor_journal_and_card_speak_of_users_and_never_of_records(tmp_path):
    data = table(40, most=300)
    records = len(data[2])
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("models", psi=9.0, kappa=1e-9, unit="user", actor="Ann", purpose="a test")
    trainer = trained(
        data, checkpoint=tmp_path / "run.pt", ledger=ledger, budget="models", each=5, sampling_rate=0.2, steps=6
    )
    training = trainer.fit()
    terms = json.loads((tmp_path / "run.pt.steps").read_bytes().partition(b"\n")[0])
    assert (terms["unit"], terms["expected_batch"]) == ("user", 8.0)
    assert terms["records"] == {"users": 40, "examples_per_user": 5}
    card = psidp.card(training, title="Users")
    assert card.guarantee.unit == "user"
    bound = "the gradient of each user is the mean over at most 5 of its examples, clipped to norm 1"
    assert card.scope.contribution_bound == bound
    entry = next(entry for entry in ledger.entries() if entry.state == "spent").details()
    for shown in (json.dumps(terms), json.dumps(card.to_dict()), json.dumps(entry), repr(trainer), repr(training)):
        assert str(records) not in shown
    again = trained(data, checkpoint=tmp_path / "run.pt", ledger=ledger, budget="models", each=5, sampling_rate=0.2,
                    steps=6)  # fmt: skip
    assert again.training.started == 6


def test_a_run_of_users_does_not_go_on_with_another_cap_other_users_or_as_one_of_records(tmp_path):
    features, labels, names = table(40, most=30)
    asked = {"checkpoint": tmp_path / "run.pt", "sampling_rate": 0.2, "steps": 6, "unit": "patient"}
    asked |= {"expected_batch": 9.0}
    trained((features, labels, names), **asked).fit(epochs=1)
    with pytest.raises(ValueError, match=r"records .* must be that of the run"):
        trained((features, labels, names), each=5, **asked)
    model = nn.Linear(4, 2)
    optimizer, asked = torch.optim.SGD(model.parameters(), lr=0.5), {"clip": 1.0, "noise_multiplier": 1.0} | asked
    with pytest.raises(ValueError, match="must be that of the run"):
        PrivateTrainer(model, optimizer, LOSS, (features[:45], labels[:45]), **asked)
    assert trained((features, labels, names), **asked).fit().finished


def test_a_budget_for_another_unit_does_not_pay_for_users(tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("models", psi=9.0, kappa=1e-9, unit="record", actor="Ann", purpose="a test")
    with pytest.raises(ValueError, match="unit"):
        trained(ledger=ledger, budget="models").fit()


def test_bands_and_a_fixed_order_are_of_users():
    data = table(40, most=30)
    banded = trained(data, bands=2, sampling_rate=0.2)
    assert banded.run.adjacency == "add-remove"  # users have names, and find their class by them
    assert banded.fit().finished
    classes = [set(data[2][banded._batches.of(step)].tolist()) for step in range(40)]
    assert not set().union(*classes[::2]) & set().union(*classes[1::2])
    fixed = trained(data, order="fixed", sampling_rate=0.25, steps=None, epochs=2, adjacency="replace-one")
    assert fixed._step.slots == 10
    first = [set(data[2][fixed._batches.of(step)].tolist()) for step in range(8)]
    assert first[:4] == first[4:]
    assert sorted(user for some in first[:4] for user in some) == list(range(40))
    assert fixed.fit().guarantee.unit == "user"


@pytest.mark.parametrize(("asked", "said"), [
    ({"users": None}, "examples_per_user needs users"),
    ({"examples_per_user": None}, "users needs examples_per_user"),
    ({"examples_per_user": 0}, "examples_per_user"),
    ({"users": ["a", "b"]}, "one name for each of the 6 records, got 2"),
    ({"users": np.ones(6)}, "text or whole numbers, got floats"),
    ({"users": [None] * 6}, "users must name somebody"),
    ({"ids": range(6)}, "ids .* must not be given with users"),
    ({"unit": "record"}, 'unit must not be "record" where users are protected'),
])  # fmt: skip
def test_what_a_trainer_cannot_do_for_users_is_refused(asked, said):
    model = nn.Linear(4, 2)
    asked = {"users": list("aabbcc"), "examples_per_user": 2} | asked
    with pytest.raises((TypeError, ValueError), match=said):
        PrivateTrainer(
            model, torch.optim.SGD(model.parameters(), lr=0.5), LOSS, (torch.ones(6, 4), torch.ones(6).long()),
            sampling_rate=0.5, clip=1.0, noise_multiplier=1.0, steps=3, **asked,
        )  # fmt: skip


# Neighbours of whole trainings


def test_whole_trainings_on_neighbours_by_user_differ_by_at_most_the_clip_in_each_step(monkeypatch):
    """All of a user's records gone, the coins and lots of the others as they were: exact totals, step by step."""
    features, labels, names = table(30, most=100)
    named = np.array([f"user {n}" for n in names])
    gone = "user 17"
    monkeypatch.setattr("psidp.bridges.torch.training.units.lot", lambda many, few: np.arange(min(many, few)))
    monkeypatch.setattr("psidp.bridges.torch.training.trainer.PoissonBatches", _Everyone)
    totals = []
    for there in (np.full(len(named), True), named != gone):
        torch.manual_seed(1)
        model, found = nn.Linear(4, 2), []
        trainer = PrivateTrainer(
            model, torch.optim.SGD(model.parameters(), lr=0.0), LOSS, (features[there], labels[there]),
            users=named[there], examples_per_user=5, sampling_rate=0.5, clip=0.7, noise_multiplier=1.0, steps=5,
            expected_batch=15.0, micro_batch=1,
        )  # fmt: skip
        with monkeypatch.context() as patched:
            patched.setattr(
                "psidp.bridges.torch.step.clipping.ClippedTotals.noisy",
                lambda t, sigma, found=found: (found.append(t.units.tolist()), t.units.double())[1],
            )
            trainer.fit()
        totals.append(found)
        bound = bound_of(0.7, trainer._step._fineness)[0]
    gaps = [squares(np.array(a, dtype=object) - np.array(b, dtype=object)) for a, b in zip(*totals, strict=True)]
    assert len(gaps) == 5
    assert all(0 < gap <= bound**2 for gap in gaps)


class _Everyone:
    """Draws in which everybody takes part."""

    def __init__(self, size, rate):
        self._size = size

    def of(self, step):
        return np.arange(self._size)


# The example


def test_the_example_trains_for_users_and_for_records_and_its_promise_stands_the_audit(capsys):
    """No false alarm: whatever 20 canaries say, psi = 2 stands."""
    path = Path(__file__).parent.parent.parent / "examples" / "user_level.py"
    spec = importlib.util.spec_from_file_location("user_level_example", path)
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example  # where its dataclass looks for itself
    spec.loader.exec_module(example)
    counts = example.people(1000, seed=1).records
    assert (counts.min(), counts.max(), len(counts)) == (1, 1000, 1000)
    found = example.main(count=150, psi=2.0, steps=60, canaries=20)
    assert min(found.values()) > 0.4
    shown = capsys.readouterr().out
    assert "150 people with 1 to 1000 records each." in shown
    assert "one user" in shown


# Groups


def test_the_price_of_a_group_of_users_is_that_of_so_many_added_or_removed():
    training = trained(steps=50, noise_multiplier=2.0).training
    assert training.group(1).epsilon(1e-5).upper == training.curve.epsilon(1e-5).upper
    three = training.group(3)
    alone = psidp.account(psidp.DPSGD(2.0, 0.1, 50, group=3, unit="three"))
    assert alone.epsilon(1e-5).upper <= three.epsilon(1e-5).upper <= alone.epsilon(1e-5).upper * (1 + 1e-4)
    assert three.guarantee(1e-10).unit == "group of 3 users"
    fixed = trained(order="fixed", steps=None, epochs=1, sampling_rate=0.25).training
    assert fixed.group(3).guarantee(0.0).psi == pytest.approx(3 * fixed.psi, rel=1e-12)
    with pytest.raises(ValueError, match=r"at most 1/sampling_rate, 10, got 11"):
        training.group(11)
    with pytest.raises(ValueError, match="without bands"):
        trained(bands=2).training.group(2)


# Audits


def test_an_audit_with_canary_users_agrees_with_the_promise_and_finds_a_wrong_one():
    """Every canary user has examples of its own, which all fall on a weight of its own."""
    canaries, each, rng = 120, 4, np.random.default_rng(11)
    included = rng.random(canaries) < 0.5
    names = np.repeat(np.flatnonzero(included), 3 * each)
    model = nn.Linear(canaries, 1, bias=False)
    nn.init.zeros_(model.weight)
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=1.0), lambda output, target: -output.sum(),
        (10 * torch.eye(canaries)[names], torch.zeros(len(names))), users=names, examples_per_user=each,
        sampling_rate=0.5, clip=1.0, noise_multiplier=1.5, steps=40, expected_batch=0.5 * canaries,
    )  # fmt: skip
    training = trainer.fit()
    scores = model.weight.detach().reshape(-1).numpy()
    audit = psidp.audit_one_run(included, scores, claimed=training.guarantee)
    assert audit.claimed.unit == "user"
    assert not audit.refuted
    assert audit.psi > 0.3
    assert psidp.audit_one_run(included, scores, claimed=psidp.Guarantee(0.1, unit="user")).refuted


def test_one_person_is_one_user_whatever_type_its_name_has():
    model = nn.Linear(2, 1)
    step = PrivateStep(
        model, nn.functional.mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=2, examples_per_user=2
    )
    x, y = torch.randn(4, 2), torch.randn(4, 1)
    assert len(step.contributions(x, y, list(np.array([7, 7, 7, 7])))) == 1
    for names in (list(torch.tensor([7, 7, 7, 7])), [None] * 4, [float("nan")] * 4):
        with pytest.raises(TypeError, match="must be text or whole numbers"):
            step(x, y, names)
