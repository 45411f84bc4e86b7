"""Our noise in the real Opacus: the right scale, no seed, nothing left bare, and its own machinery goes on."""

import pytest

import psidp
from psidp.bridges import opacus as bridge

pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus warns about secure_mode, torch about hooks
torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus", reason="opacus is an extra of its own; it brings torch")

MULTIPLIER, NORM, BATCH = 3.0, 0.5, 8
WIDE = 40_000


def private(noise_multiplier=MULTIPLIER, loss_reduction="mean", width=4, **more):
    """Model, optimizer and loader as make_private gives them, the engine with our accountant."""
    bridge.register()
    data = torch.utils.data.TensorDataset(torch.zeros(64, width), torch.zeros(64, 1))
    engine = opacus.PrivacyEngine(accountant="psidp")
    model = torch.nn.Linear(width, 1)
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        noise_multiplier=noise_multiplier,
        max_grad_norm=NORM,
        loss_reduction=loss_reduction,
        **more,
    )
    return engine, *made


def one_step(model, optimizer, features, reduction="mean"):
    """The gradient that the wrapped optimizer sees."""
    optimizer.zero_grad()
    outputs = model(features)
    (outputs.mean() if reduction == "mean" else outputs.sum()).backward()
    optimizer.step()
    return model._module.weight.grad.reshape(-1).clone()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_noise_lands_on_the_clipped_sum_with_the_scale_that_opacus_promises(reduction):
    """Standard deviation to 5 of its own, mean to 6, false alarm 6e-7; sigma 4 % larger would be caught."""
    _, model, optimizer, _ = private(loss_reduction=reduction, width=WIDE)
    assert bridge.exact_noise(optimizer) is optimizer
    features = torch.zeros(BATCH, WIDE)
    features[:, 0] = 1e6  # each example's gradient is clipped to NORM along the first weight
    gradient = one_step(model, optimizer, features, reduction) * (BATCH if reduction == "mean" else 1)
    sigma = MULTIPLIER * NORM
    assert abs(gradient[0] - BATCH * NORM) < 6 * sigma
    assert abs(gradient[1:].std() / sigma - 1) < 5 / (2 * WIDE) ** 0.5
    assert 5 / (2 * WIDE) ** 0.5 < 0.02
    assert abs(gradient[1:].mean()) < 6 * sigma / WIDE**0.5


def test_the_summed_gradient_is_what_opacus_had_under_almost_no_noise():
    torch.manual_seed(1)
    features = torch.randn(BATCH, 4)
    grads = []
    for ours in (False, True):
        torch.manual_seed(2)
        _, model, optimizer, _ = private(noise_multiplier=1e-7)
        grads.append(one_step(model, bridge.exact_noise(optimizer) if ours else optimizer, features))
    assert torch.allclose(*grads, atol=1e-6)
    assert grads[0].norm() > 0.01


def test_torchs_seed_brings_opacus_noise_back_and_not_ours():
    def drawn(ours):
        _, model, optimizer, _ = private()
        optimizer = bridge.exact_noise(optimizer) if ours else optimizer
        torch.manual_seed(7)
        return one_step(model, optimizer, torch.zeros(BATCH, 4))

    assert torch.equal(drawn(False), drawn(False))
    assert not torch.equal(drawn(True), drawn(True))


def test_what_is_released_lies_on_the_grid_that_makes_it_safe():
    _, model, optimizer, _ = private(noise_multiplier=2.0, loss_reduction="sum")  # sigma 1, grid 2^-16
    bridge.exact_noise(optimizer)
    gradient = one_step(model, optimizer, torch.randn(BATCH, 4), "sum").double() * 2**16
    assert torch.equal(gradient, gradient.round())


@pytest.mark.parametrize(
    "mode", [{}, {"clipping": "per_layer", "max_grad_norm": [0.3, 0.4]}], ids=["flat", "per layer"]
)
def test_a_run_over_the_poisson_loader_trains_and_is_accounted_as_before(mode):
    bridge.register()
    torch.manual_seed(3)
    features = torch.randn(256, 4)
    labels = (features.sum(dim=1) > 0).long()
    engine = opacus.PrivacyEngine(accountant="psidp")
    model = torch.nn.Linear(4, 2)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(features, labels), batch_size=32),
        **({"noise_multiplier": 1.0, "max_grad_norm": 1.0} | mode),
    )
    optimizer = bridge.exact_noise(optimizer)
    for _ in range(5):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert engine.accountant.history == [(1.0, 1 / 8, 40)]
    assert engine.get_epsilon(1e-5) == psidp.account(psidp.DPSGD(1.0, 1 / 8, 40)).epsilon(1e-5).upper
    assert (model(features).argmax(dim=1) == labels).float().mean() > 0.8


def test_virtual_batches_get_noise_once():
    _, model, optimizer, _ = private(loss_reduction="sum", width=WIDE)
    bridge.exact_noise(optimizer)
    for skip in (True, True, False):
        optimizer.signal_skip_step(skip)
        gradient = (
            one_step(model, optimizer, torch.zeros(BATCH, WIDE), "sum") if not skip else one_part(model, optimizer)
        )
    assert abs(gradient.std() / (MULTIPLIER * NORM) - 1) < 0.02


def one_part(model, optimizer):
    optimizer.zero_grad()
    model(torch.zeros(BATCH, WIDE)).sum().backward()
    optimizer.step()


def test_an_error_while_drawing_leaves_no_gradient_bare(monkeypatch):
    _, model, optimizer, _ = private()
    bridge.exact_noise(optimizer)
    monkeypatch.setattr("psidp.noise.gaussian.RoundedGaussian.add", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        one_step(model, optimizer, torch.ones(BATCH, 4))
    assert all(p.grad is None for p in model.parameters())
    assert optimizer.noise_multiplier == MULTIPLIER


def test_what_adds_noise_in_another_way_is_refused_and_stays_as_it_was():
    with pytest.raises(TypeError, match="DPOptimizer that make_private gave, got SGD"):
        bridge.exact_noise(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1))
    _, _, adaptive, _ = private(
        clipping="adaptive", target_unclipped_quantile=0.5, clipbound_learning_rate=0.2, max_clipbound=1.0,
        min_clipbound=0.1, unclipped_num_std=5.0,
    )  # fmt: skip
    with pytest.raises(TypeError, match="got AdaClipDPOptimizer"):
        bridge.exact_noise(adaptive)
    _, _, bare, _ = private(noise_multiplier=0.0)
    with pytest.raises(ValueError, match=r"noise_multiplier .* must be in \(0, inf\), got noise_multiplier=0.0"):
        bridge.exact_noise(bare)
    assert "add_noise" not in vars(bare) | vars(adaptive)


def test_ghost_clipping_gets_the_same_noise():
    torch.manual_seed(4)
    engine, model = opacus.PrivacyEngine(), torch.nn.Linear(WIDE, 1)
    model, optimizer, criterion, _ = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(torch.zeros(64, WIDE), torch.zeros(64, 1)), batch_size=BATCH
        ),
        criterion=torch.nn.MSELoss(reduction="mean"),
        noise_multiplier=MULTIPLIER,
        max_grad_norm=NORM,
        grad_sample_mode="ghost",
    )
    bridge.exact_noise(optimizer)
    optimizer.zero_grad()
    criterion(model(torch.zeros(BATCH, WIDE)), torch.ones(BATCH, 1)).backward()
    optimizer.step()
    gradient = model._module.weight.grad * BATCH
    assert abs(gradient.std() / (MULTIPLIER * NORM) - 1) < 0.02
