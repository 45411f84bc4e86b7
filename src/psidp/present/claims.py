"""What a vendor's claim is worth: read as a Gaussian mechanism's, and as that of any mechanism at all."""

from collections.abc import Mapping
from math import exp

from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency
from psidp.present.formatting import up

__all__ = ["any_mechanism", "which_applies"]

KAPPA = 1e-6
"""Probability with which the psi that covers a claim of zCDP or Renyi DP may fail, unless told."""


def any_mechanism(
    claim: Mapping[str, float], kappa: float = KAPPA, *, adjacency: Adjacency = "add-remove", unit: str = "record"
) -> Guarantee:
    """The smallest psi, with its kappa, that covers every mechanism of which the claim is true.

    Args:
        claim: epsilon; epsilon and delta; zcdp; or alpha and rho. psi is a claim about all mechanisms already (mu-GDP).
        kappa: used for zCDP and Renyi DP alone; a claim of epsilon has its own, delta.

    Examples:
        >>> any_mechanism({"epsilon": 1.0}).psi, any_mechanism({"epsilon": 1.0, "delta": 1e-6}).kappa
        (1.232..., 1e-06)
        >>> any_mechanism({"auc": 0.7})
        Traceback (most recent call last):
        ValueError: any mechanism is read from epsilon, epsilon and delta, zcdp, alpha and rho, or psi; got auc. ...
    """
    match sorted(claim):
        case ["epsilon"]:
            return Guarantee.from_pure(claim["epsilon"], adjacency=adjacency, unit=unit)
        case ["delta", "epsilon"]:
            return Guarantee.from_approximate(claim["epsilon"], claim["delta"], adjacency=adjacency, unit=unit)
        case ["zcdp"]:
            return Guarantee.from_zcdp(claim["zcdp"], kappa, adjacency=adjacency, unit=unit)
        case ["alpha", "rho"]:
            return Guarantee.from_rdp(claim["alpha"], claim["rho"], kappa, adjacency=adjacency, unit=unit)
        case ["psi"]:
            return Guarantee(claim["psi"], adjacency=adjacency, unit=unit)
    raise ValueError(
        "any mechanism is read from epsilon, epsilon and delta, zcdp, alpha and rho, or psi; got "
        f"{', '.join(claim) or 'nothing'}. Other notions describe a Gaussian mechanism."
    )


def which_applies(gaussian: Guarantee | None, covering: Guarantee, claim: Mapping[str, float]) -> str:
    """The sentence that says which reading applies when; without a Gaussian reading, why there is none."""
    failing = f", except with probability {up(covering.kappa)}," if covering.kappa else ""
    if gaussian is None:
        times = up(exp(claim["epsilon"]), 3)
        return (
            f"No Gaussian mechanism has delta = 0. Whatever the mechanism is, psi = {up(covering.psi)} covers it, and "
            "randomised response needs that much. Of a suspicion the claim itself says more: its odds grow "
            f"{times} times at most, in every release."
        )
    if gaussian == covering:
        return "This claim reads the same for every mechanism."
    return (
        f"psi = {up(gaussian.psi)} applies if the mechanism is known to be Gaussian: normal noise on a sum, and "
        f"nothing else released. If the claim is all that is known, psi = {up(covering.psi)}{failing} applies: it "
        "covers every mechanism of which the claim is true."
    )
