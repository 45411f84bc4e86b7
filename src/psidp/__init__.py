"""psidp: Gaussian differential privacy through one number, the sensitivity index psi = Delta/sigma."""

from psidp.accounting import DPSGD, Interval, PrivacyCurve, account, calibrate
from psidp.auditing.black_box import MechanismAudit, audit_mechanism
from psidp.auditing.independent import audit
from psidp.auditing.one_run import OneRunResult, audit_one_run
from psidp.auditing.result import AuditResult
from psidp.errors import (
    BudgetClosedError,
    BudgetExceededError,
    ClockError,
    ContradictionError,
    EngineError,
    IncomparableError,
    KeyConflictError,
    LedgerBusyError,
    LedgerError,
    LedgerUnavailableError,
    MismatchError,
    MissingExtraError,
    NewerLedgerError,
    NotALedgerError,
    PsidpError,
    TamperedLedgerError,
    UnknownBudgetError,
)
from psidp.guarantee import Guarantee, compose
from psidp.maths import sensitivity
from psidp.maths.bayes import (
    bayes_error,
    divergence,
    odds_multiplier,
    positive_predictive_value,
    reconstruction_bound,
)
from psidp.maths.implied import epsilon_from_log_delta, epsilon_from_psi, psi_from_epsilon_delta
from psidp.maths.loss import loss_mean, loss_variance, sufficient_delta, sufficient_delta_gap
from psidp.maths.profile import delta_from_psi, log_delta_from_psi
from psidp.maths.renyi import (
    alpha_optimal,
    epsilon_from_rdp,
    epsilon_via_rdp,
    psi_from_rho,
    psi_from_zcdp,
    renyi_divergence,
    rho_from_psi,
    zcdp_from_psi,
)
from psidp.maths.roc import (
    Rates,
    Tangent,
    advantage_from_psi,
    auc_from_psi,
    binormal_auc,
    binormal_roc,
    failed_roc,
    fnr_from_psi,
    psi_from_advantage,
    psi_from_auc,
    psi_from_rates,
    rates_at_threshold,
    region_tpr,
    tangent,
    tpr_from_psi,
)
from psidp.present import figures, notebook
from psidp.present.card import Card, card
from psidp.present.training import training_bar
from psidp.release import ask, denoise
from psidp.release.budget import Partitions
from psidp.release.clipping import ClippedSum, clip_sum
from psidp.release.curator import Curator
from psidp.release.keys import PrivateKeys
from psidp.release.ledger import Ledger
from psidp.release.mechanism import GaussianMechanism
from psidp.release.result import Release

__version__ = "0.1.0"

__all__ = [
    "DPSGD",
    "AuditResult",
    "BudgetClosedError",
    "BudgetExceededError",
    "Card",
    "ClippedSum",
    "ClockError",
    "ContradictionError",
    "Curator",
    "EngineError",
    "GaussianMechanism",
    "Guarantee",
    "IncomparableError",
    "Interval",
    "KeyConflictError",
    "Ledger",
    "LedgerBusyError",
    "LedgerError",
    "LedgerUnavailableError",
    "MechanismAudit",
    "MismatchError",
    "MissingExtraError",
    "NewerLedgerError",
    "NotALedgerError",
    "OneRunResult",
    "Partitions",
    "PrivacyCurve",
    "PrivateKeys",
    "PsidpError",
    "Rates",
    "Release",
    "TamperedLedgerError",
    "Tangent",
    "UnknownBudgetError",
    "account",
    "advantage_from_psi",
    "alpha_optimal",
    "ask",
    "auc_from_psi",
    "audit",
    "audit_mechanism",
    "audit_one_run",
    "bayes_error",
    "binormal_auc",
    "binormal_roc",
    "calibrate",
    "card",
    "clip_sum",
    "compose",
    "delta_from_psi",
    "denoise",
    "divergence",
    "epsilon_from_log_delta",
    "epsilon_from_psi",
    "epsilon_from_rdp",
    "epsilon_via_rdp",
    "failed_roc",
    "figures",
    "fnr_from_psi",
    "log_delta_from_psi",
    "loss_mean",
    "loss_variance",
    "notebook",
    "odds_multiplier",
    "positive_predictive_value",
    "psi_from_advantage",
    "psi_from_auc",
    "psi_from_epsilon_delta",
    "psi_from_rates",
    "psi_from_rho",
    "psi_from_zcdp",
    "rates_at_threshold",
    "reconstruction_bound",
    "region_tpr",
    "renyi_divergence",
    "rho_from_psi",
    "sensitivity",
    "sufficient_delta",
    "sufficient_delta_gap",
    "tangent",
    "tpr_from_psi",
    "training_bar",
    "zcdp_from_psi",
]
