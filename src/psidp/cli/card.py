"""psidp card on the command line."""

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer

from psidp.accounting import DPSGD, PrivacyCurve, account
from psidp.accounting.events import Sampling
from psidp.auditing.result import FORM
from psidp.cli import options
from psidp.cli.echo import echo
from psidp.cli.public_record import (
    Answer,
    AnswersFile,
    Budget,
    EntryNumber,
    EvaluationFile,
    LedgerPlace,
    RegistryFile,
    budget_of,
    from_file,
    publish,
    reported,
)  # fmt: skip
from psidp.forms import check_form
from psidp.guarantee import Guarantee
from psidp.ledger.ledger import Ledger
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.present.card.events import parsed
from psidp.present.card.formats import written
from psidp.present.card.parts import ErrorRange, LedgerCheck, Total
from psidp.present.card.record import Audited, Card, Mechanism, Scope, mechanism_of
from psidp.present.card.record import card as make

__all__ = ["card"]

Part = TypeVar("Part", Total, ErrorRange)


@options.with_notions("psi", "epsilon", "delta", "sensitivity", "sigma", "auc", "advantage", "zcdp")
def card(
    notions: options.Notions,
    kappa: Annotated[float, typer.Option("--kappa", help="probability of outright failure, [0, 1)")] = 0.0,
    adjacency: Annotated[
        str | None,
        typer.Option("--adjacency", help="add-remove, replace-one or zero-out; a run's sampling says it otherwise"),
    ] = None,
    unit: Annotated[str, typer.Option("--unit", help="unit of privacy; the budget's or record unless told")] = "",
    title: Annotated[str, typer.Option("--title", help="what was released")] = "Privacy card",
    regret: Annotated[float, typer.Option("--regret", help="how far psi overstates the loss, [0, 1]")] = 0.0,
    prior: Annotated[float, typer.Option("--prior", help="chance of membership before the release, [0, 1]")] = 0.1,
    mechanism: Annotated[str, typer.Option("--mechanism", help="how the noise was made")] = "Gaussian mechanism",
    noise_multiplier: Annotated[float | None, typer.Option("--noise-multiplier", help="of a DP-SGD run")] = None,
    sampling_rate: Annotated[float | None, typer.Option("--sampling-rate", help="of a DP-SGD run")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="of a DP-SGD run")] = None,
    failure: Annotated[float, typer.Option("--failure", help="a run's own chance to fail outright, [0, 1)")] = 0.0,
    events: Annotated[str | None, typer.Option("--events", help="several runs and guarantees, as JSON")] = None,
    sampling: Annotated[
        str | None, typer.Option("--sampling", help="sampling assumed; of a run: poisson, without-replacement")
    ] = None,
    trust_model: Annotated[str, typer.Option("--trust-model", help="who sees the data")] = Scope().trust_model,
    adversary: Annotated[str, typer.Option("--adversary", help="what the attacker knows")] = Scope().adversary,
    contribution_bound: Annotated[
        str, typer.Option("--contribution-bound", help="how much of the data one unit may be")
    ] = Scope().contribution_bound,
    covered: Annotated[list[str], typer.Option("--covered", help="what the promise covers; repeat")] = [],  # noqa: B006
    not_covered: Annotated[list[str], typer.Option("--not-covered", help="what it does not; repeat")] = [],  # noqa: B006
    ledger_head: Annotated[str | None, typer.Option("--ledger-head", help="hash of the ledger's last entry")] = None,
    ledger_check: Annotated[str, typer.Option("--ledger-check", help="its verification: passed, failed")] = "",
    total: Annotated[str | None, typer.Option("--total", help="running total as JSON: budget, psi, kappa, cap")] = None,
    errors: Annotated[
        str | None, typer.Option("--errors", help="errors as JSON: a list of statistic, below, above: [least, most]")
    ] = None,
    publisher: Annotated[str, typer.Option("--publisher", help="who published it")] = "",
    audit: Annotated[str | None, typer.Option("--audit", help="audit result: JSON, or a file of it")] = None,
    audit_link: Annotated[str | None, typer.Option("--audit-link", help="where the audit can be read")] = None,
    date: Annotated[str | None, typer.Option("--date", help="YYYY-MM-DD; today when not given")] = None,
    ledger: LedgerPlace = None,
    budget: Budget = None,
    entry: EntryNumber = None,
    registry: RegistryFile = None,
    evaluation: EvaluationFile = None,
    answer: Answer = [],  # noqa: B006
    answers: AnswersFile = None,
    output: Annotated[str, typer.Option("--output", "-o", help="file: .html, .md or .json; - prints")] = "-",
    form: Annotated[str, typer.Option("--format", help="html, md or json, where -o does not say")] = "md",
) -> None:
    """Write the privacy card of a release: HTML, Markdown or JSON.

    With --ledger and --budget alone, it is the card of everything that the budget paid for; with --ledger and --entry
    that of one spend. A card of what the ledger did not pay for is refused.

    Example: psidp card --sensitivity 1 --sigma 2 --unit patient --title "Mean age" -o card.html

    Example: psidp card --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 -o run.html

    Example: psidp card --ledger ledger.db --entry 7 -o card.html

    Example: psidp card --ledger ledger.db --budget survey --evaluation evaluation.md -o card.html
    """
    if audit_link is not None and audit is None:
        raise ValueError("--audit-link goes with --audit, the audit's result.")
    answer = [*from_file(answers), *answer]
    alone = not notions and noise_multiplier is None and events is None
    if entry is not None and not alone:
        raise ValueError("the numbers of an entry come from the ledger: leave out those of a mechanism or a run.")
    budget = budget_of(ledger, budget, entry)
    report, head = reported(ledger, budget)
    if ledger is not None and budget is not None and alone:
        made = _of_ledger(Ledger(ledger), budget, entry, title, publisher, audit, audit_link, date)
        publish(made, registry, evaluation, answer, report)
        return _write(made, output, form)
    unit = unit or ("record" if report is None else report.budget.unit)
    adjacency = report.budget.adjacency if adjacency is None and report is not None and events is None else adjacency
    named = {name: value for name, value in notions.items() if name not in {"sensitivity", "sigma"}}
    sensitivity, sigma, delta = (notions.get(name) for name in ("sensitivity", "sigma", "delta"))
    described = (noise_multiplier, sampling_rate, steps)
    accounted = events is not None or ("psi" not in named and None not in described)
    if delta is not None and "epsilon" not in named and (accounted or len(named) > 1):
        del named["delta"]  # it says where epsilon is told
    said: dict[str, Any] = {} if delta is None else {"delta": delta}
    promise: Guarantee | PrivacyCurve
    if accounted:
        if named:
            raise ValueError(f"a run's numbers come from its account, got --{next(iter(named))}. Leave it out.")
        promise = _account(events, described, failure, _way(sampling), _side(adjacency), unit)
        mechanism = mechanism_of(promise.events).name if mechanism == Mechanism().name else mechanism
        sampling = "Poisson" if sampling is None and events is None else sampling
    elif failure:
        raise ValueError(f"--failure goes with --noise-multiplier, --sampling-rate and --steps, got {failure}.")
    else:
        if not named:
            named = notions
        whole = Guarantee.gaussian(adjacency=_side(adjacency) or "add-remove", unit=unit, **named)
        promise, said = Guarantee(whole.psi, kappa, whole.adjacency, unit), said | {"regret": regret}
        if sensitivity is not None and sigma is None and noise_multiplier is None and promise.psi > 0.0:
            sigma = promise.sigma(sensitivity)
    made = make(
        promise,
        kappa=kappa or None,
        title=title,
        prior=prior,
        mechanism=Mechanism(mechanism, sensitivity, sigma, noise_multiplier, sampling_rate, steps, sampling),
        scope=Scope(trust_model, adversary, contribution_bound, tuple(covered), tuple(not_covered)),
        ledger_head=ledger_head or head,
        ledger_check=cast(LedgerCheck, ledger_check) or None,
        total=None if total is None else _values("--total", total, Total),
        errors=None if errors is None else tuple(_values("--errors", one, ErrorRange) for one in _list(errors)),
        publisher=publisher or None,
        audit=None if audit is None else _audited(audit, audit_link),
        date=date,
        ledger=None if ledger is None else Ledger(ledger),
        budget=budget,
        **said,
    )
    publish(made, registry, evaluation, answer, report)
    return _write(made, output, form)


