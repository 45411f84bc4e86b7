"""The checkpoint: what a run has released so far, in one file that is old or new and never half of each."""

import pickle
from hashlib import file_digest, sha256
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import Any

import torch

from psidp.bridges.torch.training.journal import durable, sync_folder
from psidp.forms import check_form
from psidp.ledger.private_file import private

__all__ = ["load", "loads_again", "save"]

FORM = "psidp-checkpoint-1"


def save(path: Path, values: dict[str, Any]) -> None:
    """Write a checkpoint in the place of the one before, durably: a file beside it first, then its name.

    Its last 32 bytes are the SHA-256 of the others, which torch's own format does not check.
    """
    part = path.with_name(path.name + ".part")
    with open(part, "w+b", opener=private) as file:
        torch.save({"form": FORM} | values, file)
        file.seek(0)
        digest = file_digest(file, "sha256").digest()
        file.seek(0, SEEK_END)
        file.write(digest)
        file.flush()
        durable(file.fileno())
    part.replace(path)
    sync_folder(path)


def load(path: Path) -> dict[str, Any]:
    """What save wrote: tensors and plain values, never code."""
    whole = path.read_bytes()
    content, digest = whole[:-32], whole[-32:]
    if sha256(content).digest() != digest:
        raise ValueError(
            f"{path.name} is not what was written: it is damaged, or no checkpoint of ours. Put a good copy back, or "
            "take it away: the run then begins with a new model, and its steps stay counted."
        )
    try:
        values = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, LookupError, pickle.UnpicklingError) as trouble:
        raise ValueError(f"{path.name} is not a checkpoint that can be read: {type(trouble).__name__}.") from trouble
    if isinstance(values, dict):
        check_form(values.pop("form", None), FORM, f"the checkpoint {path.name}")
    if not (isinstance(values, dict) and {"identity", "applied", "model", "optimizer", "schedule"} <= values.keys()):
        raise ValueError(f"{path.name} is not a checkpoint of a training run.")
    return values


def loads_again(values: Any) -> bool:
    """Whether what is saved can be read back without running code."""
    buffer = BytesIO()
    try:
        torch.save(values, buffer)
        buffer.seek(0)
        torch.load(buffer, weights_only=True)
    except (RuntimeError, AttributeError, TypeError, pickle.PickleError):
        return False
    return True
