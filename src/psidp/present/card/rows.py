"""The card's second page, for specialists: tables in sections, every symbol explained in half a line."""

from psidp.present.card.events import alone, in_words
from psidp.present.card.record import Audited, Card
from psidp.present.formatting import down, up
from psidp.symbols import ADJACENCIES

__all__ = ["Rows", "broken", "counted", "sections", "warning"]

Rows = list[tuple[str, str, str]]
"""Name, value, and what the name means."""


def sections(card: Card) -> list[tuple[str, Rows]]:
    """Each section's heading with its names, values and meanings, numbers rounded to the private side."""
    return [
        ("The promise", _promise(card)),
        ("What follows from it", _derived(card)),
        ("For whom, from whom", _scope(card)),
        ("How the noise was made", _mechanism(card)),
        ("Evidence", _evidence(card)),
    ]


def warning(card: Card) -> str:
    """What stands above everything else: that an audit contradicts the promise; empty where none does."""
    if not broken(card) or card.audit is None:
        return ""
    found = f"psi is at least {down(card.audit.psi_lower)}, with confidence {card.audit.confidence:g}"
    return f"An audit contradicts this promise: {found}. What follows is what was promised, not what is kept."


def broken(card: Card) -> bool:
    """Whether the audited psi exceeds the promised one; where failure is allowed, psi alone does not tell."""
    return card.audit is not None and card.audit.psi_lower > card.guarantee.psi and not card.guarantee.kappa


def _promise(card: Card) -> Rows:
    g = card.guarantee
    one = {
        "add-remove": f"with and without one {g.unit}",
        "replace-one": f"one {g.unit}'s data replaced by other data",
        "zero-out": ADJACENCIES["zero-out"][0],
    }
    ends = [
        ("adjacency", g.adjacency, f"which data sets are compared: {one[g.adjacency]}"),
        ("unit of privacy", f"one {g.unit}", "whose data is protected"),
    ]
    over = "by how much this one psi may overstate an attacker's chance of a right guess"
    exact = "0: psi says it exactly" if card.regret == 0.0 else f"at most {up(card.regret, 2)}"
    failing = "chance that the protection fails outright"
    if card.events:
        at = f"epsilon at delta = {up(card.delta)}, certified"
        outright = up(card.promise.kappa) if card.promise.kappa else "0"
        return [
            (
                at,
                up(card.epsilon),
                "proved: outcomes become at most e^epsilon times as likely, but for delta",
            ),
            *ends,
            ("outright failure", outright, failing),
            (
                "psi that covers all of it",
                up(g.psi, 6),
                "a Gaussian mechanism that is nowhere more private",
            ),
            ("except with probability kappa", up(g.kappa), "where that psi does not cover it"),
            ("regret of that psi", exact, over),
        ]
    return [
        ("psi, sensitivity index", up(g.psi, 6), "sensitivity over noise, Delta/sigma; mu of mu-GDP; smaller is safer"),
        ("kappa, outright failure", up(g.kappa) if g.kappa else "0", failing),
        ("regret of psi", exact, over),
        *ends,
    ]


def _derived(card: Card) -> Rows:
    values = card.derived
    times = "outcomes become at most e^epsilon times as likely, but for delta"
    rows = [(f"epsilon at delta = {up(row['delta'])}", up(row["epsilon"]), times) for row in values["epsilon_at_delta"]]
    rows += [
        (f"delta at epsilon = {row['epsilon']:g}", up(row["delta"]), "probability left over at that epsilon")
        for row in values["delta_at_epsilon"]
    ]
    rows += [
        ("advantage, max TPR - FPR", up(values["advantage"]), "0 is guessing, 1 is knowing: the gain over a coin"),
        ("AUC of the best attack", up(values["auc"]), "chance to tell a member from another; 0.5 is guessing"),
    ]
    rows += [
        (
            f"TPR at FPR = {100 * row['fpr']:g} %",
            up(row["tpr"]),
            "members found, at this share of false alarms",
        )
        for row in values["tpr_at_fpr"]
    ]
    ppv, again = values["ppv"], values["reconstruction"]
    share = "share of accusations that are right, if this share are members"
    rows.append((f"PPV at prior {ppv['prior']:g}, FPR = {100 * ppv['fpr']:g} %", up(ppv["ppv"]), share))
    guess = f"chance to guess a secret that was guessed with chance {again['prior']:g} before"
    return [*rows, (f"guess of what {again['prior']:g} could guess", up(again["bound"]), guess)]