def _of_ledger(
    ledger: Ledger, budget: str, entry: int | None, title: str, publisher: str, audit: str | None, link: str | None,
    date: str | None,
) -> Card:  # fmt: skip
    """The card of one spend, or of everything that a budget released."""
    found = None if audit is None else _audited(audit, link)
    named = None if title == "Privacy card" else title
    promise = ledger.report(budget) if entry is None else ledger.spent(entry)
    return make(promise, ledger=ledger, budget=budget, title=named, publisher=publisher or None, audit=found, date=date)


def _account(
    events: str | None, run: tuple[Any, Any, Any], failure: float, way: Sampling, side: Adjacency | None, unit: str
) -> PrivacyCurve:
    """The account of the events, or of the one run and its own chance to fail."""
    if events is not None:
        return account(parsed(events, side, unit))
    one = DPSGD(*run, way, side, unit)
    return account(one if not failure else [one, Guarantee(0.0, failure, one.adjacency or "add-remove", unit)])


def _way(sampling: str | None) -> Sampling:
    """The sampling to account for; DPSGD refuses what is none."""
    return cast(Sampling, "poisson" if sampling is None else sampling.lower())


def _side(adjacency: str | None) -> Adjacency | None:
    return None if adjacency is None else check_adjacency(adjacency)


