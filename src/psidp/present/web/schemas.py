"""What the JSON API is asked: the same names as in Python and on the command line, checked for kind, not for range."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt

__all__ = ["Account", "Audit", "Calibrate", "CardRequest", "Explain", "Mechanism", "Refusal"]

MOST_SCORES = 50_000
MOST_RUNS = 20
Number = StrictFloat | StrictInt
Whole = StrictInt
Words = Annotated[str, Field(max_length=200)]
Scores = Annotated[list[Number], Field(max_length=MOST_SCORES)]


class Mechanism(BaseModel):
    """A Gaussian mechanism, named in exactly one way."""

    model_config = ConfigDict(extra="forbid", title="Mechanism")

    psi: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    sensitivity: Number | None = None
    sigma: Number | None = None
    auc: Number | None = None
    advantage: Number | None = None
    tpr: Number | None = None
    fpr: Number | None = None
    alpha: Number | None = None
    rho: Number | None = None
    zcdp: Number | None = None
    adjacency: Words = "add-remove"
    unit: Words = "record"


class Explain(Mechanism):
    """What does this mechanism promise?"""


class Calibrate(Mechanism):
    """Which sigma keeps a target for a query of this sensitivity, or which noise_multiplier for a DP-SGD run?

    A run has sampling_rate, or batch_size and dataset_size; and steps or epochs. With correlated noise it has bands;
    in a fixed order it has order and epochs alone. Its target is epsilon and delta, or
    psi and kappa, or advantage.
    """

    sampling_rate: Number | None = None
    steps: Number | None = None
    batch_size: Whole | None = None
    dataset_size: Whole | None = None
    epochs: Number | None = None
    sampling: Words = "poisson"
    bands: Whole | None = None
    order: Literal["fixed"] | None = None
    kappa: Number | None = None


class CardRequest(Mechanism):
    """The privacy card of this mechanism."""

    kappa: Number = 0.0
    title: Words = "Privacy card"
    prior: Number = 0.1
    covered: Annotated[list[Words], Field(max_length=20)] = []
    not_covered: Annotated[list[Words], Field(max_length=20)] = []
    ledger_head: Words | None = None
    format: Literal["html", "md", "json"] = "json"


class Run(BaseModel):
    """A DP-SGD run; with bands, one with correlated noise; with order, one in a fixed order without sampling."""

    model_config = ConfigDict(extra="forbid")

    noise_multiplier: Number
    sampling_rate: Number | None = None
    steps: Number | None = None
    batch_size: Whole | None = None
    dataset_size: Whole | None = None
    epochs: Number | None = None
    sampling: Words = "poisson"
    bands: Whole | None = None
    order: Literal["fixed"] | None = None


class Account(BaseModel):
    """What does a series of DP-SGD runs cost?"""

    model_config = ConfigDict(extra="forbid")

    runs: Annotated[list[Run], Field(min_length=1, max_length=MOST_RUNS)]
    delta: Number = 1e-5
    kappa: Number = 1e-10
    unit: Words = "record"


class Audit(BaseModel):
    """What do an attack's scores prove about psi?"""

    model_config = ConfigDict(extra="forbid")

    in_scores: Scores
    out_scores: Scores
    confidence: Number = 0.95
    claimed_psi: Number | None = None
    claimed_kappa: Number = 0.0
    seed: Annotated[StrictInt, Field(ge=0, lt=2**53)] | None = None


class Sentence(BaseModel):
    """A refusal in one sentence."""

    sentence: str


class Refusal(BaseModel):
    """The one shape of every error."""

    error: Sentence
