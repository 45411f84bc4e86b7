"""The trainer with correlated noise: planned, named and paid for what it is, and silent on what it keeps."""

import json
from io import BytesIO

import numpy as np
import pytest
import torch
from torch import nn

import psidp
from bridges import run as child
from bridges.test_torch_resume import counted, finish, process
from psidp.bridges.torch import PrivateTrainer
from psidp.bridges.torch.training import batches, correlated
from psidp.bridges.torch.training.batches import CyclicBatches, FixedBatches, class_of, classes_of
from psidp.bridges.torch.training.journal import read
from psidp.strategies import ModelError, Toeplitz

torch.set_num_threads(1)
LOSS = nn.functional.cross_entropy


def separable(records=200):
    torch.manual_seed(5)
    features = torch.randn(records, 4)
    return features, (features.sum(dim=1) > 0).long()


def made(data=None, *, model=None, optimizer=torch.optim.SGD, loss=LOSS, **asked):
    model = nn.Linear(4, 2) if model is None else model
    asked = {"sampling_rate": 0.1, "clip": 1.0, "noise_multiplier": 1.0, "steps": 20} | asked
    held = optimizer(model.parameters(), lr=0.5) if isinstance(optimizer, type) else optimizer
    return PrivateTrainer(model, held, loss, separable() if data is None else data, **asked)


# The plan


def test_one_band_is_the_plain_trainer(tmp_path):
    plain, one = made(), made(bands=1, ids=range(200), checkpoint=tmp_path / "run.pt")
    assert one.run == plain.run == psidp.DPSGD(1.0, 0.1, 20)
    assert (one._noise, one._step._noise, one._step._fineness) == (None, None, plain._step._fineness)
    one.fit(epochs=1)
    assert set(read(tmp_path / "run.pt.steps")[0]) == {
        "identity", "receipt", "noise_multiplier", "sampling_rate", "steps", "unit", "clip", "expected_batch",
        "records", "delta", "kappa", "model", "optimizer", "slots", "failure",
    }  # fmt: skip


def test_bands_are_planned_at_the_price_of_their_blocks():
    run = made(bands=5, noise_multiplier=None, steps=42, epsilon=3.0, ids=range(200)).run
    least = psidp.calibrate(epsilon=3.0, delta=1e-5, sampling_rate=0.1, steps=42, bands=5)
    assert least <= run.noise_multiplier <= least * (1 + 1e-5)
    assert run == psidp.BandMF(run.noise_multiplier, 0.1, 42, 5)
    assert made(bands=5, noise_multiplier=None, steps=42, epsilon=3.0, ids=range(200)).training.epsilon <= 3.0
    longest = made(bands=4, noise_multiplier=2.0, steps=None, epsilon=2.0).run
    assert longest.steps % 4 == 0
    more = psidp.BandMF(2.0, 0.1, longest.steps + 4, 4)
    assert psidp.account(more).epsilon(1e-5).upper > 2.0 >= psidp.account(longest).epsilon(1e-5).upper


@pytest.mark.parametrize(("epochs", "epsilon", "most"), [(1, 2.0, 0.281), (4, 2.0, 0.451), (20, 1.0, 0.975)])
def test_auto_has_the_errors_of_the_note(epochs, epsilon, most):
    asked = {"sampling_rate": epochs / 2000, "steps": 2000, "noise_multiplier": None, "delta": 1e-6}
    trainer = made(separable(4000), bands="auto", epsilon=epsilon, ids=range(4000), **asked)
    assert trainer.choice.best.relative <= most
    assert (trainer.run.bands, trainer.run.noise_multiplier) == trainer.choice.best[:2]
    assert "<- best" in str(trainer.choice)


def test_auto_says_where_nothing_is_gained():
    trainer = made(bands="auto", noise_multiplier=None, sampling_rate=0.5, steps=100, epsilon=0.5)
    assert isinstance(trainer.run, psidp.DPSGD)
    assert "gains nothing here" in str(trainer.choice)


def test_the_last_workload_reads_momentum_and_decay():
    model = nn.Linear(4, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=0.01)
    trainer = made(model=model, optimizer=sgd, bands=4, workload="last")
    assert trainer._noise.strategy == ModelError("last", 0.9, 0.005).strategy(20, 4)
    assert made(bands=4)._noise.strategy == ModelError().strategy(20, 4)


