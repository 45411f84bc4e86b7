"""A run that is killed at any moment goes on with every step in its account, and never past its plan."""

import json
import os
import random
import time
from hashlib import sha256
from io import BytesIO
from multiprocessing import get_context

import pytest

import psidp
from bridges import run
from psidp.bridges.torch import PrivateTrainer
from psidp.bridges.torch.training import journal

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "psidp.bridges.torch"])


def size(path):
    return path.stat().st_size if path.exists() else 0


def counted(folder):
    """Steps that the account has, and gradients that were really released."""
    found = journal.read(folder / "run.pt.steps")
    return 0 if found is None else found[1], size(folder / "released.log")


def process(folder, dies=None, pause=0.0):
    made = CONTEXT.Process(target=run.train, args=(str(folder), dies, pause))
    made.start()
    return made


def finish(folder):
    done = process(folder)
    done.join()
    assert done.exitcode == 0


@pytest.fixture
def paid(tmp_path):
    """A folder with a ledger whose budget covers the run twice."""
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("models", psi=10.0, kappa=1e-9, actor="Ann", purpose="tests")
    yield tmp_path, ledger
    ledger.dispose()


def test_killed_at_random_moments_it_counts_every_step_that_was_ever_started(tmp_path):
    rng, kills = random.Random(1), 0
    for _ in range(5):
        child = process(tmp_path, pause=0.02)
        enough = size(tmp_path / "released.log") + rng.randrange(1, 6)
        while child.is_alive() and size(tmp_path / "released.log") < enough:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.03)
        child.kill()
        child.join()
        kills += child.exitcode != 0
        account, released = counted(tmp_path)
        assert released <= account <= released + kills
        assert account <= run.STEPS
    assert kills >= 1
    finish(tmp_path)
    account, released = counted(tmp_path)
    assert account == run.STEPS
    assert run.STEPS - kills <= released <= run.STEPS


@pytest.mark.parametrize("dies", [
    ("Journal.begin", "before", 12),
    ("Journal.begin", "after", 12),
    ("Step.__call__", "after", 12),
    ("Update.apply", "after", 12),
    ("Update.apply", "after", 3),
    ("checkpoint.save", "before", 2),
    ("checkpoint.durable", "after", 2),
    ("checkpoint.sync_folder", "before", 2),
    ("checkpoint.save", "after", 5),
], ids=lambda dies: " ".join(map(str, dies)))  # fmt: skip
def test_killed_between_any_two_parts_of_a_step_it_goes_on_and_pays_once(paid, dies):
    folder, ledger = paid
    child = process(folder, dies)
    child.join()
    assert child.exitcode == -9
    account, released = counted(folder)
    assert released <= account <= released + 1
    trainer = run.trainer(folder)
    assert trainer.training.started == account
    assert 0 <= trainer.training.applied <= account
    finish(folder)
    account, released = counted(folder)
    assert account == run.STEPS
    assert run.STEPS - 1 <= released <= run.STEPS
    assert [(e.state, e.refers) for e in ledger.entries()] == [("opened", 0), ("spent", 0), ("answered", 2)]
    assert list(ledger.entries())[-1].details()["steps"] == run.STEPS
    assert {(folder / name).stat().st_mode & 0o777 for name in ("run.pt", "run.pt.steps", "ledger.db")} == {0o600}
    again = run.trainer(folder).training
    assert again.finished
    assert again.epsilon == run.trainer(folder / "..", checkpoint=None).training.epsilon  # one that nobody killed


def test_killed_between_payment_and_first_step_it_pays_again_which_is_the_safe_side(paid):
    folder, ledger = paid
    child = process(folder, ("Payment.pay", "after", 1))
    child.join()
    assert counted(folder) == (0, 0)
    finish(folder)
    assert [e.state for e in ledger.entries()] == ["opened", "spent", "spent", "answered"]