def _list(text: str) -> list[Any]:
    """The errors in JSON that somebody typed."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise ValueError(
            f"--errors must be a JSON list, got {text[:40]!r}. Such as "
            '[{"statistic": "mean age", "below": [0.8, 0.8], "above": [0.8, 0.8]}].'
        )
    return found


def _values(flag: str, given: Any, kind: type[Part]) -> Part:
    """The part that JSON, or what was read from it, describes."""
    names = {entry.name for entry in fields(kind)}
    try:
        found = json.loads(given) if isinstance(given, str) else given
        if not (isinstance(found, dict) and set(found) <= names):
            raise TypeError
        return kind(**found)
    except (TypeError, json.JSONDecodeError):
        raise ValueError(f"{flag} must be JSON with {', '.join(sorted(names))}, got {str(given)[:40]!r}.") from None


def _audited(text: str, link: str | None) -> Audited:
    """The audit result in the text, or in the file that it names."""
    words = text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8", errors="replace")
    try:
        values = json.loads(words)
    except ValueError:
        values = None
    if not isinstance(values, dict) or values.get("psi_lower", values.get("psi")) is None:
        raise ValueError(
            f"--audit must be an audit result with psi, its lower bound, or a file of it, got {text[:40]!r}. "
            "psidp audit scores.csv --json > audit.json writes one."
        )
    check_form(values.get("form"), FORM, "the audit result")
    values["psi_lower"] = values.get("psi_lower", values.get("psi"))
    values["link"] = values.get("link") if link is None else link
    return Audited(**{entry.name: values[entry.name] for entry in fields(Audited) if entry.name in values})


def _write(card: Card, output: str, form: str) -> None:
    suffix = Path(output).suffix.removeprefix(".")
    if output == "-":
        sys.stdout.write(written(card, form))
        return
    Path(output).write_text(written(card, suffix), encoding="utf-8")
    echo(f"{output} written", err=True)
