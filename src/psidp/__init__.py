"""psidp: Gaussian differential privacy through one number, the sensitivity index psi = Delta/sigma.

Names are loaded when they are first used, so that `import psidp` costs next to nothing. The paper's smaller formulae
are in psidp.theory, errors in psidp.errors, PyTorch in psidp.bridges.torch.
"""

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it; typing itself takes as long to load as all of this
__version__ = "0.1.0"

_HOMES = {
    # values
    "Guarantee": "psidp.guarantee",
    "Interval": "psidp.accounting.interval",
    "PrivacyCurve": "psidp.accounting.curve",
    "compose": "psidp.guarantee",
    # conversions
    "advantage_from_psi": "psidp.maths.roc",
    "auc_from_psi": "psidp.maths.roc",
    "delta_from_psi": "psidp.maths.profile",
    "epsilon_from_log_delta": "psidp.maths.profile_inverse",
    "epsilon_from_psi": "psidp.maths.profile_inverse",
    "epsilon_from_rdp": "psidp.maths.renyi",
    "fnr_from_psi": "psidp.maths.roc",
    "log_delta_from_psi": "psidp.maths.profile",
    "psi_from_advantage": "psidp.maths.roc",
    "psi_from_auc": "psidp.maths.roc",
    "psi_from_epsilon_delta": "psidp.maths.profile_inverse",
    "psi_from_rates": "psidp.maths.roc",
    "psi_from_rho": "psidp.maths.renyi",
    "psi_from_zcdp": "psidp.maths.renyi",
    "rho_from_psi": "psidp.maths.renyi",
    "tpr_from_psi": "psidp.maths.roc",
    "zcdp_from_psi": "psidp.maths.renyi",
    # accounting
    "DPSGD": "psidp.accounting.events",
    "RandomAllocation": "psidp.accounting.events",
    "account": "psidp.accounting.curve",
    "calibrate": "psidp.accounting.calibration",
    # mechanism
    "ClippedSum": "psidp.mechanism.clipping",
    "Counter": "psidp.mechanism.counter",
    "GaussianMechanism": "psidp.mechanism.gaussian",
    "Release": "psidp.mechanism.release",
    "clip_sum": "psidp.mechanism.clipping",
    "denoise": "psidp.mechanism",
    "sensitivity": "psidp.maths",
    # ledger
    "Ledger": "psidp.ledger.ledger",
    "Partitions": "psidp.ledger.budget",
    # curator
    "Cube": "psidp.curator.cube",
    "Curator": "psidp.curator.curator",
    "PrivateGroups": "psidp.curator.groups",
    "ask": "psidp.curator",
    # audit
    "AuditResult": "psidp.auditing.result",
    "MechanismAudit": "psidp.auditing.black_box",
    "OneRunResult": "psidp.auditing.one_run",
    "audit": "psidp.auditing.independent",
    "audit_mechanism": "psidp.auditing.black_box",
    "audit_one_run": "psidp.auditing.one_run",
    # showing
    "Card": "psidp.present.card.record",
    "card": "psidp.present.card.record",
    "figures": "psidp.present",
    "training_bar": "psidp.present.training_bar",
}
"""Where each name lives, by what it is for."""

__all__ = sorted([*_HOMES, "errors", "theory"])


def __getattr__(name: str) -> object:
    if name in {"errors", "theory"}:
        return import_module(f"psidp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'psidp' has no attribute {name!r}{_elsewhere(name)}")
    home = import_module(_HOMES[name])
    value = getattr(home, name, None)
    value = import_module(f"{_HOMES[name]}.{name}") if value is None else value
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _elsewhere(name: str) -> str:
    """Where a name that is not on the front page is to be found."""
    for module in ("theory", "errors"):
        if hasattr(import_module(f"psidp.{module}"), name):
            return f"; it is psidp.{module}.{name}"
    return ""


if TYPE_CHECKING:
    from psidp import errors as errors
    from psidp import theory as theory
    from psidp.accounting.calibration import calibrate as calibrate
    from psidp.accounting.curve import PrivacyCurve as PrivacyCurve
    from psidp.accounting.curve import account as account
    from psidp.accounting.events import DPSGD as DPSGD
    from psidp.accounting.events import RandomAllocation as RandomAllocation
    from psidp.accounting.interval import Interval as Interval
    from psidp.auditing.black_box import MechanismAudit as MechanismAudit
    from psidp.auditing.black_box import audit_mechanism as audit_mechanism
    from psidp.auditing.independent import audit as audit
    from psidp.auditing.one_run import OneRunResult as OneRunResult
    from psidp.auditing.one_run import audit_one_run as audit_one_run
    from psidp.auditing.result import AuditResult as AuditResult
    from psidp.curator import ask as ask
    from psidp.curator.cube import Cube as Cube
    from psidp.curator.curator import Curator as Curator
    from psidp.curator.groups import PrivateGroups as PrivateGroups
    from psidp.guarantee import Guarantee as Guarantee
    from psidp.guarantee import compose as compose
    from psidp.ledger.budget import Partitions as Partitions
    from psidp.ledger.ledger import Ledger as Ledger
    from psidp.maths import sensitivity as sensitivity
    from psidp.maths.profile import delta_from_psi as delta_from_psi
    from psidp.maths.profile import log_delta_from_psi as log_delta_from_psi
    from psidp.maths.profile_inverse import epsilon_from_log_delta as epsilon_from_log_delta
    from psidp.maths.profile_inverse import epsilon_from_psi as epsilon_from_psi
    from psidp.maths.profile_inverse import psi_from_epsilon_delta as psi_from_epsilon_delta
    from psidp.maths.renyi import epsilon_from_rdp as epsilon_from_rdp
    from psidp.maths.renyi import psi_from_rho as psi_from_rho
    from psidp.maths.renyi import psi_from_zcdp as psi_from_zcdp
    from psidp.maths.renyi import rho_from_psi as rho_from_psi
    from psidp.maths.renyi import zcdp_from_psi as zcdp_from_psi
    from psidp.maths.roc import advantage_from_psi as advantage_from_psi
    from psidp.maths.roc import auc_from_psi as auc_from_psi
    from psidp.maths.roc import fnr_from_psi as fnr_from_psi
    from psidp.maths.roc import psi_from_advantage as psi_from_advantage
    from psidp.maths.roc import psi_from_auc as psi_from_auc
    from psidp.maths.roc import psi_from_rates as psi_from_rates
    from psidp.maths.roc import tpr_from_psi as tpr_from_psi
    from psidp.mechanism import denoise as denoise
    from psidp.mechanism.clipping import ClippedSum as ClippedSum
    from psidp.mechanism.clipping import clip_sum as clip_sum
    from psidp.mechanism.counter import Counter as Counter
    from psidp.mechanism.gaussian import GaussianMechanism as GaussianMechanism
    from psidp.mechanism.release import Release as Release
    from psidp.present import figures as figures
    from psidp.present.card.record import Card as Card
    from psidp.present.card.record import card as card
    from psidp.present.training_bar import training_bar as training_bar
