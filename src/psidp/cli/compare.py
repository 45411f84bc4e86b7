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
    mechanisms: Annotated[
        list[str], typer.Argument(help='such as "psi=1", "epsilon=1,delta=1e-5", or with a name: "clinic:auc=0.7"')
    ],
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    as_json: options.AsJson = False,
) -> None:
    """Put Gaussian mechanisms in order, the most private first.

    Beside each stands its distance to the next. A name goes before a colon.

    Example: psidp compare psi=1 epsilon=1,delta=1e-5 sensitivity=1,sigma=3

    Example: psidp compare old:psi=1 "new survey:epsilon=1,delta=1e-5"
    """
    pairs, side = _named(mechanisms), check_adjacency(adjacency)
    ranked = rank([(name, options.parse(text, side, unit)) for name, text in pairs], [text for _, text in pairs])
    if not as_json:
        return show_comparison(ranked)
    rows = [
        {
            "name": r.name,
            "mechanism": r.mechanism,
            "guarantee": r.guarantee.to_dict(),
            "epsilon": r.guarantee.epsilon(1e-5),
        }
        | {"auc": r.guarantee.auc, "advantage": r.guarantee.advantage, "divergence_to_next": r.divergence_to_next}
        for r in ranked
    ]
    return show_json({"mechanisms": rows, "epsilon_at_delta": 1e-5})


def _named(mechanisms: list[str]) -> list[tuple[str, str]]:
    """Each mechanism with the name that stands before its colon, or with what was typed; given names differ.

    Examples:
        >>> _named(["clinic: psi=1", "auc=0.7"])
        [('clinic', 'psi=1'), ('auc=0.7', 'auc=0.7')]
    """
    pairs: list[tuple[str, str]] = []
    for words in mechanisms:
        name, colon, text = words.rpartition(":")
        if not colon:
            pairs.append((words, words))
            continue
        name = name.strip()
        if not name:
            raise ValueError(f"a name before a colon must not be empty, got {words!r}.")
        if name in [had for had, _ in pairs]:
            raise ValueError(f"two mechanisms must have two names, got {name!r} twice.")
        pairs.append((name, text.strip()))
    return pairs