def _scope(card: Card) -> Rows:
    scope = card.scope
    bound = scope.contribution_bound or "none stated: nothing here enforced one"
    return [
        ("trust model", scope.trust_model, "who sees the data"),
        ("attacker", scope.adversary, "what the attacker may know"),
        ("contribution bound", bound, f"how much one {card.guarantee.unit} may add"),
        ("covered", "; ".join(scope.covered) or "the release that this card goes with", "by the promise"),
        ("not covered", "; ".join(scope.not_covered) or "anything else published from the same data", "by the promise"),
    ]


MEANINGS = {
    "sensitivity": "how far one unit can move the numbers (L2 norm)",
    "sigma": "standard deviation of the noise, in the unit of the numbers",
    "noise_multiplier": "sigma over sensitivity, in each step",
    "sampling_rate": "share of the data in each step",
    "steps": "how often the data was used",
}


def _mechanism(card: Card) -> Rows:
    made = card.mechanism
    given = [("mechanism", made.name, "what added the noise")]
    for name, meaning in MEANINGS.items():
        value = getattr(made, name)
        if value is not None:
            shown = f"{value:,}" if name == "steps" else f"{value:.6g}"
            given.append((name.replace("_", " "), shown, meaning))
    given += [] if made.sampling is None else [("sampling assumed", made.sampling, "how each step draws its data")]
    if alone(card.events) is not None or len(card.events) < 2:
        return given
    return given + [(f"event {i}", in_words(event), "part of the account") for i, event in enumerate(card.events, 1)]


def _evidence(card: Card) -> Rows:
    rows = [("computed by", card.software, "the program that made this card"), ("date", card.date, "of this card")]
    kept = "hash of the last entry: whoever keeps it notices changes"
    rows.append(("ledger head", card.ledger_head or "no ledger given", kept))
    if card.ledger_head is not None:
        checked = {"": "not for this card", "passed": "passed", "failed": "failed"}[card.ledger_check]
        rows.append(("ledger verified", checked, "every entry recomputed"))
    if card.total is not None:
        cap = "" if card.total.cap is None else f" of {down(card.total.cap, 6)}"
        rows.append(
            (f"total, {card.total.budget}", f"psi {up(card.total.psi, 6)}{cap}", "spent so far, this release included")
        )
    return [*rows, *_audited(card)]


def _audited(card: Card) -> Rows:
    audit = card.audit
    if audit is None:
        return [("audit", "none given", "an attack on the release, to test the promise")]
    above = "" if audit.psi_upper is None else f" and at most {up(audit.psi_upper)}"
    how = ", ".join(part for part in (audit.method, counted(audit)) if part)
    found = f"psi at least {down(audit.psi_lower)}{above}, with confidence {audit.confidence:g}{how and f' ({how})'}"
    verdict = f"{found}: the promise is broken" if broken(card) else found
    rows = [("audit", verdict, "an attack on the release, to test the promise")]
    return rows if audit.link is None else [*rows, ("audit, to read", audit.link, "where the audit can be read")]


def counted(audit: Audited) -> str:
    """From how many scores the audit speaks."""
    if audit.canaries is not None:
        return f"{audit.canaries:,} canaries"
    if audit.n_in is None or audit.n_out is None:
        return ""
    return f"{audit.n_in:,} scores with and {audit.n_out:,} without the person"
