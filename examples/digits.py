"""Handwritten digits at three levels of privacy: accuracy against psi, each training audited with canaries.

    pip install 'psidp[torch,plot]' scikit-learn
    python examples/digits.py

A canary is a record that exists for the audit alone. A fair coin of its own puts it into the data or leaves it out. In
a step its whole gradient, clipped to norm 1 like everybody's, falls on a weight that no digit touches. So the trained
weight tells as much of the canary as the model can, and `audit_one_run` turns five hundred such weights into a lower
bound on psi. It must not exceed what was promised.
"""

import argparse
import time
from pathlib import Path
from secrets import randbits

import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import nn

import psidp
from psidp.bridges.torch import PrivateTrainer
from psidp.present.card import to_html

PIXELS, CLASSES, TRAINING = 64, 10, 1297
LEVELS = (0.2, 0.6, 2.0)
RATE, CLIP, BRIGHT = 0.05, 1.0, 10.0


class Reader(nn.Module):
    """A small network that reads digits, and beside it one weight for each canary."""

    def __init__(self, canaries: int) -> None:
        super().__init__()
        self.digit = nn.Sequential(nn.Linear(PIXELS, 48), nn.Tanh(), nn.Linear(48, CLASSES))
        self.canary = nn.Linear(canaries, 1, bias=False)
        nn.init.zeros_(self.canary.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Ten scores for the digit, and the canaries' own."""
        return torch.cat([self.digit(x[:, :PIXELS]), self.canary(x[:, PIXELS:])], dim=1)


def loss(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy for a digit; for a canary, target 10, its own score, whose gradient never fades."""
    digit = nn.functional.cross_entropy(scores[:, :CLASSES], target % CLASSES)
    return torch.where(target == CLASSES, -scores[:, CLASSES], digit).sum()


def digits() -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Images and labels to train on, and others, which we call public, to measure accuracy on."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels)
    return (x[:TRAINING], y[:TRAINING]), (x[TRAINING:], y[TRAINING:])


def with_canaries(data: tuple[torch.Tensor, torch.Tensor], included: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The digits, and of the canaries those that are included."""
    images, labels = data
    wide = torch.cat([images, torch.zeros(len(images), len(included))], dim=1)
    own = torch.cat([torch.zeros(len(included), PIXELS), BRIGHT * torch.eye(len(included))], dim=1)[included]
    return torch.cat([wide, own]), torch.cat([labels, torch.full((len(own),), CLASSES)])


def right(model: Reader, data: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Share of digits that are read right."""
    return float((model.digit(data[0]).argmax(dim=1) == data[1]).float().mean())


def without_privacy(data: tuple[torch.Tensor, torch.Tensor], public: tuple[torch.Tensor, torch.Tensor]) -> float:
    """What the same network reads right when nobody is protected."""
    model = Reader(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model.digit(data[0]), data[1]).backward()
        optimizer.step()
    return right(model, public)


def trained(psi: float, steps: int, canaries: int, folder: Path, console: Console) -> tuple[float, float, float]:
    """psi as promised, accuracy on public digits, psi as audited; the card goes into the folder."""
    private, public = digits()
    included = torch.tensor([bool(randbits(1)) for _ in range(canaries)])
    model = Reader(canaries)
    trainer = PrivateTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=1.0),
        loss,
        with_canaries(private, included),
        sampling_rate=RATE,
        clip=CLIP,
        steps=steps,
        psi=psi,
        unit="digit",
        micro_batch=100,
        expected_batch=RATE * (TRAINING + canaries),  # how many canaries there are is not public
    )
    with psidp.training_bar(console) as bar:
        training = trainer.fit(watch=bar, validate=lambda _: right(model, public))
    scores = model.canary.weight.detach().reshape(-1).numpy()
    audit = psidp.audit_one_run(included.numpy(), scores, claimed=training.guarantee)
    card = psidp.card(training, title=f"Digits, psi = {psi:g}", audit=audit)
    (folder / f"digits-psi-{psi:g}.html").write_text(to_html(card), encoding="utf-8")
    if audit.refuted:
        raise SystemExit(f"the promise psi = {psi} is broken: the audit proves {audit.psi}.")
    return training.psi, right(model, public), audit.psi


def main(folder: Path, levels: tuple[float, ...] = LEVELS, steps: int = 400, canaries: int = 500) -> Path:
    """Train at each level, print a table, write a card for each and the picture; its path comes back."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # tensors this small are slower on several
    console = Console()
    table = Table("psi promised", "psi audited, at least", "accuracy")
    rows = []
    for psi in levels:
        rows.append(trained(psi, steps, canaries, folder, console))
        table.add_row(f"{rows[-1][0]:.4f}", f"{rows[-1][2]:.4f}", f"{rows[-1][1]:.1%}")
    console.print(table)
    picture = psidp.figures.accuracy(rows, without_privacy(*digits()), "Digits: accuracy and privacy")
    return psidp.figures.save(picture, folder / "digits.svg")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="digits at three levels of privacy")
    asked.add_argument("--folder", type=Path, default=Path("digits"), help="where the picture and the cards go")
    folder = asked.parse_args().folder
    print(f"wrote {main(folder)}, CPU time {time.process_time():.0f} s")
