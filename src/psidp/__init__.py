"""psidp: Gaussian differential privacy through one number, the sensitivity index psi = Delta/sigma.

Names are loaded when they are first used, so that `import psidp` costs next to nothing. The paper's smaller formulae
are in psidp.theory, errors in psidp.errors, PyTorch in psidp.bridges.torch. For editors and type checkers the same
names stand in __init__.pyi.
"""

from importlib import import_module

__version__ = "0.2.0"

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
    "BandMF": "psidp.accounting.correlated",
    "DPSGD": "psidp.accounting.events",
    "FixedOrder": "psidp.accounting.correlated",
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
    # tables
    "Cube": "psidp.tables.cube_answer",
    "Curator": "psidp.tables.curator",
    "PrivateGroups": "psidp.tables.choices.private_groups",
    "ask": "psidp.tables",
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