def test_killed_while_the_journal_is_made_it_begins_anew(tmp_path):
    child = process(tmp_path, ("journal.durable", "before", 1))
    child.join()
    (tmp_path / "run.pt.steps").write_bytes((tmp_path / "run.pt.steps").read_bytes()[:40])  # a torn first line
    finish(tmp_path)
    assert counted(tmp_path) == (run.STEPS, run.STEPS)


def test_what_is_taken_up_is_what_was_kept(tmp_path):
    first = run.trainer(tmp_path)
    first.fit(epochs=4)
    again = run.trainer(tmp_path)
    assert again.training == first.training
    for mine, theirs in zip(first.model.parameters(), again.model.parameters(), strict=True):
        assert mine.equal(theirs)
        buffers = [t._update.optimizer.state[p]["momentum_buffer"] for t, p in ((first, mine), (again, theirs))]
        assert buffers[0].equal(buffers[1])
    assert again.fit().started == run.STEPS


@pytest.mark.parametrize(("name", "value"), [
    ("sampling_rate", 0.2), ("noise_multiplier", 2.5), ("clip", 0.5), ("steps", 31), ("delta", 1e-6),
    ("kappa", 1e-9), ("unit", "patient"), ("expected_batch", 9.0),
])  # fmt: skip
def test_a_run_does_not_go_on_as_another(tmp_path, name, value):
    run.trainer(tmp_path).fit(epochs=1)
    with pytest.raises(ValueError, match=rf"^{name} \(.*\) must be that of the run in run.pt"):
        run.trainer(tmp_path, **{name: value})


def test_other_data_another_model_and_another_optimizer_are_refused_and_left_alone(tmp_path):
    import torch

    run.trainer(tmp_path).fit(epochs=1)

    def other(model, optimizer=torch.optim.SGD, records=32):
        data = (torch.zeros(records, 4), torch.zeros(records, dtype=torch.long))
        return PrivateTrainer(
            model, optimizer(model.parameters(), lr=0.05), torch.nn.functional.cross_entropy, data,
            checkpoint=tmp_path / "run.pt", sampling_rate=run.RATE, clip=1.0, steps=run.STEPS, noise_multiplier=2.0,
        )  # fmt: skip

    model = torch.nn.Linear(4, 2)
    before = model.weight.detach().clone()
    with pytest.raises(ValueError, match=r"^expected_batch .* must be .* 8.0, got 8.25"):
        other(model, records=33)
    with pytest.raises(ValueError, match=r"^optimizer \(kind of optimizer and schedule\) must be .* SGD, got Adam"):
        other(model, torch.optim.Adam)
    assert model.weight.equal(before)
    with pytest.raises(ValueError, match=r"^model \(names and shapes of its state\)"):
        other(torch.nn.Linear(4, 3))
    assert other(model).training.applied == 4


def test_a_ledger_that_paid_must_stay_and_another_is_no_substitute(paid):
    folder, ledger = paid
    run.trainer(folder).fit(epochs=1)
    ledger.dispose()
    for part in sorted(folder.glob("ledger.db*")):  # with its log, which belongs to it
        part.rename(folder / part.name.replace("ledger", "away"))
    with pytest.raises(ValueError, match="began with a ledger, and must go on so"):
        run.trainer(folder)
    other = psidp.Ledger(folder / "ledger.db")
    other.open("models", psi=10.0, kappa=1e-9, actor="Ann", purpose="another")
    with other.spend("models", psidp.DPSGD(2.0, run.RATE, run.STEPS), kappa=1e-10, purpose="another"):
        pass
    with pytest.raises(ValueError, match="ledger must be the one that paid for this run"):
        run.trainer(folder)
    other.dispose()


def test_a_model_without_its_journal_does_not_go_on(tmp_path):
    run.trainer(tmp_path).fit(epochs=2)
    (tmp_path / "run.pt.steps").unlink()
    with pytest.raises(ValueError, match=r"has no journal, run\.pt\.steps, beside it"):
        run.trainer(tmp_path)


