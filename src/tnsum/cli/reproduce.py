"""`tnsum reproduce`: the paper's experiment."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import click

from tnsum.cli._libraries import libraries_needed
from tnsum.cli._output import Stopped, print_table, say
from tnsum.cli._runs import accuracy
from tnsum.topology import printable

if TYPE_CHECKING:
    from tnsum.experiments import Point, Reproduction

_FRACTIONS = "0.01,0.02,0.05,0.1,0.2,0.5,0.8"


def _fractions(context: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    """Different numbers between 0 and 1, between commas."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < f < 1 for f in found) or len(set(found)) < len(found):
        raise click.BadParameter(
            f"{text!r} must be different numbers between 0 and 1; write for instance 0.2,0.8 for 20 "
            f"and 80 %."
        )
    return found


@click.command(
    short_help="Run the paper's experiment and write a report.",
    epilog="""\b
Examples:
  tnsum reproduce --splits 5
  tnsum reproduce --data ETH-80 --out eth80 --protocol all --jobs 2
""",
)
@click.option(
    "--data",
    type=click.Path(exists=True),
    help="Where ETH-80 is: its folder or a prepared .npz. Without it, objects are made by a program.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="reproduction",
    show_default=True,
    help="The folder for results, figures and report.",
)
@click.option(
    "--splits",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="Random splits at each fraction.",
)
@click.option(
    "--fractions",
    metavar="F,F,...",
    default=_FRACTIONS,
    show_default=True,
    callback=_fractions,
    help="The parts of the images that are trained on.",
)
@click.option(
    "--protocol",
    type=click.Choice(["paper", "tuned", "objects", "all"]),
    default="paper",
    show_default=True,
    help="The paper's settings; kernels chosen by cross-validation; new objects; or all three.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="How many processes share the splits.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the splits.")
def reproduce(
    data: str | None,
    out: str,
    splits: int,
    fractions: tuple[float, ...],
    protocol: str,
    jobs: int,
    seed: int,
) -> None:
    """Run the paper's experiment: classify images by what the sum of their networks has in common.

    Each split is kept in OUT as it is done. When it is stopped, the same command goes on where it was.
    """
    with libraries_needed("tnsum reproduce"):
        from tnsum import experiments
    names = ("paper", "tuned", "objects") if protocol == "all" else (protocol,)
    settings = experiments.Settings(names, fractions, splits, seed)
    say(f"Data: {'ETH-80, ' + printable(data) if data else _MADE}")
    try:
        run = experiments.reproduce(data, out, settings, jobs, progress=True)
    except KeyboardInterrupt:
        raise Stopped(
            f"Stopped. Finished splits are in {printable(out)}; the same command goes on."
        ) from None
    _print_outcome(run)
    say(f"\nReport: {printable(os.path.join(out, 'report.html'))}")


_MADE = "no --data was given, so objects made by a program (make_objects), not ETH-80"


def _print_outcome(run: Reproduction) -> None:
    from tnsum.experiments._report import claims_of, tuning_claims

    for name in run.settings.protocols:
        points = run.points(name)
        say(f"\n{name}: accuracy in per cent, mean ± standard deviation")
        columns = ["trained on", *(f"#{method}" for method in points[0].methods)]
        print_table(columns, (_row(point) for point in points))
        for sentence in claims_of(run, name):
            say(printable(sentence))
    if sentences := tuning_claims(run):
        say()
        for sentence in sentences:
            say(sentence)


def _row(point: Point) -> list[str]:
    found = [point.accuracy(method) for method in point.methods]
    return [
        point.title,
        *(accuracy(one.mean, None if math.isnan(one.std) else one.std) for one in found),
    ]
