"""What an extra brings is refused without it, by a sentence with the line that installs it."""

import pytest

import psidp
from psidp.bridges import dp_accounting, opacus
from psidp.errors import MissingExtraError


def torch():
    import psidp.bridges.torch  # noqa: F401


CALLS = {
    "db": lambda: psidp.Curator("visits.csv", unit="patient"),
    "plot": lambda: psidp.figures.roc(psidp.Guarantee(1.0)),
    "certify": lambda: psidp.account(psidp.DPSGD(1.0, 0.01, 10), certify=True).epsilon(1e-5),
    "postgres": lambda: psidp.Ledger("postgresql://user@127.0.0.1/nowhere"),
    "dp-accounting": lambda: dp_accounting.to_dp_event(psidp.Guarantee(1.0)),
    "opacus": opacus.register,
    "torch": torch,
}


@pytest.mark.parametrize("extra", CALLS)
def test_a_missing_extra_is_named(extra):
    with pytest.raises(MissingExtraError, match=rf"pip install 'psidp\[{extra}\]'"):
        CALLS[extra]()