def test_files_of_two_runs_are_not_mixed(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        run.trainer(tmp_path / name).fit(epochs=1)
    (tmp_path / "one" / "run.pt").replace(tmp_path / "two" / "run.pt")
    with pytest.raises(ValueError, match="are of two runs"):
        run.trainer(tmp_path / "two")


def test_a_checkpoint_is_never_code(tmp_path):
    import torch

    run.trainer(tmp_path).fit(epochs=1)
    for held, said in (({"model": os.system}, "that can be read"), ({"model": 1}, "of a training run")):
        buffer = BytesIO()
        torch.save(held, buffer)
        (tmp_path / "run.pt").write_bytes(buffer.getvalue() + sha256(buffer.getvalue()).digest())
        with pytest.raises(ValueError, match=f"is not a checkpoint {said}"):
            run.trainer(tmp_path)
    (tmp_path / "run.pt.steps").write_text(json.dumps({"form": "a letter"}) + "\n...")
    with pytest.raises(ValueError, match="must have the form 'psidp-training-1', got 'a letter'"):
        run.trainer(tmp_path)


def test_one_process_at_a_time_and_no_stale_trainer(tmp_path):
    first, second = run.trainer(tmp_path), None
    first.fit(epochs=1)
    second = run.trainer(tmp_path)
    with first._keep.tally(), pytest.raises(RuntimeError, match="held by another process"):
        second.fit(epochs=1)
    first.fit(epochs=1)
    with pytest.raises(RuntimeError, match="went on elsewhere"):
        second.fit(epochs=1)
    assert counted(tmp_path)[0] == 8


def test_two_runs_that_begin_in_one_place_are_not_one(tmp_path):
    first, second = run.trainer(tmp_path), run.trainer(tmp_path)
    first.fit(epochs=1)
    with pytest.raises(ValueError, match="the journal of another run"):
        second.fit(epochs=1)
    assert counted(tmp_path)[0] == 4


def test_a_damaged_checkpoint_is_not_read(tmp_path):
    run.trainer(tmp_path).fit(epochs=1)
    whole = (tmp_path / "run.pt").read_bytes()
    for damaged in (b"hello", b"", whole[:-1], *(flipped(whole, at) for at in range(0, len(whole), 97))):
        (tmp_path / "run.pt").write_bytes(damaged)
        with pytest.raises(ValueError, match="is not what was written"):
            run.trainer(tmp_path)


def flipped(content, at):
    """The same bytes with one bit turned."""
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def test_a_journal_that_lost_steps_of_the_model_is_refused(tmp_path):
    run.trainer(tmp_path).fit(epochs=2)
    steps = tmp_path / "run.pt.steps"
    steps.write_bytes(steps.read_bytes()[:-1])
    with pytest.raises(ValueError, match="the journal is an old copy or was cut"):
        run.trainer(tmp_path)


def test_old_copies_of_checkpoint_and_journal_together_are_refused_by_what_the_ledger_noted(paid):
    folder, _ = paid
    run.trainer(folder).fit(epochs=1)
    files = [folder / "run.pt", folder / "run.pt.steps"]
    kept = [file.read_bytes() for file in files]
    done = run.trainer(folder).fit(epochs=1)
    for file, content in zip(files, kept, strict=True):
        file.write_bytes(content)
    with pytest.raises(ValueError, match=f"ledger noted {done.started} steps of this run, its journal counts"):
        run.trainer(folder)


def test_a_run_that_has_ended_notes_nothing_more_however_often_it_is_taken_up(paid):
    folder, ledger = paid
    run.trainer(folder).fit()
    run.trainer(folder).fit()
    assert [entry.state for entry in ledger.entries()] == ["opened", "spent", "answered"]


def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path):
    path = tmp_path / "other"
    path.write_bytes(b"x" * 2**17)
    with pytest.raises(ValueError, match="journal of another run"), journal.Journal.held(path, {"unit": "one"}):
        pass
    assert path.stat().st_size == 2**17
    with (
        pytest.raises(ValueError, match="must fit into 65536 bytes"),
        journal.Journal.held(path, {"unit": "x" * 70_000}),
    ):
        pass
