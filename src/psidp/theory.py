"""The paper's smaller formulae: losses, tangents, Bayes error, binormal curves and the conversions that it compares."""

from psidp.maths.bayes import (
    bayes_error,
    divergence,
    odds_multiplier,
    positive_predictive_value,
    reconstruction_bound,
)
from psidp.maths.loss import loss_mean, loss_variance, sufficient_delta, sufficient_delta_gap
from psidp.maths.renyi import alpha_optimal, epsilon_from_rdp, epsilon_via_rdp, renyi_divergence
from psidp.maths.roc import Rates, binormal_auc, binormal_roc, rates_at_threshold
from psidp.maths.tangent import Tangent, failed_roc, region_tpr, tangent

__all__ = [
    "Rates",
    "Tangent",
    "alpha_optimal",
    "bayes_error",
    "binormal_auc",
    "binormal_roc",
    "divergence",
    "epsilon_from_rdp",
    "epsilon_via_rdp",
    "failed_roc",
    "loss_mean",
    "loss_variance",
    "odds_multiplier",
    "positive_predictive_value",
    "rates_at_threshold",
    "reconstruction_bound",
    "region_tpr",
    "renyi_divergence",
    "sufficient_delta",
    "sufficient_delta_gap",
    "tangent",
]
