"""The Opacus accountant, against the real library where it is installed."""

import builtins

import pytest

import psidp
from psidp.bridges import opacus as bridge


def test_a_missing_library_is_refused_with_its_install_line(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("opacus"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    for call in (bridge.register, bridge.accountant_class, lambda: bridge.exact_noise(None)):
        with pytest.raises(psidp.MissingExtraError, match=r"pip install 'psidp\[opacus\]'"):
            call()


@pytest.fixture
def accountant():
    pytest.importorskip("opacus", reason="opacus is an extra of its own; it brings torch")
    return bridge.register()()


def test_its_epsilon_is_the_certified_upper_end(accountant):
    for _ in range(3):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    accountant.history = [(1.0, 0.01, 1000)]
    assert accountant.get_epsilon(1e-5) == psidp.account(psidp.DPSGD(1.0, 0.01, 1000)).epsilon(1e-5).upper
    assert len(accountant) == 1000


def test_a_refused_step_leaves_the_history_as_it_was(accountant):
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    before = list(accountant.history)
    for bad in ({"noise_multiplier": 0.0, "sample_rate": 0.01}, {"noise_multiplier": 1.0, "sample_rate": 2.0}):
        with pytest.raises(ValueError, match="must be in"):
            accountant.step(**bad)
    assert accountant.history == before == [(1.0, 0.01, 2)]


def test_state_travels_whole_or_not_at_all(accountant):
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    other = type(accountant)()
    other.load_state_dict(accountant.state_dict())
    assert other.history == accountant.history
    state = accountant.state_dict()
    state["history"] = [(1.0, 0.01, 5), (float("nan"), 0.01, 1)]
    with pytest.raises(ValueError, match="noise_multiplier"):
        other.load_state_dict(state)
    assert other.history == accountant.history


def test_opacus_finds_it_by_name(accountant):
    from opacus.accountants import create_accountant

    assert create_accountant("psidp").mechanism() == "psidp"


@pytest.mark.filterwarnings("ignore")
def test_privacy_engine_trains_with_it_and_spends_what_python_says(accountant):
    import torch
    from opacus import PrivacyEngine
    from opacus.accountants.utils import get_noise_multiplier

    data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    engine = PrivacyEngine(accountant="psidp")
    model = torch.nn.Linear(4, 2)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=8),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for features, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
    steps = len(engine.accountant)
    assert steps == 8
    assert engine.get_epsilon(1e-5) == psidp.account(psidp.DPSGD(1.0, 1 / 8, steps)).epsilon(1e-5).upper
    noise = get_noise_multiplier(
        target_epsilon=2.0, target_delta=1e-5, sample_rate=0.01, steps=1000, accountant="psidp"
    )
    assert noise >= psidp.calibrate(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=1000)
