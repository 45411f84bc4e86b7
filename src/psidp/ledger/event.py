"""Event: what a spend was for, as stored JSON, and the price that anybody can recompute from it.

The ledger stores what happened, so that any theory may price it later. Who spent, and on which table, is said beside
it (ledger/actor.py). Kinds are only ever added:

    {"kind": "guarantee"}                                         (psi, kappa) was declared as such
    {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}        a Gaussian mechanism
    {"kind": "claim", "mechanism": "laplace", "epsilon": 1.0}     what another mechanism claims: epsilon; epsilon and
                                                                  delta; zcdp and kappa; alpha, rho and kappa
    {"kind": "dpsgd", "noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 1000, "sampling": "poisson",
     "kappa": 1e-10}                                              a DP-SGD run, at the price of its certified curve;
                                                                  "failure": a chance of its own to fail outright;
                                                                  "group"; "truncated_batch_size", "dataset_size"
    {"kind": "allocation", "noise_multiplier": 1.5, "batches": 25, "epochs": 4, "kappa": 1e-10}
                                                                  a run with random allocation, likewise
    {"kind": "bandmf", "noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 1000, "bands": 8, "kappa": 1e-10}
                                                                  a run with correlated noise, likewise
    {"kind": "fixed-order", "noise_multiplier": 2.0, "epochs": 4, "steps": 2000, "kappa": 0.0}
                                                                  a run without sampling, at its one psi
    {"kind": "strategy", "strategy": {"kind": "toeplitz", "periods": 52, "coefficients": [65536, 20480]},
     "participation": {"at_most": 1}, "parts": [{"norm": 1, "sigma": 140000.0}]}
                                                                  all releases of a stream: a linear strategy in whole
                                                                  numbers; each part with its own noise, for a unit
                                                                  that adds at most its norm to a period
"""

from collections.abc import Callable, Mapping
from typing import Any

from psidp.accounting import DPSGD, BandMF, FixedOrder, RandomAllocation, account
from psidp.errors import MismatchError
from psidp.guarantee import Guarantee, compose
from psidp.ledger.actor import BESIDE_THE_PRICE
from psidp.maths.sensitivity import Adjacency

__all__ = ["KNOWN_PRICES", "RUNS", "agrees", "checked", "price", "priced_run", "run_event"]

Terms = dict[str, Any]

RUN = ("noise_multiplier", "sampling_rate", "steps", "sampling")
MORE = ("group", "truncated_batch_size", "dataset_size")
"""What only some runs have."""
Run = DPSGD | BandMF | FixedOrder | RandomAllocation
SHAPES: dict[type[Run], tuple[str, tuple[str, ...]]] = {
    DPSGD: ("dpsgd", RUN),
    BandMF: ("bandmf", ("noise_multiplier", "sampling_rate", "steps", "bands")),
    FixedOrder: ("fixed-order", ("noise_multiplier", "epochs", "steps")),
    RandomAllocation: ("allocation", ("noise_multiplier", "batches", "epochs")),
}
"""The kind of each run, and what is stored of it."""

_CLAIMS: dict[frozenset[str], Callable[[Mapping[str, float], Terms], Guarantee]] = {
    frozenset({"epsilon"}): lambda v, t: Guarantee.from_pure(v["epsilon"], **t),
    frozenset({"epsilon", "delta"}): lambda v, t: Guarantee.from_approximate(v["epsilon"], v["delta"], **t),
    frozenset({"zcdp", "kappa"}): lambda v, t: Guarantee.from_zcdp(v["zcdp"], v["kappa"], **t),
    frozenset({"alpha", "rho", "kappa"}): lambda v, t: Guarantee.from_rdp(v["alpha"], v["rho"], v["kappa"], **t),
}


def _gaussian(values: Mapping[str, Any], terms: Terms) -> Guarantee:
    return Guarantee.gaussian(sensitivity=values["sensitivity"], sigma=values["sigma"], **terms)


def _claim(values: Mapping[str, Any], terms: Terms) -> Guarantee:
    """What a mechanism's claim is worth whatever the mechanism is: never the Gaussian reading."""
    mechanism = values["mechanism"]
    if not (isinstance(mechanism, str) and mechanism.strip()):
        raise ValueError(f"mechanism must be named, got mechanism={mechanism!r}.")
    notion = {name: value for name, value in values.items() if name not in ("kind", "mechanism", *BESIDE_THE_PRICE)}
    road = _CLAIMS.get(frozenset(notion))
    if road is None:
        raise ValueError(
            f"{' and '.join(sorted(notion)) or 'nothing'} of a mechanism that is not Gaussian ({mechanism}) does not "
            "bound its psi. Give epsilon, or epsilon and delta, or zcdp and kappa, or alpha, rho and kappa; or its "
            "psi, if that is proved."
        )
    return road(notion, terms)


