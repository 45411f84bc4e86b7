"""Step: what an entry does to its budget's standing. The one rule that spending applies and verifying applies again."""

from collections.abc import Mapping
from typing import Any

from psidp.errors import BudgetClosedError
from psidp.guarantee import Guarantee
from psidp.release.exhaustion import exceeded
from psidp.release.loss import Loss
from psidp.release.standing import Standing

__all__ = ["cap_of", "step"]


def step(
    before: Standing | None,
    state: str,
    event: Mapping[str, Any],
    *,
    budget: str,
    price: Loss,
    partition: str = "",
    partition_before: Standing | None = None,
) -> Standing:
    """The standing after an entry, or the refusal of an entry that must not be."""
    if state == "opened":
        if before is not None:
            raise ValueError(f"budget {budget!r} is open already: a budget is opened once. It can be raised or reset.")
        return Standing.opened(cap_of(event), event.get("period", ""))
    if before is None:
        raise ValueError(f"budget {budget!r} was never opened.")
    now = before.at_partition(partition_before)
    if state in ("answered", "withheld", "interrupted"):
        return now
    if before.closed:
        raise BudgetClosedError(f"Budget {budget!r} is closed; nothing was spent and nothing released. Open another.")
    if state == "spent":
        if not now.fits(price, bool(partition)):
            raise exceeded(budget, price, now.left(bool(partition)), event)
        return now.after_spend(price, bool(partition))
    return _change(now, state, event, budget)


def _change(now: Standing, state: str, event: Mapping[str, Any], budget: str) -> Standing:
    """The standing after a change of the budget itself."""
    if state == "raised":
        cap = cap_of(event)
        if not now.cap.fits(cap) or cap == now.cap:
            raise ValueError(
                f"budget {budget!r} can only be raised, from psi={now.cap.psi} and kappa={float(now.cap.kappa)}; got "
                f"psi={event['psi']} and kappa={event['kappa']}."
            )
        return now.raised(cap)
    if state == "renewed":
        if not event["period"] > now.period > "":
            raise ValueError(f"budget {budget!r} cannot be renewed from {now.period!r} to {event['period']!r}.")
        return now.renewed(event["period"])
    if state == "reset":
        return now.renewed()
    if state == "closed":
        return now.ended()
    if state == "split":
        taken = Loss.read(event["taken"])
        if not now.fits(taken):
            raise exceeded(budget, taken, now.left(), event)
        return now.split(taken)
    raise ValueError(f"{state!r} is no state of an entry that this psidp knows.")


def cap_of(event: Mapping[str, Any]) -> Loss:
    """The cap that an opening or a raising sets: a share's to the last bit, else that of psi and kappa."""
    return Loss.read(event["cap"]) if "cap" in event else Loss.of(Guarantee(event["psi"], event["kappa"]))
