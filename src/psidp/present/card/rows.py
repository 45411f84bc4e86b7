"""The card's lines of text, in sections: the same in HTML and in Markdown."""

from psidp.present.card.events import alone, in_words
from psidp.present.card.record import Audited, Card
from psidp.present.formatting import down, up
from psidp.symbols import ADJACENCIES

__all__ = ["Rows", "sections", "warning"]

Rows = list[tuple[str, str]]


def sections(card: Card) -> list[tuple[str, Rows]]:
    """Each section's heading with its names and values, numbers rounded to the private side."""
    return [
        ("The promise", _promise(card)),
        ("What follows from it", _derived(card)),
        ("For whom, from whom", _scope(card)),
        ("How the noise was made", _mechanism(card)),
        ("Evidence", _evidence(card)),
    ]


def warning(card: Card) -> str:
    """What stands above everything else: that an audit contradicts the promise; empty where none does."""
    if not _broken(card) or card.audit is None:
        return ""
    found = f"psi is at least {down(card.audit.psi_lower)}, with confidence {card.audit.confidence:g}"
    return f"An audit contradicts this promise: {found}. What follows is what was promised, not what is kept."


def _broken(card: Card) -> bool:
    """Whether the audited psi exceeds the promised one; where failure is allowed, psi alone does not tell."""
    return card.audit is not None and card.audit.psi_lower > card.guarantee.psi and not card.guarantee.kappa


def _promise(card: Card) -> Rows:
    g = card.guarantee
    side = f"{g.adjacency}: {ADJACENCIES[g.adjacency][0]}" if g.adjacency == "zero-out" else g.adjacency
    ends = [("adjacency", side), ("unit of privacy", f"one {g.unit}")]
    exact = "0: psi says it exactly" if card.regret == 0.0 else f"at most {up(card.regret, 2)}"
    if card.events:
        rows = [(f"epsilon at delta = {up(card.delta)}, certified", up(card.epsilon)), *ends]
        rows += [("outright failure", up(card.promise.kappa) if card.promise.kappa else "0")]
        cover = [("psi that covers all of it", up(g.psi, 6)), ("except with probability kappa", up(g.kappa))]
        return [*rows, *cover, ("regret of that psi", exact)]
    rows = [("psi, sensitivity index", up(g.psi, 6)), ("kappa, outright failure", up(g.kappa) if g.kappa else "0")]
    return [*rows, ("regret of psi", exact), *ends]


def _derived(card: Card) -> Rows:
    values = card.derived
    rows = [(f"epsilon at delta = {up(row['delta'])}", up(row["epsilon"])) for row in values["epsilon_at_delta"]]
    rows += [(f"delta at epsilon = {row['epsilon']:g}", up(row["delta"])) for row in values["delta_at_epsilon"]]
    rows += [("advantage, max TPR - FPR", up(values["advantage"])), ("AUC of the best attack", up(values["auc"]))]
    rows += [(f"TPR at FPR = {100 * row['fpr']:g} %", up(row["tpr"])) for row in values["tpr_at_fpr"]]
    ppv, again = values["ppv"], values["reconstruction"]
    rows.append((f"PPV at prior {ppv['prior']:g}, FPR = {100 * ppv['fpr']:g} %", up(ppv["ppv"])))
    return [*rows, (f"reconstruction of what {again['prior']:g} could guess", up(again["bound"]))]


def _scope(card: Card) -> Rows:
    scope = card.scope
    return [
        ("trust model", scope.trust_model),
        ("attacker", scope.adversary),
        ("contribution bound", scope.contribution_bound),
        ("covered", "; ".join(scope.covered) or "the release that this card goes with"),
        ("not covered", "; ".join(scope.not_covered) or "anything else published from the same data"),
    ]


def _mechanism(card: Card) -> Rows:
    made = card.mechanism
    given = [("mechanism", made.name)]
    for name in ("sensitivity", "sigma", "noise_multiplier", "sampling_rate", "steps"):
        value = getattr(made, name)
        if value is not None:
            given.append((name.replace("_", " "), f"{value:,}" if name == "steps" else f"{value:.6g}"))
    given += [] if made.sampling is None else [("sampling assumed", made.sampling)]
    if alone(card.events) is not None:
        return given
    return given + [(f"event {i}", in_words(event)) for i, event in enumerate(card.events, 1) if len(card.events) > 1]


def _evidence(card: Card) -> Rows:
    rows = [("computed by", card.software), ("date", card.date)]
    rows.append(("ledger head", card.ledger_head or "no ledger given"))
    audit = card.audit
    if audit is None:
        return [*rows, ("audit", "none given")]
    above = "" if audit.psi_upper is None else f" and at most {up(audit.psi_upper)}"
    how = ", ".join(part for part in (audit.method, _counted(audit)) if part)
    found = f"psi at least {down(audit.psi_lower)}{above}, with confidence {audit.confidence:g}{how and f' ({how})'}"
    rows.append(("audit", f"{found}: the promise is broken" if _broken(card) else found))
    return rows if audit.link is None else [*rows, ("audit, to read", audit.link)]


def _counted(audit: Audited) -> str:
    """From how many scores the audit speaks."""
    if audit.canaries is not None:
        return f"{audit.canaries:,} canaries"
    if audit.n_in is None or audit.n_out is None:
        return ""
    return f"{audit.n_in:,} scores with and {audit.n_out:,} without the person"
