"""A model is trained within a promise."""

import torch
from torch import nn

import psidp
from psidp.bridges.torch import PrivateTrainer, release


def test_a_model_learns_within_its_promise():
    torch.manual_seed(1)
    features = torch.randn(2000, 8)
    labels = (features[:, 0] + features[:, 1] > 0).long()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=2.0), nn.functional.cross_entropy, (features, labels),
        sampling_rate=0.1, clip=1.0, epochs=6, epsilon=3.0, delta=1e-5,
    )  # fmt: skip
    training = trainer.fit()
    assert training.finished
    assert training.epsilon <= 3.0
    assert (model(features).argmax(1) == labels).float().mean().item() > 0.7


def test_a_tensor_gets_exact_noise():
    drawn = release(psidp.GaussianMechanism(sensitivity=1.0, sigma=2.0), torch.zeros(10_000))
    assert abs(float(torch.as_tensor(drawn.value).std()) / 2.0 - 1) < 6 / (2 * 10_000) ** 0.5
