"""draw, draw_node, to_svg, to_tikz: what is drawn, arranged, and painted.

What a picture shows is fixed by a topology alone, whatever the names: chains lie in a line, rings in a
circle, Tucker networks are stars, trees hang from a root, grids are grids, everything else is spread out
by springs. Physical nodes are green, contraction nodes blue. Physical modes are green lines that end
nowhere; a mode that many nodes hold is a dot, a trace a loop, a summed mode of one node ends with a bar.
Where there is no room for a text it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tnsum.drawing._palette import GROUNDS
from tnsum.drawing._placement import scene_of
from tnsum.drawing._scene import Scene
from tnsum.drawing._subjects import Drawable, subject_of, topology_of
from tnsum.drawing._svg import svg_of
from tnsum.drawing._tikz import tikz_of
from tnsum.errors import NetworkError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tnsum.network import Network
    from tnsum.summation import NetworkSum

_MOST_NODES = 2000
_MOST_MODES = 10_000
# In a notebook a picture is made unasked, so it must be quick.
_MOST_SHOWN_NODES = 200
_MOST_SHOWN_MODES = 1000


def scene(x: Drawable) -> Scene:
    """The scene of anything that can be drawn, once it is known to be small enough.

    Raises
    ------
    NetworkError
        `x` cannot be drawn, or is too large.
    """
    topology = topology_of(x)
    n_nodes, n_modes = len(topology.nodes), len(topology.modes)
    if n_nodes > _MOST_NODES or n_modes > _MOST_MODES:
        raise NetworkError(
            f"A drawing must have at most {_MOST_NODES} nodes and {_MOST_MODES} modes; {n_nodes} nodes "
            f"and {n_modes} modes came. Draw a part of it."
        )
    return scene_of(subject_of(x))


def draw(x: Drawable, ax: Axes | None = None, theme: str = "light") -> Axes:
    """The matplotlib Axes with the picture of a network, stack, sum, topology or compression.

    Without `ax` there is a new figure, as large as the picture needs, which notebooks show;
    `draw(x).figure.savefig("x.pdf")` writes it. Texts are outlines and scale with everything else.

    Parameters
    ----------
    x : Network, NetworkStack, NetworkSum, Topology or Compression
    ax : matplotlib Axes, optional
        Where to draw; the picture fills it, one unit to the right as long as one up.
    theme : {"light", "dark"}
        The ground that it is for; the ground itself is painted only if `savefig` is given a
        `facecolor`.

    Raises
    ------
    NetworkError
        matplotlib cannot be imported, `x` cannot be drawn or is too large, `ax` is no Axes, or there is
        no such theme.

    Examples
    --------
    >>> import numpy as np, tnsum
    >>> x = tnsum.tucker(np.ones((2, 2, 2)), [np.ones((4, 2))] * 3)
    >>> ax = draw(x + x)
    >>> ax.figure.savefig("sum.pdf")  # doctest: +SKIP
    """
    with _matplotlib_needed("tnsum.draw"):
        from tnsum.drawing._figure import painted
    return painted(scene(x), ax, theme)


def draw_node(x: Network | NetworkSum, name: str) -> Figure:
    """The matplotlib figure with the entries of one node as colours.

    Of a sum it is the explicit block array of Conjecture 1 (`NetworkSum.node`), zeros included, with
    lines between the blocks of the summands. Of an array with more than two axes there are panels: the
    axes that are not rows or columns have one index in each. Of complex numbers absolute values are
    shown.

    Raises
    ------
    NetworkError
        matplotlib cannot be imported, `x` is neither a Network nor a NetworkSum, it has no such node, or
        the node has more entries than a picture can show.

    Examples
    --------
    >>> import numpy as np, tnsum
    >>> x = tnsum.tucker(np.ones((2, 2, 2)), [np.ones((4, 2))] * 3)
    >>> figure = draw_node(x + 2 * x, "core")
    >>> len(figure.axes)  # one for each index of the third mode, and the scale of colours
    5
    """
    with _matplotlib_needed("tnsum.drawing.draw_node"):
        from matplotlib import pyplot

        from tnsum.drawing._heat import heat_map
    return heat_map(x, name, pyplot.figure)


def saved(x: Drawable, kind: str, theme: str) -> bytes:
    """The picture as a PDF or PNG file, the latter on a ground of its theme; without pyplot."""
    with _matplotlib_needed("A .pdf or .png file"):
        from tnsum.drawing._figure import figure_of, file_of
    return file_of(figure_of(scene(x), theme), kind, GROUNDS[theme] if kind == "png" else "none")


def saved_node(x: Network | NetworkSum, name: str, kind: str) -> bytes:
    """The entries of a node as an SVG, PDF or PNG file; without pyplot."""
    with _matplotlib_needed("Drawing the entries of a node"):
        from matplotlib.figure import Figure

        from tnsum.drawing._figure import file_of
        from tnsum.drawing._heat import heat_map
    return file_of(heat_map(x, name, Figure), kind, GROUNDS["light"])


def to_tikz(x: Drawable) -> str:
    r"""The picture of a network, stack, sum, topology or compression as a tikzpicture, for LaTeX.

    It needs the package tikz and nothing else: `\input` it, or paste it into a figure. Greek letters
    are set as maths; what not every LaTeX can set is written as its number.

    Raises
    ------
    NetworkError
        `x` cannot be drawn or is too large.

    Examples
    --------
    >>> import numpy as np, tnsum
    >>> print(to_tikz(tnsum.Topology({"A": ("i", "j")})).splitlines()[1])
    \begin{tikzpicture}[x=0.75bp, y=-0.75bp, font=\sffamily]
    """
    return tikz_of(scene(x))


def to_svg(x: Drawable, theme: str = "auto") -> str:
    """The picture of a network, stack, sum, topology or compression as an SVG, made without matplotlib.

    Its ground is transparent, and it can stand in a page as it is: it has no ids, runs nothing and loads
    nothing. Whoever points at a node, a mode or a block is told its name and sizes.

    Parameters
    ----------
    x : Network, NetworkStack, NetworkSum, Topology or Compression
    theme : {"auto", "light", "dark"}
        The ground that it is for; "auto" follows the page or the reader's system.

    Raises
    ------
    NetworkError
        `x` cannot be drawn or is too large, or there is no such theme.

    Examples
    --------
    >>> import numpy as np, tnsum
    >>> x = tnsum.chain([np.ones((2, 3)), np.ones((3, 4))])
    >>> svg = to_svg(x)
    >>> "matrix0: i0=2, r0=3" in svg, "<script" in svg
    (True, False)
    """
    return svg_of(scene(x), theme)


@contextmanager
def _matplotlib_needed(function: str) -> Iterator[None]:
    """Imports that need matplotlib; one that fails is told with what to install."""
    try:
        yield
    except ImportError as error:
        raise NetworkError(
            f"{function} needs matplotlib, which cannot be imported ({error}). Install it with "
            f"`pip install tnsum[draw]`; tnsum.drawing.to_svg does without it."
        ) from error


def shown_in_notebook(x: Drawable) -> str | None:
    """The SVG for a notebook, or None where that would take long: its text is shown then."""
    topology = topology_of(x)
    if len(topology.nodes) > _MOST_SHOWN_NODES or len(topology.modes) > _MOST_SHOWN_MODES:
        return None
    return to_svg(x)
