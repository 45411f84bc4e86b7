"""Known deployments of differential privacy: their published claims, and the psi that psidp computes from them."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from psidp.guarantee import Guarantee
from psidp.present.formatting import up

__all__ = ["Deployment", "deployments"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """What was published of one deployment, and where; the claim is (epsilon, delta), or rho of zCDP.

    Args:
        name, curator, year: what, by whom and since when. unit: whose data is protected. trust: "central", where a
        curator sees the data, or "local", where each device adds its own noise. mechanism: how the noise is made.
        source: where the claim was published. entry: its file in the registry of deployments.
    """

    name: str
    curator: str
    year: int
    unit: str
    trust: str
    mechanism: str
    source: str
    entry: str
    epsilon: float | None = None
    delta: float = 0.0
    zcdp: float | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The mechanism's own psi where it is Gaussian; else the psi that covers every mechanism with this claim."""
        if "Gaussian" in self.mechanism:
            claim = {"epsilon": self.epsilon, "delta": self.delta} if self.zcdp is None else {"zcdp": self.zcdp}
            return Guarantee.gaussian(unit=self.unit, **claim)
        if self.epsilon is None:
            raise ValueError(f"a mechanism that is not Gaussian must claim epsilon, got {self.name!r} without.")
        if self.delta:
            return Guarantee.from_approximate(self.epsilon, self.delta, unit=self.unit)
        return Guarantee.from_pure(self.epsilon, unit=self.unit)

    @property
    def claim(self) -> str:
        """The claim as people write it."""
        if self.zcdp is not None:
            return f"ρ = {self.zcdp:g} (zCDP), {self.mechanism}"
        slack = f", δ = {up(self.delta)}" if self.delta else ""
        return f"ε = {self.epsilon:g}{slack}, {self.mechanism}"

    def to_dict(self) -> dict[str, Any]:
        """What the page shows of it."""
        shown = ("name", "curator", "year", "unit", "trust", "claim", "source")
        g = self.guarantee
        return {name: getattr(self, name) for name in shown} | {"psi": g.psi, "kappa": g.kappa}


@cache
def deployments() -> tuple[Deployment, ...]:
    """The known deployments, the smallest psi first.

    Examples:
        >>> first = deployments()[0]
        >>> first.name, first.curator, round(first.guarantee.psi, 3)
        ('Current page views', 'Wikimedia Foundation', 0.173)
    """
    text = files("psidp.present").joinpath("deployments.json").read_text(encoding="utf-8")
    found = [Deployment(**entry) for entry in json.loads(text)["deployments"]]
    return tuple(sorted(found, key=lambda deployment: deployment.guarantee.psi))
