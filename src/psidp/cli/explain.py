"""psidp explain: what a mechanism promises, in every theory and in words."""

from psidp.cli import options
from psidp.cli.json_output import show_json
from psidp.cli.tables import show_explanation
from psidp.present.words import sentences, statements

__all__ = ["explain"]


@options.with_notions(*options.NOTIONS)
def explain(
    notions: options.Notions,
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    as_json: options.AsJson = False,
) -> None:
    """Say what a mechanism promises, in every theory and in words.

    Name the Gaussian mechanism in one way: --psi, or --epsilon and --delta, or --sensitivity and --sigma, or --auc, ...

    Example: psidp explain --epsilon 1 --delta 1e-5
    """
    guarantee = options.chosen(adjacency, unit, notions)
    if as_json:
        rows = [{"theory": s.theory, "quantity": s.quantity, "value": s.value} for s in statements(guarantee)]
        return show_json({"guarantee": guarantee.to_dict(), "statements": rows, "sentences": sentences(guarantee)})
    return show_explanation(guarantee)
