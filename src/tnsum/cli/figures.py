"""`tnsum figures`: all figures of the paper."""

from __future__ import annotations

import os

import click

from tnsum.cli._libraries import libraries_needed
from tnsum.cli._output import say
from tnsum.topology import printable


@click.command(
    short_help="Draw all figures of the paper.",
    epilog="""\b
Examples:
  tnsum figures paper
  tnsum reproduce --data ETH-80 --out eth80 && tnsum figures paper --results eth80
""",
)
@click.argument("folder", type=click.Path(file_okay=False))
@click.option(
    "--results",
    type=click.Path(exists=True, file_okay=False),
    help="The folder of a finished `tnsum reproduce`, for the figures of the experiment.",
)
def figures(folder: str, results: str | None) -> None:
    """Draw all figures of the paper into FOLDER, each as SVG and PDF, and a page that shows them.

    Without --results a small experiment on objects made by a program is run first: its figures look like
    those of the paper, but are not of its images, and say so.
    """
    with libraries_needed("tnsum figures"):
        from tnsum.experiments._paper_figures import paper_figures
    if results is None:
        say("No --results were given: a small experiment on objects made by a program, not ETH-80")
    for one in paper_figures(folder, results, progress=True):
        say(printable(f"{os.path.join(folder, one.name)}.svg: {one.caption}"))
    say(f"\nPage: {printable(os.path.join(folder, 'index.html'))}")
