"""Class weights multiply what each example adds, as PyTorch's sum of losses has it, also with mean reduction."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, nll_loss

from psidp.bridges.torch import PrivateStep

X = torch.randn(5, 4)


def step_of(model, loss, micro_batch):
    return PrivateStep(model, loss, clip=1.0, noise_multiplier=1.0, expected_batch=8, micro_batch=micro_batch)


def weighted(weight):
    yield nn.CrossEntropyLoss(weight=weight)
    yield lambda y, target: cross_entropy(y, target, weight, label_smoothing=0.1)
    yield lambda y, target: nll_loss(y.log_softmax(1), target, weight)
    yield lambda y, target: nn.NLLLoss(weight, reduction="sum")(y.log_softmax(1), target)


def test_class_weights_multiply_the_gradient_of_each_example():
    weight, labels = torch.tensor([0.2, 1.0, 3.0, 10.0]), torch.tensor([0, 1, 2, 3, 3])
    for number, loss in enumerate(weighted(weight)):
        model = nn.Linear(4, 4)
        found = step_of(model, loss, 5).gradients(X, labels)
        plain = nn.CrossEntropyLoss(label_smoothing=0.1 if number == 1 else 0.0, weight=weight, reduction="sum")
        for i in range(5):
            wanted = torch.autograd.grad(plain(model(X[i : i + 1]), labels[i : i + 1]), list(model.parameters()))
            for g, w in zip(found, wanted, strict=True):
                torch.testing.assert_close(g[i], w)


def test_class_weights_are_averaged_over_the_targets_of_an_example_that_count():
    weight, labels = torch.tensor([0.2, 1.0, 3.0, 10.0]), torch.tensor([[3, -100, 0]])
    loss, logits = nn.CrossEntropyLoss(weight=weight), torch.randn(1, 4, 3)
    model = nn.Linear(4, 4)
    step = step_of(model, lambda y, target: loss(y.transpose(1, 2), target), 1)
    (found, _) = step.gradients(logits.transpose(1, 2), labels)
    total = cross_entropy(model(logits.transpose(1, 2)).transpose(1, 2), labels, weight, reduction="sum") / 2
    torch.testing.assert_close(found[0], torch.autograd.grad(total, model.weight)[0])
