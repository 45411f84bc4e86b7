"""Pictures of guarantees, curves and audits, and the paper's own. This floor draws what others computed."""

from psidp.present.figures.audits import claim_and_audit
from psidp.present.figures.bars import answer, bars
from psidp.present.figures.budgets import spending
from psidp.present.figures.comparison import comparison
from psidp.present.figures.cubes import heat_map, shares_below
from psidp.present.figures.files import save
from psidp.present.figures.outputs import densities, loss
from psidp.present.figures.paper import paper_figure
from psidp.present.figures.rates import profile, roc, tradeoff
from psidp.present.figures.streams import series
from psidp.present.figures.tangents import conversions, tangent
from psidp.present.figures.trainings import accuracy

__all__ = [
    "accuracy",
    "answer",
    "bars",
    "claim_and_audit",
    "comparison",
    "conversions",
    "densities",
    "heat_map",
    "loss",
    "paper_figure",
    "profile",
    "roc",
    "save",
    "series",
    "shares_below",
    "spending",
    "tangent",
    "tradeoff",
]
