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
        with pytest.raises(psidp.errors.MissingExtraError, match=r"pip install 'psidp\[opacus\]'"):
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


def engine_and(poisson, **more):
    """An engine with our accountant after make_private, the loader it gave, and a step."""
    import torch
    from opacus import PrivacyEngine

    bridge.register()
    data = torch.utils.data.TensorDataset(torch.zeros(64, 4), torch.zeros(64, 1))
    engine, model = PrivacyEngine(accountant="psidp"), torch.nn.Linear(4, 1)
    made = {"module": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "poisson_sampling": poisson}
    made |= {"data_loader": torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)}
    model, optimizer, loader = engine.make_private(**made | {"noise_multiplier": 1.0, "max_grad_norm": 1.0} | more)

    def step():
        optimizer.zero_grad()
        model(torch.zeros(8, 4)).mean().backward()
        optimizer.step()

    return engine, loader, step


@pytest.mark.filterwarnings("ignore:Secure RNG", "ignore:Full backward hook", "ignore:Using a non-full backward hook")
def test_a_loader_without_poisson_batches_gets_a_warning_and_no_certificate(accountant):
    with pytest.warns(UserWarning, match=r"the loader \(DataLoader\) does not draw Poisson.*poisson_sampling=True"):
        engine, loader, step = engine_and(poisson=False)
    assert type(loader).__name__ == "DataLoader"
    assert engine.get_epsilon(1e-5) == 0.0
    step()
    with pytest.warns(UserWarning, match="no epsilon is certified for this run"):
        assert engine.get_epsilon(1e-5) == float("inf")
    other = type(accountant)()
    other.load_state_dict(engine.accountant.state_dict())
    with pytest.warns(UserWarning, match="does not draw Poisson"):
        assert other.get_epsilon(1e-5) == float("inf")


@pytest.mark.filterwarnings("ignore:Secure RNG", "ignore:Full backward hook", "ignore:Using a non-full backward hook")
def test_a_poisson_loader_is_accounted_for_without_a_word(accountant, recwarn):
    engine, loader, step = engine_and(poisson=True)
    step()
    assert engine.get_epsilon(1e-5) == psidp.account(psidp.DPSGD(1.0, 1 / 8, 1)).epsilon(1e-5).upper
    assert type(loader).__name__ == "DPDataLoader"
    assert not any("Poisson" in str(warned.message) for warned in recwarn)
    again = type(accountant)()
    again.load_state_dict({"history": [(1.0, 0.01, 5)], "mechanism": "psidp"})  # as it was written before
    assert again.poisson


@pytest.mark.filterwarnings("ignore")
def test_other_accountants_are_none_of_our_business(accountant, recwarn):
    import torch
    from opacus import PrivacyEngine

    before = PrivacyEngine.make_private
    bridge.register()
    assert PrivacyEngine.make_private is before  # looked at once, however often one registers
    data = torch.utils.data.TensorDataset(torch.zeros(8, 4), torch.zeros(8, 1))
    model = torch.nn.Linear(4, 1)
    PrivacyEngine(accountant="rdp").make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), poisson_sampling=False,
        data_loader=torch.utils.data.DataLoader(data), noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    assert not any("Poisson" in str(warned.message) for warned in recwarn)


@pytest.mark.filterwarnings("ignore")
def test_what_trains_several_models_in_silence_is_refused(accountant, monkeypatch):
    import torch

    parallel = torch.nn.DataParallel(torch.nn.Linear(4, 1))
    with pytest.raises(ValueError, match=r"model \(DataParallel\) spreads .* Give the model inside, \.module"):
        engine_and(True, module=parallel, optimizer=torch.optim.SGD(parallel.parameters(), lr=0.1))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match=r"world size .* must be 1, got 2"):
        engine_and(True)
    monkeypatch.delenv("WORLD_SIZE")
    from opacus.optimizers import DPOptimizer

    model = torch.nn.Linear(4, 1)
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = DPOptimizer(plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=8)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match="Run one process"):
        bridge.exact_noise(optimizer)
    assert "add_noise" not in vars(optimizer)
