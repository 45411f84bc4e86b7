"""What composition costs, with proof. This floor knows mechanisms and curves; nothing of dice, ledgers or screens."""

from psidp.accounting.calibration import calibrate, largest_sampling_rate, largest_steps
from psidp.accounting.correlated import BandMF, FixedOrder
from psidp.accounting.curve import PrivacyCurve, account
from psidp.accounting.events import DPSGD, RandomAllocation
from psidp.accounting.interval import Interval

__all__ = [
    "DPSGD",
    "BandMF",
    "FixedOrder",
    "Interval",
    "PrivacyCurve",
    "RandomAllocation",
    "account",
    "calibrate",
    "largest_sampling_rate",
    "largest_steps",
]
