"""psidp compare: Gaussian mechanisms in order, the most private first."""

from typing import Annotated

import typer

from psidp.cli import options
from psidp.cli.json_output import show_json
from psidp.cli.tables import show_comparison
from psidp.maths.sensitivity import check_adjacency
from psidp.present.ranking import rank

__all__ = ["compare"]


def compare(
    mechanisms: Annotated[list[str], typer.Argument(help='such as "psi=1", "epsilon=1,delta=1e-5", "auc=0.7"')],
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    as_json: options.AsJson = False,
) -> None:
    """Put Gaussian mechanisms in order, the most private first.

    Beside each stands its distance to the next.

    Example: psidp compare psi=1 epsilon=1,delta=1e-5 sensitivity=1,sigma=3
    """
    ranked = rank([(text, options.parse(text, check_adjacency(adjacency), unit)) for text in mechanisms])
    if not as_json:
        return show_comparison(ranked)
    rows = [
        {"mechanism": r.name, "guarantee": r.guarantee.to_dict(), "epsilon": r.guarantee.epsilon(1e-5)}
        | {"auc": r.guarantee.auc, "advantage": r.guarantee.advantage, "divergence_to_next": r.divergence_to_next}
        for r in ranked
    ]
    return show_json({"mechanisms": rows, "epsilon_at_delta": 1e-5})
