"""python -m fuzz [minutes] [--only NAME] [--seed N] [--list]: explore with fresh seeds until time is over."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from random import SystemRandom
from time import monotonic

from rich.console import Console

from fuzz.campaign import NAMES, SEEDS, Campaign, turns

__all__ = ["main", "run"]

MINUTES = 10.0
LINE_EVERY = 30.0
"""Seconds between lines where there is no terminal."""


def main(words: Sequence[str] | None = None) -> int:
    """Explore as told; 1 when there is a finding."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Explore with fresh seeds until time is over.")
    parser.add_argument(
        "minutes", nargs="?", type=float, help=f"how long (default {MINUTES:g}; with --seed, one round)"
    )
    parser.add_argument("--only", metavar="NAME", choices=NAMES, help=f"one campaign: {', '.join(NAMES)}")
    parser.add_argument("--seed", type=int, help="seed of the first round; fresh from the operating system unless told")
    parser.add_argument("--list", action="store_true", help="say what each campaign tries, and end")
    chosen = parser.parse_args(words)
    if chosen.minutes is not None and not chosen.minutes > 0.0:
        parser.error(f"minutes must be above 0, got {chosen.minutes:g}")
    if chosen.seed is not None and not 0 <= chosen.seed < SEEDS:
        parser.error(f"--seed must be in [0, {SEEDS}), got {chosen.seed}")
    seed = SystemRandom().randrange(SEEDS) if chosen.seed is None else chosen.seed
    campaigns = [Campaign.named(name, seed) for name in ([chosen.only] if chosen.only else NAMES)]
    console = Console(highlight=False, soft_wrap=True)
    if chosen.list:
        for campaign in campaigns:
            console.print(f"{campaign.name}: {campaign.about}", markup=False)
        return 0
    once = chosen.seed is not None and chosen.minutes is None
    return run(campaigns, None if once else 60.0 * (chosen.minutes or MINUTES), console)


def run(campaigns: list[Campaign], seconds: float | None, console: Console) -> int:
    """Campaigns in turns for so many seconds, or one round of each; prints what they find, and 1 says that they did."""
    console.print(f"Seed {campaigns[0].seed}. Campaigns: {', '.join(c.name for c in campaigns)}.")
    begun, told = monotonic(), monotonic()

    def left() -> float:
        return begun + (seconds or 0.0) - monotonic()

    def over() -> bool:
        return all(c.rounds for c in campaigns) if seconds is None else left() <= 0.0

    with console.status("") if console.is_terminal else nullcontext() as status:
        for campaign in turns(campaigns, over):
            line = _progress(campaign, campaigns, None if seconds is None else left())
            if status is not None:
                status.update(line)
            elif monotonic() - told >= LINE_EVERY:
                told = monotonic()
                console.print(line)
            if campaign.finding is not None:
                console.print(str(campaign.finding), markup=False)
    return _end(campaigns, console)


def _progress(campaign: Campaign, campaigns: list[Campaign], left: float | None) -> str:
    """Campaign, rounds, findings, time left."""
    rounds, found = sum(c.rounds for c in campaigns), sum(c.finding is not None for c in campaigns)
    time = "" if left is None else f", {max(left, 0.0) / 60.0:.1f} min left"
    return f"{campaign.name}: round {campaign.rounds}; in all {rounds} rounds, {found} findings{time}"


def _end(campaigns: list[Campaign], console: Console) -> int:
    """What was done by whom, and what to repeat."""
    findings = [c.finding for c in campaigns if c.finding is not None]
    for campaign in campaigns:
        console.print(f"{campaign.name}: {campaign.rounds} rounds, {campaign.seconds:.0f} s")
    console.print("No findings." if not findings else f"{len(findings)} findings:")
    for finding in findings:
        console.print(f"  {finding.command}", markup=False)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