@pytest.mark.parametrize(("asked", "said"), [
    ({"bands": 0}, "bands must be a whole number"),
    ({"bands": "some"}, 'bands must be a whole number of at least 1 or "auto"'),
    ({"bands": 11}, "bands .* must be at most 1/sampling_rate"),
    ({"bands": 8, "steps": 6}, "bands must be at most the number of steps, 6"),
    ({"bands": "auto"}, 'bands="auto" needs a length'),
    ({"bands": 4, "adjacency": "add-remove"}, 'adjacency must be "zero-out" with bands where records have no ids'),
    ({"bands": 4, "adjacency": "replace-one"}, 'adjacency must be "add-remove" or "zero-out" with sampling'),
    ({"bands": 4, "ids": range(7)}, r"ids \(names of the records\) must be one for each of the 200 records, got 7"),
    ({"bands": 4, "ids": [None] * 200}, "ids .* must be text or whole numbers"),
    ({"bands": 4, "workload": "first"}, 'workload must be "prefix" or "last"'),
    ({"bands": 4, "workload": "last", "optimizer": torch.optim.Adam}, 'workload="last" must be asked of torch.optim.S'),
    ({"order": "random"}, 'order .* must be "sampled" or "fixed"'),
    ({"order": "fixed"}, 'order="fixed" needs epochs, a whole number, and no steps'),
    ({"order": "fixed", "epochs": 2, "steps": None, "epsilon": 1.0}, "exactly one of noise_multiplier, epsilon and p"),
    ({"order": "fixed", "epochs": 2, "steps": None, "bands": 11}, "bands must be at most the 10 steps of an epoch"),
    ({"order": "fixed", "epochs": 2, "steps": None, "adjacency": "add-remove"}, "moves all later ones"),
])  # fmt: skip
def test_what_has_no_proof_is_refused_by_name(asked, said):
    with pytest.raises((ValueError, TypeError), match=said):
        made(**asked)


# Neighbours


def test_without_ids_the_promise_is_for_a_blanked_record():
    assert made(bands=4).run.adjacency == made(bands=4).training.guarantee.adjacency == "zero-out"
    assert made(bands=4, ids=range(200)).training.guarantee.adjacency == "add-remove"
    assert made(bands=4, ids=range(200), adjacency="zero-out").run.adjacency == "zero-out"
    assert "zero-out" in json.dumps(psidp.card(made(bands=4).training).to_dict())


def test_a_records_class_is_its_own():
    names = [f"patient {n}" for n in range(2000)]
    classes = classes_of(2000, names, 8, "salt")
    without = classes_of(1999, names[:700] + names[701:], 8, "salt")
    assert (np.delete(classes, 700) == without).all()
    assert np.bincount(classes, minlength=8).min() > 200
    assert class_of(7, 8, "salt") != class_of(7, 8, "other") or class_of(8, 8, "salt") != class_of(8, 8, "other")
    assert not (classes == classes_of(2000, names, 8, "other")).all()


def test_cyclic_batches_draw_from_their_class_at_its_rate():
    drawn, classes = CyclicBatches(np.arange(4000) % 4, 4, 0.2), np.arange(4000) % 4
    sizes = []
    for step in range(40):
        batch = drawn.of(step)
        assert (classes[batch] == step % 4).all()
        sizes.append(batch.size)
    assert abs(np.mean(sizes) - 200) < 5 * np.sqrt(1000 * 0.2 * 0.8 / 40)


def test_a_fixed_order_has_every_record_once_in_each_epoch_in_the_same_step():
    fixed = FixedBatches(103, 10)
    for epoch in range(3):
        seen = np.concatenate([fixed.of(10 * epoch + step) for step in range(10)])
        assert (seen == np.arange(103)).all()
    assert max(fixed.of(step).size for step in range(10)) == fixed.largest == 11


def encoded_by(trainer, replies, monkeypatch):
    """What a whole run encodes, step by step, where noise is replaced by given replies."""
    seen = []

    def replayed(tensor, sigma, grid=None):
        seen.append(tensor.numpy().copy())
        return tensor.copy_(torch.from_numpy(replies[len(seen) - 1]))

    monkeypatch.setattr(correlated, "add_noise_", replayed)
    trainer.fit()
    return np.array(seen)