def _run(values: Mapping[str, Any], terms: Terms) -> Guarantee:
    """What a whole run costs, its parameters fixed beforehand."""
    made, (_, names) = next((made, shape) for made, shape in SHAPES.items() if shape[0] == values["kind"])
    more = [name for name in MORE if made is DPSGD and name in values]
    run = made(**{name: values[name] for name in (*names, *more)}, **terms)
    return priced_run(run, values["kappa"], values.get("failure", 0.0))[0]


def _strategy(values: Mapping[str, Any], terms: Terms) -> Guarantee:
    """What all releases of a strategy cost together: its sensitivity is computed again from its whole numbers."""
    from psidp.strategies import Participation, Toeplitz

    strategy, participation = Toeplitz.from_dict(values["strategy"]), Participation.from_dict(values["participation"])
    root = {
        norm: strategy.sensitivity(participation, norm, terms.get("adjacency", "add-remove"))
        for norm in {part["norm"] for part in values["parts"]}
    }
    return compose(
        Guarantee.gaussian(sensitivity=root[part["norm"]], sigma=part["sigma"], **terms) for part in values["parts"]
    )


PRICES: dict[str, Callable[[Mapping[str, Any], Terms], Guarantee]] = {
    "gaussian": _gaussian,
    "claim": _claim,
    **{kind: _run for kind, _ in SHAPES.values()},
    "strategy": _strategy,
}
RUNS = tuple(kind for kind, _ in SHAPES.values())
KNOWN_PRICES = frozenset({"guarantee", *PRICES})
"""Kinds of events that may be spent on."""


EXACT = ("gaussian", "strategy")
"""Kinds whose price is the same to the last bit on every machine."""


def price(event: Mapping[str, Any], *, adjacency: Adjacency | None = None, unit: str = "record") -> Guarantee | None:
    """The guarantee that an event is worth; None where it was declared as a guarantee.

    Examples:
        >>> price({"kind": "gaussian", "sensitivity": 1.0, "sigma": 4.0}).psi
        0.25
        >>> round(price({"kind": "claim", "mechanism": "laplace", "epsilon": 1.0}).psi, 3)
        1.232
    """
    kind = event.get("kind")
    if kind == "guarantee":
        return None
    if kind not in PRICES:
        raise ValueError(f"kind of an event must be one of guarantee, {', '.join(PRICES)}, got kind={kind!r}.")
    try:
        return PRICES[kind](event, {"unit": unit} | ({"adjacency": adjacency} if adjacency else {}))
    except KeyError as missing:
        raise ValueError(f"an event of kind {kind} must say its {missing.args[0]}.") from None


def priced_run(run: Run, kappa: float, failure: float = 0.0) -> tuple[Guarantee, dict[str, Any]]:
    """What a run costs at a kappa, its own chance of failure included, and the event that says what it was."""
    event = run_event(run) | {"kappa": kappa}
    if not failure:
        return account(run).guarantee(kappa), event
    own = Guarantee(0.0, failure, _adjacency(run), run.unit)
    return account([run, own]).guarantee(kappa), event | {"failure": own.kappa}


def run_event(run: Run) -> dict[str, Any]:
    """What is stored of a run, without the kappa that it was accounted at."""
    kind, names = SHAPES[type(run)]
    event: dict[str, Any] = {"kind": kind} | {name: getattr(run, name) for name in names}
    return event | {name: getattr(run, name) for name in MORE if getattr(run, name, None) not in (None, 1)}


def _adjacency(run: Run) -> Adjacency:
    """A run's adjacency, which it always has once it is made."""
    return run.adjacency or "add-remove"


def agrees(event: Mapping[str, Any], guarantee: Guarantee) -> bool:
    """Whether a guarantee is an event's price: Gaussian noise's to the last bit, a claim's to a relative 1e-9.

    A claim is priced by a numerical search, whose last digits may differ from one machine to another. A run has to be
    paid for in full, to a relative 1e-6; an accountant that has since become sharper makes no entry wrong.
    """
    worth = price(event, adjacency=guarantee.adjacency, unit=guarantee.unit)
    if worth is None or worth == guarantee:
        return True
    if event["kind"] in RUNS:
        return worth.psi * (1.0 - 1e-6) <= guarantee.psi and worth.kappa == guarantee.kappa
    close = abs(worth.psi - guarantee.psi) <= 1e-9 * worth.psi
    return event["kind"] not in EXACT and close and worth.kappa == guarantee.kappa


def checked(event: Mapping[str, Any] | None, guarantee: Guarantee) -> dict[str, Any]:
    """The event to store, if the guarantee is what it is worth."""
    event = dict(event or {"kind": "guarantee"})
    worth = price(event, adjacency=guarantee.adjacency, unit=guarantee.unit)
    if worth is not None and worth != guarantee:
        raise MismatchError(
            f"an event of kind {event['kind']} must be spent at its price, psi={worth.psi} and kappa={worth.kappa}, "
            f"got psi={guarantee.psi} and kappa={guarantee.kappa}."
        )
    return event
