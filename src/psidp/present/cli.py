"""psidp on the command line: parse, call, show. Same names, same numbers and same refusals as in Python."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

import psidp.present.paper as paper_experiment
import psidp.symbols as symbols
from psidp.errors import PsidpError
from psidp.maths.sensitivity import check_adjacency
from psidp.present import audit, conversions, ledger, notion, release
from psidp.present.account import account_command, calibrate_run
from psidp.present.card.command import card
from psidp.present.comparison import rank
from psidp.present.demo import demo as demonstrate
from psidp.present.digits import up
from psidp.present.figures.command import figures_command
from psidp.present.tables import console, show_comparison, show_explanation, show_json, show_paper
from psidp.present.web.command import explore
from psidp.present.words import sentences, statements

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(release.app, name="release")
app.add_typer(ledger.app, name="ledger")


@app.callback()
def options(
    shown: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=lambda asked: _version(asked), help="show the version")
    ] = False,
) -> None:
    """Gaussian differential privacy through one number, the sensitivity index psi = Delta/sigma.

    Begin with: psidp explain --psi 1
    """


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"psidp {version('psidp')}")
        raise typer.Exit


@app.command()
def explain(
    psi: notion.Psi = None,
    epsilon: notion.Epsilon = None,
    delta: notion.Delta = None,
    sensitivity: notion.Sensitivity = None,
    sigma: notion.Sigma = None,
    auc: notion.Auc = None,
    advantage: notion.Advantage = None,
    tpr: notion.Tpr = None,
    fpr: notion.Fpr = None,
    alpha: notion.Alpha = None,
    rho: notion.Rho = None,
    zcdp: notion.Zcdp = None,
    adjacency: notion.Adjacent = "add-remove",
    unit: notion.Unit = "record",
    as_json: notion.AsJson = False,
) -> None:
    """Say what a mechanism promises, in every theory and in words.

    Name the Gaussian mechanism in one way: --psi, or --epsilon and --delta, or --sensitivity and --sigma, or --auc, ...

    Example: psidp explain --epsilon 1 --delta 1e-5
    """
    guarantee = notion.chosen(
        adjacency, unit, psi=psi, epsilon=epsilon, delta=delta, sensitivity=sensitivity, sigma=sigma, auc=auc,
        advantage=advantage, tpr=tpr, fpr=fpr, alpha=alpha, rho=rho, zcdp=zcdp,
    )  # fmt: skip
    if as_json:
        rows = [{"theory": s.theory, "quantity": s.quantity, "value": s.value} for s in statements(guarantee)]
        return show_json({"guarantee": guarantee.to_dict(), "statements": rows, "sentences": sentences(guarantee)})
    return show_explanation(guarantee)


@app.command()
def convert(
    to: Annotated[list[str], typer.Option("--to", help=f"what to compute: {', '.join(conversions.TARGETS)}")],
    psi: notion.Psi = None,
    epsilon: notion.Epsilon = None,
    delta: notion.Delta = None,
    sensitivity: notion.Sensitivity = None,
    sigma: notion.Sigma = None,
    auc: notion.Auc = None,
    advantage: notion.Advantage = None,
    tpr: notion.Tpr = None,
    fpr: notion.Fpr = None,
    alpha: notion.Alpha = None,
    rho: notion.Rho = None,
    zcdp: notion.Zcdp = None,
    at: Annotated[
        list[str], typer.Option("--at", help="where to compute it: delta=1e-6, epsilon=1, fpr=0.01, ...")
    ] = [],  # noqa: B006
    adjacency: notion.Adjacent = "add-remove",
    unit: notion.Unit = "record",
    as_json: notion.AsJson = False,
) -> None:
    """Turn one notion into others, with every digit.

    Example: psidp convert --epsilon 1 --delta 1e-5 --to psi --to auc --to tpr --at fpr=0.01
    """
    guarantee = notion.chosen(
        adjacency, unit, psi=psi, epsilon=epsilon, delta=delta, sensitivity=sensitivity, sigma=sigma, auc=auc,
        advantage=advantage, tpr=tpr, fpr=fpr, alpha=alpha, rho=rho, zcdp=zcdp,
    )  # fmt: skip
    results = conversions.convert(guarantee, to, conversions.conditions(at))
    if as_json:
        return show_json({"guarantee": guarantee.to_dict()} | results)
    for name, value in results.items():
        typer.echo(f"{value!r}" if len(results) == 1 else f"{name} {value!r}")
    return None


@app.command()
def calibrate(
    sensitivity: Annotated[
        float | None, typer.Option("--sensitivity", help="L2 sensitivity of the query, [0, inf)")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="for a DP-SGD run: number of noisy steps")] = None,
    sampling_rate: Annotated[
        float | None, typer.Option("--sampling-rate", help="for a DP-SGD run: chance of a record to be in a batch")
    ] = None,
    sampling: Annotated[str, typer.Option("--sampling", help="poisson or without-replacement")] = "poisson",
    kappa: Annotated[float | None, typer.Option("--kappa", help="for a DP-SGD run and --psi: what it may miss")] = None,
    psi: notion.Psi = None,
    epsilon: notion.Epsilon = None,
    delta: notion.Delta = None,
    auc: notion.Auc = None,
    advantage: notion.Advantage = None,
    tpr: notion.Tpr = None,
    fpr: notion.Fpr = None,
    alpha: notion.Alpha = None,
    rho: notion.Rho = None,
    zcdp: notion.Zcdp = None,
    adjacency: notion.Adjacent = "add-remove",
    unit: notion.Unit = "record",
    as_json: notion.AsJson = False,
) -> None:
    """Choose sigma for a query, or noise_multiplier for a run.

    A query has a sensitivity, a DP-SGD run has steps and a sampling rate; both have a target.

    Example: psidp calibrate --sensitivity 1 --epsilon 1 --delta 1e-5

    Example: psidp calibrate --steps 1000 --sampling-rate 0.01 --epsilon 2 --delta 1e-5
    """
    if steps is not None and sampling_rate is not None and sensitivity is None:
        targets = {"epsilon": epsilon, "delta": delta, "psi": psi, "kappa": kappa, "advantage": advantage}
        others = {"auc": auc, "tpr": tpr, "fpr": fpr, "alpha": alpha, "rho": rho, "zcdp": zcdp}
        other = next((name for name, value in others.items() if value is not None), None)
        if other:
            raise ValueError(f"a run is calibrated to epsilon and delta, psi and kappa, or advantage, got {other}.")
        return calibrate_run(sampling_rate, steps, sampling, check_adjacency(adjacency), unit, as_json, targets)
    if sensitivity is None or steps is not None or sampling_rate is not None:
        raise TypeError("calibrate needs --sensitivity for a query, or --steps and --sampling-rate for a DP-SGD run.")
    if kappa is not None:
        raise ValueError("kappa (probability of outright failure) belongs to a run, which has --steps.")
    guarantee = notion.chosen(
        adjacency, unit, psi=psi, epsilon=epsilon, delta=delta, auc=auc, advantage=advantage, tpr=tpr, fpr=fpr,
        alpha=alpha, rho=rho, zcdp=zcdp,
    )  # fmt: skip
    sigma = guarantee.sigma(sensitivity)
    if as_json:
        return show_json({"sigma": sigma, "sensitivity": sensitivity, "guarantee": guarantee.to_dict()})
    console.print(f"sigma = {sigma!r}")
    console.print(
        f"Noise with this standard deviation, on a query of sensitivity {sensitivity:g} ({guarantee.adjacency}, per "
        f"{guarantee.unit}), has psi = {up(guarantee.psi, 6)}: epsilon {up(float(guarantee.epsilon(1e-5)))} at "
        f"delta = 1e-5, AUC {up(guarantee.auc)}."
    )
    return None


@app.command()
def compare(
    mechanisms: Annotated[list[str], typer.Argument(help='such as "psi=1", "epsilon=1,delta=1e-5", "auc=0.7"')],
    adjacency: notion.Adjacent = "add-remove",
    unit: notion.Unit = "record",
    as_json: notion.AsJson = False,
) -> None:
    """Put Gaussian mechanisms in order, the most private first.

    Beside each stands its distance to the next.

    Example: psidp compare psi=1 epsilon=1,delta=1e-5 sensitivity=1,sigma=3
    """
    ranked = rank([(text, notion.parse(text, check_adjacency(adjacency), unit)) for text in mechanisms])
    if not as_json:
        return show_comparison(ranked)
    rows = [
        {"mechanism": r.name, "guarantee": r.guarantee.to_dict(), "epsilon": r.guarantee.epsilon(1e-5)}
        | {"auc": r.guarantee.auc, "advantage": r.guarantee.advantage, "divergence_to_next": r.divergence_to_next}
        for r in ranked
    ]
    return show_json({"mechanisms": rows, "epsilon_at_delta": 1e-5})


app.command("account")(account_command)
app.command()(audit.audit)
app.command()(card)
app.command("figures")(figures_command)
app.command()(explore)


@app.command()
def paper(
    figure: Annotated[int, typer.Option("--figure", help="6 (data at alpha = 1.9) or 7 (alpha = 6)")] = 7,
    csv: Annotated[str, typer.Option("--csv", help="write all columns to this file; - is standard output")] = "",
    as_json: notion.AsJson = False,
) -> None:
    """Reproduce the paper's experiment, beside its own numbers.

    Three roads lead from psi to epsilon at delta = 1e-5: the profile and two conversions of Renyi DP.
    """
    table = paper_experiment.experiment(figure)
    if csv == "-":
        return paper_experiment.write_csv(table, sys.stdout)
    if csv:
        with Path(csv).open("w", newline="") as file:
            paper_experiment.write_csv(table, file)
    if as_json:
        columns = {name: column.tolist() for name, column in table.items()}
        return show_json(
            {"figure": figure, "alpha": paper_experiment.FIGURES[figure], "delta": 1e-5, "columns": columns}
        )
    return show_paper(figure, table)


@app.command()
def notation() -> None:
    """List every quantity: its name, letter, meaning and domain.

    The list is Markdown, and says what others call the same thing.
    """
    typer.echo("\n".join(symbols.notation()))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="where its files go")] = Path("psidp-demo"),
) -> None:
    """Show in a minute what psidp does and what it means.

    A clinic's table, a budget, three releases, a refusal.
    """
    demonstrate(folder)


def main() -> None:
    """Run, and turn a refusal into its sentence and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, PsidpError) as refusal:
        _refuse(str(refusal))
    except OSError as trouble:
        _refuse(_in_words(trouble))


def _in_words(trouble: OSError) -> str:
    """What the operating system complains of, and what to do about it."""
    if not trouble.filename:
        return f"{trouble.strerror or trouble}."
    todo = "Check the path: its folder must exist, and you must be allowed to use it."
    if isinstance(trouble, FileExistsError):
        todo = "Nothing was overwritten: choose another name."
    return f"{trouble.filename!r} cannot be used: {trouble.strerror}. {todo}"


def _refuse(sentence: str) -> None:
    typer.echo(f"psidp: {sentence}", err=True)
    sys.exit(2)
