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
    for call in (bridge.register, bridge.accountant_class):
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
