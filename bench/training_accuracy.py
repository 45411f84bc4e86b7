"""Accuracy of private training beside Opacus' hooks: the same model, batches of the same law, the same certified psi.

Five seeds each, which choose the parameters at the start; batches and our noise have no seed. Learning rates are those
of the examples, which were tried with ours alone. The language model is that of examples/language_model.py.
"""

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from types import ModuleType
from typing import Any

import torch
from torch import nn

from bench.timing import Report
from psidp.bridges.torch import AdaptiveClip, PadTo, PerLayerClip, PrivateTrainer, next_token_loss

SEEDS = 5
EXAMPLES = Path(__file__).parent.parent / "examples"
Data = tuple[Any, torch.Tensor]


def run(full: bool, seed: int) -> list[Report]:
    """Digits, then the language model; --full with clips by layer and adaptive ones too."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return [digits(full, seed), language(full, seed)]


def digits(full: bool, seed: int) -> Report:
    """Share of 500 test digits that are read right."""
    example = _example("digits")
    (x, y), public = example.digits()

    def model(number: int) -> nn.Module:
        torch.manual_seed(seed + number)
        return nn.Sequential(nn.Linear(example.PIXELS, 48), nn.Tanh(), nn.Linear(48, example.CLASSES))

    def score(model: nn.Module) -> float:
        with torch.no_grad():
            return 100.0 * float((model(public[0]).argmax(1) == public[1]).float().mean())

    setting = {"sampling_rate": example.RATE, "steps": 400, "psi": 0.6}
    trainings = _trainings(full, (x, y), nn.functional.cross_entropy, lambda p: torch.optim.SGD(p, lr=1.0), setting)
    return _compared("Digits, psi 0.6, 400 steps: test accuracy", "%", model, trainings, score)


def language(full: bool, seed: int) -> Report:
    """Loss on public notes, after private fine-tuning by low-rank adapters."""
    example = _example("language_model")
    ordinary, public, private, _ = example.corpus(2000, seed)
    base = example.taught(ordinary, 150, seed)
    state = {name: value.clone() for name, value in base.state_dict().items()}
    pairs = [PadTo(example.LENGTH)(example.encoded(sentence)) for sentence in private]
    inputs = {key: torch.stack([x[key] for x, _ in pairs]) for key in pairs[0][0]}

    def model(number: int) -> nn.Module:
        fresh = example.taught(ordinary, 0, seed)
        fresh.load_state_dict(state)
        return example.adapted(fresh, seed + number)

    data = inputs, torch.stack([y for _, y in pairs])
    setting = {"sampling_rate": example.RATE, "epochs": 6, "epsilon": 4.0}
    trainings = _trainings(full, data, next_token_loss, lambda p: torch.optim.Adam(p, lr=5e-3), setting)

    def score(model: nn.Module) -> float:
        return example.loss_of(model, public)

    return _compared("GPT-2 with LoRA, epsilon 4, 150 steps: loss of a token", "nats", model, trainings, score)


def _compared(
    title: str, unit: str, model: Callable[[int], nn.Module], trainings: dict[str, Any], score: Callable[[Any], float]
) -> Report:
    """Scores of every kind of training, in turns."""
    report, found = Report(title), {kind: [] for kind in trainings}
    for number in range(SEEDS):
        for kind, train in trainings.items():
            trained = model(number)
            train(trained)
            found[kind].append(score(trained))
    for kind, scores in found.items():
        each = ", ".join(f"{value:.4g}" for value in scores)
        report.add(kind, mean(scores), f"{unit}, standard deviation {stdev(scores):.2g}", note=each)
    ours, theirs = found["ours"], found["Opacus hooks"]
    gap = abs(mean(ours) - mean(theirs)) / (stdev(ours) ** 2 / SEEDS + stdev(theirs) ** 2 / SEEDS) ** 0.5
    report.add("difference of the means, in its standard errors", gap, "", at_most=2.5)
    return report


def _trainings(full: bool, data: Data, loss: Any, optimizer: Any, setting: dict[str, Any]) -> dict[str, Any]:
    """What trains a model: ours, and Opacus with the noise of the same plan."""

    def ours(clip: Any) -> Callable[[nn.Module], float]:
        def train(model: nn.Module) -> float:
            trained = optimizer([p for p in model.parameters() if p.requires_grad])
            trainer = PrivateTrainer(model, trained, loss, data, clip=clip, **setting)
            return trainer.fit().psi

        return train

    def theirs(model: nn.Module) -> None:
        trained = [p for p in model.parameters() if p.requires_grad]
        plan = PrivateTrainer(model, optimizer(trained), loss, data, clip=1.0, **setting).run
        _by_opacus(model, optimizer(trained), loss, data, plan)

    kinds = {"ours": ours(1.0), "Opacus hooks": theirs}
    if full:
        kinds |= {"ours, by layer": ours(PerLayerClip(1.0)), "ours, adaptive": ours(AdaptiveClip(initial=1.0))}
    return kinds


def _by_opacus(model: nn.Module, optimizer: Any, loss: Any, data: Data, plan: Any) -> None:
    """Opacus' engine, with its Poisson loader; the loss of a batch is the mean of its examples'."""
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    inputs, targets = data
    names = list(inputs) if isinstance(inputs, dict) else []
    tensors = [*([inputs[name] for name in names] if names else [inputs]), targets]
    loader = DataLoader(TensorDataset(*tensors), batch_size=round(plan.sampling_rate * len(targets)))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model.train(), optimizer=optimizer, data_loader=loader, noise_multiplier=plan.noise_multiplier,
        max_grad_norm=1.0,
    )  # fmt: skip
    taken = 0
    while taken < plan.steps:
        for *some, wanted in loader:
            if taken == plan.steps:
                break
            optimizer.zero_grad()
            given = dict(zip(names, some, strict=True)) if names else {}
            if len(wanted):
                output = model(**given) if names else model(some[0])
                scores = getattr(output, "logits", output)
                each = [loss(scores[i : i + 1], wanted[i : i + 1]) for i in range(len(wanted))]
                torch.stack(each).mean().backward()
                optimizer.step()
            taken += 1


def _example(name: str) -> ModuleType:
    """One of the examples, as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"examples/{name}.py must be a Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
