"""`tnsum draw`: a picture of what a file holds."""

from __future__ import annotations

import os
from typing import cast

import click

from tnsum._replacing import replacing
from tnsum.cli._description import in_one_line
from tnsum.cli._output import say
from tnsum.drawing import to_svg, to_tikz
from tnsum.drawing._subjects import Drawable
from tnsum.network import Network
from tnsum.storage import faults_named, load
from tnsum.topology import printable

_KINDS = (".svg", ".pdf", ".png", ".tex")


def _checked_output(context: click.Context, option: click.Parameter, path: str) -> str:
    if os.path.splitext(path)[1].lower() not in _KINDS:
        raise click.BadParameter(f"the name must end in {', '.join(_KINDS)}; {path!r} came.")
    return path


@click.command(
    short_help="Draw what a file holds.",
    epilog="""\b
Examples:
  tnsum draw sum.safetensors -o sum.svg
  tnsum draw sum.safetensors -o sum.pdf
  tnsum draw sum.safetensors -o core.png --node core
""",
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    callback=_checked_output,
    help="The file to write: .svg, .pdf, .png, or .tex for LaTeX with tikz.",
)
@click.option(
    "--theme",
    type=click.Choice(["light", "dark", "auto"]),
    help="The ground it is for. An SVG follows its reader's system by default, others are light.",
)
@click.option(
    "--node", help="Draw the entries of this node as colours, blocks of a sum in borders."
)
def draw(file: str, output: str, theme: str | None, node: str | None) -> None:
    """Draw the network, stack or sum in FILE; of a sum, the blocks of its summands in each node.

    An older OUTPUT is replaced when the new one is complete.
    """
    kind = os.path.splitext(output)[1].lower()
    if node is not None and (kind == ".tex" or theme is not None):
        raise click.UsageError("--node draws .svg, .pdf or .png, and has no --theme.")
    if theme is not None and (kind == ".tex" or (theme == "auto" and kind != ".svg")):
        raise click.UsageError(f"A {kind} file has no theme {theme}.")
    x = load(file)
    # What else a file may hold is refused by the functions called, in their words.
    content = _content(cast("Drawable", x), kind, theme, node)
    with faults_named(output, "saved"), replacing(output) as written:
        written.write(content)
    what = "drawing of" if node is None else f"entries of node {node!r} of"
    say(f"{printable(output)}: {what} a {in_one_line(x)}")


def _content(x: Drawable, kind: str, theme: str | None, node: str | None) -> bytes:
    if node is not None:
        from tnsum.drawing._draw import saved_node

        return saved_node(cast("Network", x), node, kind[1:])
    if kind == ".svg":
        return to_svg(x, theme or "auto").encode("utf-8")
    if kind == ".tex":
        return to_tikz(x).encode("utf-8")
    from tnsum.drawing._draw import saved

    return saved(x, kind[1:], theme or "light")