@pytest.mark.parametrize("order", ["sampled", "fixed"])
def test_whole_trainings_on_neighbours_encode_no_further_apart_than_promised(order, monkeypatch):
    """40 pairs of data sets that differ in one blanked record: same coins and releases, the difference in integers."""
    rng, closest = np.random.default_rng(8), 0.0
    for _ in range(20):
        records, bands, epochs = int(rng.integers(20, 40)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
        blank, clip = int(rng.integers(records)), float(rng.uniform(0.05, 2.0))
        torch.manual_seed(int(rng.integers(2**31)))
        features, weights = torch.randn(records, 3), torch.ones(records, 1)
        asked = {"noise_multiplier": 1.0, "bands": max(bands, 2) if order == "sampled" else bands, "order": order}
        asked |= {"steps": None, "epochs": epochs, "clip": clip, "micro_batch": 1, "sampling_rate": 0.2}
        coins = int(rng.integers(2**31))
        replies = [rng.integers(-(2**38), 2**38, 4).astype(float) for _ in range(5 * epochs)]
        worlds = []
        for present in (1.0, 0.0):
            own = weights.clone()
            own[blank] = present
            tossed = np.random.default_rng(coins)
            monkeypatch.setattr(
                batches, "poisson_batch", lambda size, rate, tossed=tossed: np.flatnonzero(tossed.random(size) < rate)
            )
            torch.manual_seed(1)
            trainer = made(
                (features, torch.cat([features.sum(1, keepdim=True), own], dim=1)), model=nn.Linear(3, 1),
                loss=lambda out, target: (target[:, 1:] * (out - target[:, :1]) ** 2).sum(), **asked,
            )  # fmt: skip
            worlds.append(encoded_by(trainer, replies, monkeypatch))
        squares = ((worlds[0] - worlds[1]) ** 2).sum(axis=1)
        totals = trainer._step
        bound = int(clip / 2.0 ** (np.frexp(clip)[1] - 1 - totals._fineness))
        most = trainer._noise.strategy.squared(correlated.ONCE) * bound**2
        apart = trainer.run.bands if order == "sampled" else 5
        first = blank % apart if order == "sampled" else blank * 5 // records
        assert squares[: min(first, len(squares))].sum() == 0.0 or order == "fixed"
        for start in range(first if order == "sampled" else 0, len(squares), apart):
            assert squares[start : start + apart].sum() <= most or order == "fixed"
        assert squares.sum() <= most * (epochs if order == "fixed" else -(-len(squares) // apart))
        closest = max(closest, squares.sum() / most)
    assert closest > 0.5


def test_a_run_with_bands_is_paid_for_by_its_own_kind_and_by_its_own_neighbours(tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("blanked", psi=9.0, kappa=1e-8, actor="Ann", purpose="tests", adjacency="zero-out")
    ledger.open("joined", psi=9.0, kappa=1e-8, actor="Ann", purpose="tests")
    paid = {"ledger": ledger, "budget": "blanked"}
    training = made(bands=4, **paid).fit()
    fixed = made(order="fixed", epochs=2, steps=None, **paid).fit()
    with pytest.raises(psidp.errors.MismatchError, match="has adjacency 'add-remove', got a guarantee with 'zero-out'"):
        made(bands=4, **(paid | {"budget": "joined"})).fit()
    made(bands=4, ids=range(200), **(paid | {"budget": "joined"})).fit()
    kinds = [entry.details()["kind"] for entry in ledger.entries() if entry.state == "spent"]
    assert kinds == ["bandmf", "fixed-order", "bandmf"]
    spent = [(entry.psi, entry.kappa) for entry in ledger.entries() if entry.state == "spent"]
    assert spent[0] == (training.psi, training.kappa)
    assert spent[1] == (fixed.psi, 0.0)
    assert fixed.guarantee == psidp.Guarantee(psidp.FixedOrder(1.0, 2).psi, adjacency="zero-out")
    assert ledger.verify() == ledger.head()
    ledger.dispose()


# Kept, killed, resumed


@pytest.mark.parametrize("dies", [
    None,
    ("Journal.begin", "after", 12),
    ("Noise.__call__", "before", 12),
    ("Noise.__call__", "after", 12),
    ("Update.apply", "after", 12),
    ("checkpoint.save", "before", 2),
    ("checkpoint.save", "after", 3),
], ids=str)  # fmt: skip
def test_killed_in_a_step_it_goes_on_at_the_price_of_the_plan(tmp_path, dies):
    (tmp_path / "bands").write_text("2")
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("models", psi=20.0, kappa=1e-9, actor="Ann", purpose="tests")
    if dies is not None:
        killed = process(tmp_path, dies)
        killed.join()
        assert killed.exitcode == -9
    finish(tmp_path)
    account, released = counted(tmp_path)
    assert account == child.STEPS
    assert child.STEPS - 1 <= released <= child.STEPS
    spent = [entry for entry in ledger.entries() if entry.state == "spent"]
    assert len(spent) == 1
    assert spent[0].details()["kind"] == "bandmf"
    assert spent[0].psi == child.trainer(tmp_path).training.psi
    ledger.dispose()


def test_no_file_ever_holds_what_the_noise_hides(tmp_path):
    trainer = made(bands=6, steps=30, ids=range(200), checkpoint=tmp_path / "run.pt", every=1)
    secrets = []

    def look(progress):
        ring = trainer._noise._ring.clone()
        assert progress.started < 4 or ring.any()
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        for row in ring[ring.any(dim=1)]:
            for form in (torch.int32, torch.int64, torch.float32, torch.float64):
                for piece in (row[:2], row[4:6]):
                    secrets.append(piece.to(form).numpy().tobytes())
        assert not any(secret in kept for secret in secrets)

    trainer.fit(watch=look)
    assert len(secrets) > 500
    assert not trainer._noise._ring.any()
    state = torch.load(BytesIO((tmp_path / "run.pt").read_bytes()[:-32]), weights_only=True)
    assert set(state) == {"form", "identity", "applied", "model", "optimizer", "schedule"}


def test_a_run_goes_on_with_the_strategy_that_it_began_with(tmp_path, monkeypatch):
    asked = {"bands": "auto", "noise_multiplier": None, "steps": 100, "sampling_rate": 0.01, "epsilon": 4.0}
    asked |= {"ids": range(200), "checkpoint": tmp_path / "run.pt", "every": 10}
    first = made(**asked)
    first.fit()
    (tmp_path / "run.pt.steps").write_bytes((tmp_path / "run.pt.steps").read_bytes()[:-50])
    real = ModelError.strategy

    def other(self, steps, bands, bits=12):
        found = real(self, steps, bands, bits)
        return Toeplitz(steps, (*found.coefficients[:-1], found.coefficients[-1] - 1))

    monkeypatch.setattr(ModelError, "strategy", other)
    (tmp_path / "run.pt").unlink()
    again = made(**asked)
    assert again._noise.strategy == first._noise.strategy
    assert again.run == first.run
    assert not again._noise._ring.any()
    assert (again._batches._members[0] == first._batches._members[0]).all()
    assert again.fit().finished
    with pytest.raises(ValueError, match=r"must be that of the run in run\.pt"):
        made(**(asked | {"bands": 2}))


def test_after_an_error_the_same_trainer_goes_on():
    broken = []

    def loss(out, target):
        if len(broken) == 3:
            broken.append(0)
            raise OSError("a disk")
        return LOSS(out, target)

    trainer = made(bands=3, loss=loss, ids=range(200))
    trainer.fit(epochs=1)
    broken += [0] * 3
    with pytest.raises(OSError, match="a disk"):
        trainer.fit()
    assert trainer.fit().finished
    assert trainer.training.applied == trainer.training.started - 1


# Use


def test_bands_bring_the_model_closer_than_independent_noise_at_the_same_epsilon():
    """One pass over records without gradients: how far noise alone moves 1,640 parameters."""
    data, moved, planned = (torch.zeros(400, 40), torch.zeros(400, 40)), {}, {}
    for bands in (1, 16):
        model = nn.Linear(40, 40)
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
        trainer = made(
            data, model=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0), bands=bands, clip=1e-4,
            loss=lambda out, target: 0.0 * out.sum(), sampling_rate=0.01, steps=100, noise_multiplier=None,
            epsilon=4.0, ids=range(400),
        )  # fmt: skip
        trainer.fit()
        moved[bands] = torch.cat([p.detach().ravel() for p in model.parameters()]).double().std().item()
        strategy = Toeplitz.independent(100) if bands == 1 else trainer._noise.strategy
        planned[bands] = trainer.run.noise_multiplier * ModelError("last").of(strategy)
    assert planned[16] < 0.6 * planned[1]
    assert moved[16] / moved[1] == pytest.approx(planned[16] / planned[1], rel=0.12)
