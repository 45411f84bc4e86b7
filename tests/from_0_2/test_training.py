"""A training run of version 0.2 is read; a newer one is refused, and its files stay as they are."""

import json
import shutil
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from psidp.errors import NewerFormError

torch = pytest.importorskip("torch")

HERE = Path(__file__).parent


def trainer(checkpoint):
    from psidp.bridges.torch import PrivateTrainer

    model = torch.nn.Linear(2, 1)
    return PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.functional.mse_loss,
        (torch.ones(40, 2), torch.zeros(40, 1)), sampling_rate=0.25, clip=1.0, epochs=3, psi=2.0, kappa=1e-9,
        checkpoint=checkpoint,
    )  # fmt: skip


@pytest.fixture
def kept(tmp_path):
    """A copy of the old run: its checkpoint, with the journal beside it."""
    for name in ("run.pt", "run.pt.steps"):
        shutil.copy(HERE / name, tmp_path / name)
    return tmp_path / "run.pt"


def test_a_run_goes_on_with_all_its_steps_counted(kept):
    assert trainer(kept).training.started == 4
    assert trainer(kept).fit().started == 12
    assert torch.load(BytesIO(kept.read_bytes()[:-32]), weights_only=True)["form"] == "psidp-checkpoint-1"


def test_a_newer_checkpoint_or_journal_is_refused_and_stays_as_it_is(kept):
    journal = kept.with_name("run.pt.steps")
    line, _, steps = journal.read_bytes().partition(b"\n")
    terms, values = json.loads(line), torch.load(BytesIO(kept.read_bytes()[:-32]), weights_only=True)
    buffer = BytesIO()
    torch.save(values | {"form": "psidp-checkpoint-2"}, buffer)
    newer = {
        kept: buffer.getvalue() + sha256(buffer.getvalue()).digest(),
        journal: json.dumps(terms | {"form": "psidp-training-2"}).encode() + b"\n" + steps,
    }
    for path, content in newer.items():
        old = path.read_bytes()
        path.write_bytes(content)
        files = {one: one.read_bytes() for one in newer}
        with pytest.raises(NewerFormError, match=rf"{path.name} must have the form 'psidp-\w+-1', got 'psidp-\w+-2'"):
            trainer(kept)
        assert {one: one.read_bytes() for one in newer} == files
        path.write_bytes(old)
