"""One private training on as many processes as there are: two on a laptop's CPU, eight on a machine with eight GPUs.

    pip install 'psidp[torch]'
    torchrun --standalone --nproc-per-node 2 examples/distributed.py
    torchrun --standalone --nproc-per-node 8 examples/distributed.py --checkpoint run.pt --ledger ledger.db
    python examples/distributed.py

The data are two rings that a straight line cannot tell apart. Every process makes the same trainer of a model that is
not wrapped in anything; psidp spreads each step over them. Kill any process at any time: with a checkpoint the same
command goes on, on as many processes as you like, and every step that was started counts.
"""

import argparse
import os
from hashlib import sha256
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import psidp
from psidp.bridges.torch import PrivateTrainer

RECORDS, WIDTH = 4000, 64


def rings(records: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in a ring inside another; the same on every process, as it must be."""
    chance = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (records,), generator=chance)
    angle = 6.2832 * torch.rand(records, generator=chance)
    radius = 1.0 + labels + 0.2 * torch.randn(records, generator=chance)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), labels


def payment(path: str) -> psidp.Ledger:
    """A ledger with a budget for this example."""
    new, ledger = not Path(path).exists(), psidp.Ledger(path)
    if new:
        ledger.open("models", psi=4.0, kappa=1e-9, actor="Ann", purpose="an example")
    return ledger


def main() -> None:
    """Train, and show on rank 0 what came out, and on every rank that it has the same model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--checkpoint", help="a file to keep the run in")
    parser.add_argument("--ledger", help="a ledger that pays")
    asked = parser.parse_args()
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group()  # nccl for tensors on GPUs, gloo for those of the CPU
    together = dist.is_initialized()
    rank = dist.get_rank() if together else 0
    place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else "cpu"
    if torch.cuda.is_available():
        torch.cuda.set_device(place)

    model = nn.Sequential(nn.Linear(2, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 2)).to(place)
    paid = {"ledger": payment(asked.ledger), "budget": "models"} if asked.ledger and rank == 0 else {}
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=2.0), nn.functional.cross_entropy, rings(RECORDS, 1),
        sampling_rate=0.064, clip=1.0, epochs=asked.epochs, epsilon=3.0, delta=1e-5, checkpoint=asked.checkpoint,
        **paid,
    )  # fmt: skip
    public = rings(1000, 2)

    def accuracy(model: nn.Module) -> float:
        found = model(public[0].to(place)).argmax(dim=1).cpu()
        return float((found == public[1]).float().mean())

    training = trainer.fit(validate=accuracy)  # rank 0 calls it
    if rank == 0:
        print(f"{training.applied} steps, epsilon {training.epsilon:.3f} at 1e-05, psi {training.psi:.3f}")
        print(f"accuracy on public points: {accuracy(model):.3f}")
    values = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
    print(f"rank {rank}: model {sha256(values).hexdigest()[:16]}", flush=True)
    if together:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
