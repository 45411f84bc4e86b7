"""psidp audit: a file of attack scores in, what they prove about psi out; exit code 1 when a claim is refuted."""

from typing import Annotated, Any, cast

import typer

from psidp.auditing.independent import METHODS, Method
from psidp.auditing.independent import audit as audit_independent
from psidp.auditing.one_run import OneRunResult, audit_one_run
from psidp.auditing.result import AuditResult
from psidp.cli import options
from psidp.cli.json_output import show_json
from psidp.cli.score_file import ScoreFile
from psidp.cli.tables import console, table
from psidp.guarantee import Guarantee
from psidp.present.formatting import down, up

__all__ = ["audit"]

LONG = "with --member-column: one score a row, and whether the person was in"


def audit(
    source: Annotated[str, typer.Argument(help="a file of scores that ends in .csv, .npy or .parquet")],
    claimed_psi: Annotated[float | None, typer.Option("--claimed-psi", help="the psi to test, [0, inf)")] = None,
    claimed_kappa: Annotated[float, typer.Option("--claimed-kappa", help="its chance of outright failure, [0, 1)")] = 0,
    confidence: Annotated[float, typer.Option("--confidence", help="chance that the bound holds, (0, 1)")] = 0.95,
    method: Annotated[str, typer.Option("--method", help=", ".join(METHODS))] = "both",
    threshold: Annotated[float | None, typer.Option("--threshold", help="for clopper-pearson, chosen before")] = None,
    in_column: Annotated[str | None, typer.Option("--in-column", help="scores of runs with the person")] = None,
    out_column: Annotated[str | None, typer.Option("--out-column", help="scores of runs without")] = None,
    score_column: Annotated[str | None, typer.Option("--score-column", help=LONG)] = None,
    member_column: Annotated[str | None, typer.Option("--member-column", help="1 or true: in; 0 or false: out")] = None,
    one_run: Annotated[
        bool, typer.Option("--one-run", help="canaries of a single run, each in by a fair coin")
    ] = False,
    guesses: Annotated[int | None, typer.Option("--guesses", help="for --one-run, fixed before")] = None,
    delta: Annotated[float, typer.Option("--delta", help="where the lower bound on epsilon is computed")] = 1e-5,
    gaussian: Annotated[
        bool, typer.Option("--gaussian", help="epsilon through psi: of a Gaussian mechanism only")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="of random pairs and simulations; fresh unless told")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what an attack's scores prove about psi.

    Where they refute the claim, the exit code is 1. Columns that are not named are guessed from their names and said.

    Example: psidp audit scores.csv --claimed-psi 1.0
    """
    _check_flags(one_run, guesses, claimed_psi, claimed_kappa, (method != "both", threshold, gaussian, seed))
    claimed = None if claimed_psi is None else Guarantee(claimed_psi, claimed_kappa)
    file = ScoreFile.find(source, in_column, out_column, score_column, member_column, one_run)
    result: AuditResult | OneRunResult
    if one_run:
        result = audit_one_run(*file.canaries(), confidence, guesses=guesses, claimed=claimed)
        epsilon = result.epsilon(delta)
    else:
        result = audit_independent(
            *file.sides(), confidence, cast(Method, method), claimed=claimed, threshold=threshold, seed=seed
        )
        epsilon = result.epsilon(delta, "gaussian" if gaussian else "any")
    if as_json:
        show_json(result.to_dict() | {"columns": file.to_dict(), "epsilon": {"delta": delta, "lower": epsilon}})
    else:
        _show(result, file, delta, epsilon)
    if result.refuted:
        raise typer.Exit(1)


def _check_flags(one_run: bool, guesses: int | None, psi: float | None, kappa: float, of_many: tuple[Any, ...]) -> None:
    """Refuse flags that would say nothing, rather than pass over them."""
    if guesses is not None and not one_run:
        raise ValueError("--guesses goes with --one-run: an audit of independent runs makes no guesses.")
    if kappa and psi is None:
        raise ValueError("--claimed-kappa goes with --claimed-psi: say both, or neither.")
    if one_run and any(flag not in (None, False) for flag in of_many):
        raise ValueError("--method, --threshold, --gaussian and --seed are for independent runs, not for --one-run.")


def _show(result: AuditResult | OneRunResult, file: ScoreFile, delta: float, epsilon: float) -> None:
    """The table, then what it means."""
    rows = table("What the scores prove", ["statement"], ["value"])
    for statement, value in _rows(result, delta, epsilon):
        rows.add_row(statement, value)
    console.print(rows)
    for sentence in (file.sentence, *_sentences(result)):
        console.print(f"{sentence}\n")


def _rows(result: AuditResult | OneRunResult, delta: float, epsilon: float) -> list[tuple[str, str]]:
    """The numbers, each rounded to its safe side."""
    rows = [(f"psi is at least (confidence {result.confidence:g})", down(result.psi))]
    rows += [(f"epsilon at delta = {delta:g} is at least", down(epsilon))]
    if isinstance(result, AuditResult):
        rows += [("psi that the ranks suggest, without guarantee", f"{result.estimate:.4g}")]
        rows += [("AUC of the attack", _interval(result.auc_interval))]
        rows += [(f"TPR of the attack at FPR {fpr:g}", _interval(result.tpr(fpr))) for fpr in (0.001, 0.01, 0.1)]
    if result.p_value is not None:
        rows += [("p-value of the claim", up(result.p_value, 3))]
    return rows


def _interval(ends: tuple[float, float]) -> str:
    return f"{down(ends[0])} to {up(ends[1])}"


def _sentences(result: AuditResult | OneRunResult) -> list[str]:
    """The verdict in words."""
    said: list[str] = []
    if isinstance(result, AuditResult):
        said.append(
            f"Method {result.method} ({' and '.join(result.used)}), seed {result.seed}: valid if every score comes "
            "from a run of its own and the attack was fixed before. Canaries of one run need --one-run."
        )
    else:
        shares = ", ".join(f"{right} of {made}" for right, made in result.guesses)
        said.append(f"Right guesses: {shares}, of {result.canaries} canaries; valid however they depend on each other.")
    claim: Any = result.claimed
    if claim is None:
        return [*said, "No claim was tested: give one with --claimed-psi."]
    name = f"psi = {claim.psi:g}" + (f", kappa = {claim.kappa:g}" if claim.kappa else "")
    if result.refuted:
        chance = up(result.p_value or 0.0, 3)
        return [*said, f"REFUTED: a mechanism with {name} gives such scores with probability {chance} at most."]
    return [*said, f"Not refuted: these scores are compatible with {name}. That does not prove it."]
