"""psidp figures: the paper's seven, or pictures of any mechanisms."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from psidp.accounting import DPSGD, PrivacyCurve, account
from psidp.cli import options
from psidp.cli.echo import echo
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.present import figures
from psidp.present.figures.files import SUFFIXES
from psidp.present.figures.paper import PAPER

__all__ = ["figures_command"]

KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "roc": lambda named: figures.roc(named),
    "probit": lambda named: figures.roc(named, axes="probit"),
    "tradeoff": lambda named: figures.tradeoff(named),
    "profile": lambda named: figures.profile(named),
    "densities": lambda named: figures.densities(_only(named)),
    "loss": lambda named: figures.loss(_only(named)),
    "tangent": lambda named: figures.tangent(_only(named)),
    "comparison": lambda named: figures.comparison(named),
}


def figures_command(
    kind: Annotated[str, typer.Argument(help=f"paper, conversions, {', '.join(KINDS)}")],
    mechanisms: Annotated[list[str], typer.Argument(help='such as "psi=1", "epsilon=1,delta=1e-5"')] = [],  # noqa: B006
    output: Annotated[
        Path, typer.Option("--output", "-o", help=f"directory, or a file: {', '.join(SUFFIXES)}")
    ] = Path(),
    form: Annotated[
        str, typer.Option("--format", help="svg, png, pdf, html or json, for files in a directory")
    ] = "svg",
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
) -> None:
    """Draw the paper's figures, or one to four mechanisms.

    As SVG, PNG, PDF, or HTML that needs no network.

    Example: psidp figures paper -o figures

    Example: psidp figures roc psi=1 epsilon=1,delta=1e-5 -o roc.svg

    Example: psidp figures profile noise_multiplier=1,sampling_rate=0.01,steps=1000 -o run.png
    """
    if mechanisms and kind in ("paper", "conversions"):
        raise ValueError(f"{kind} shows no mechanisms of yours, got {', '.join(mechanisms)}. Leave them out.")
    if kind == "paper":
        drawn = {f"figure_{number}": make for number, make in PAPER.items()}
    elif kind == "conversions":
        drawn = {kind: figures.conversions}
    elif kind in KINDS:
        named = {text: _curve(text, check_adjacency(adjacency), unit) for text in mechanisms}
        drawn = {kind: lambda: KINDS[kind](named)}
    else:
        raise ValueError(f"the figure must be paper, conversions or one of {', '.join(KINDS)}, got {kind!r}.")
    _write(drawn, output, form)


def _curve(text: str, adjacency: Adjacency, unit: str) -> Guarantee | PrivacyCurve:
    """The mechanism that one word names: Gaussian in any notion, or a DP-SGD run.

    Examples:
        >>> _curve("psi=1", "add-remove", "record")
        Guarantee(psi=1.0)
        >>> _curve("noise_multiplier=1,sampling_rate=0.01,steps=10", "add-remove", "record").unit
        'record'
    """
    names = ("noise_multiplier", "sampling_rate", "steps")
    if not text.startswith(names):
        return options.parse(text, adjacency, unit)
    values = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        numbers = [float(values.pop(name)) for name in names]
    except (KeyError, ValueError):
        numbers = []
    if values or not numbers:
        raise ValueError(f"a run must read noise_multiplier=1,sampling_rate=0.01,steps=1000, got {text!r}.")
    return account(DPSGD(numbers[0], numbers[1], numbers[2], unit=unit))  # type: ignore[arg-type]


def _only(named: dict[str, Any]) -> Guarantee:
    (one, *others) = named.values() or [None]
    if others or not isinstance(one, Guarantee):
        raise ValueError(f"this figure shows exactly one Gaussian mechanism, got {', '.join(named) or 'none'}.")
    return one


def _write(drawn: dict[str, Callable[[], Any]], output: Path, form: str) -> None:
    single = len(drawn) == 1 and output.suffix in SUFFIXES
    if output.suffix and output.suffix not in SUFFIXES and not output.is_dir():
        raise ValueError(f"the output must be a folder or end in {', '.join(SUFFIXES)}, got {str(output)!r}.")
    if not single:
        output.mkdir(parents=True, exist_ok=True)
    for name, make in drawn.items():
        target = output if single else output / f"{name}.{form}"
        echo(figures.save(make(), target))
