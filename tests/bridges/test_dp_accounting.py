"""DpEvents there and back, against the real library where it is installed."""

import builtins

import pytest

import psidp
from psidp.bridges import dp_accounting as bridge


def test_a_missing_library_is_refused_with_its_install_line(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(psidp.errors.MissingExtraError, match=r"pip install 'psidp\[dp-accounting\]'"):
        bridge.to_dp_event(psidp.Guarantee(1.0))


@pytest.fixture
def library():
    return pytest.importorskip("dp_accounting", reason="dp-accounting is an extra of its own")


def test_runs_go_there_and_come_back(library):
    runs = [psidp.DPSGD(1.0, 0.01, 500), psidp.DPSGD(0.8, 0.004, 2000)]
    assert bridge.from_dp_event(bridge.to_dp_event(runs)) == runs
    assert bridge.from_dp_event(bridge.to_dp_event(runs[0])) == runs[:1]


def test_plain_gaussians_cost_the_same(library):
    event = library.SelfComposedDpEvent(library.GaussianDpEvent(2.0), 16)
    epsilon = psidp.account(bridge.from_dp_event(event)).epsilon(1e-6).upper
    assert epsilon == pytest.approx(float(psidp.Guarantee(2.0).epsilon(1e-6)), rel=1e-12)
    back = bridge.to_dp_event(psidp.Guarantee(0.5))
    assert back == library.GaussianDpEvent(2.0)


def test_its_own_pld_accountant_agrees_from_above(library):
    run = psidp.DPSGD(1.0, 0.01, 1000)
    accountant = library.pld.PLDAccountant(value_discretization_interval=1e-3)
    theirs = accountant.compose(bridge.to_dp_event(run)).get_epsilon(1e-5)
    assert psidp.account(run).epsilon(1e-5).upper <= theirs <= 1.829


def test_events_of_another_meaning_are_refused(library):
    for event in (library.LaplaceDpEvent(1.0), library.NonPrivateDpEvent()):
        with pytest.raises(ValueError, match="has no account in psidp"):
            bridge.from_dp_event(event)
    with pytest.raises(ValueError, match="must hold one GaussianDpEvent"):
        bridge.from_dp_event(
            library.PoissonSampledDpEvent(0.1, library.SelfComposedDpEvent(library.GaussianDpEvent(1.0), 2))
        )
    with pytest.raises(ValueError, match="only sampling="):
        bridge.to_dp_event(psidp.DPSGD(1.0, 0.01, 10, sampling="without-replacement"))
    with pytest.raises(ValueError, match="kappa = 0"):
        bridge.to_dp_event(psidp.Guarantee(1.0, kappa=1e-6))


def test_a_fixed_order_is_one_gaussian_there_and_replaced_records_have_no_event(library):
    run = psidp.FixedOrder(4.0, 4, 200)
    theirs = library.pld.PLDAccountant().compose(bridge.to_dp_event(run)).get_epsilon(1e-6)
    assert psidp.account(run).epsilon(1e-6).upper == pytest.approx(theirs, abs=2e-6)
    blanked = psidp.BandMF(1.0, 0.01, 800, 8, adjacency="zero-out")
    assert bridge.to_dp_event(blanked) == bridge.to_dp_event(psidp.DPSGD(1.0, 0.08, 100))
    with pytest.raises(ValueError, match="of the same meaning"):
        bridge.to_dp_event(psidp.FixedOrder(4.0, 4, 200, adjacency="replace-one"))
