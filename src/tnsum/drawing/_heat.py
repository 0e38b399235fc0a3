"""The entries of a node as colours, with the borders between the blocks of a sum.

A matrix is one panel, a vector one row of it. Of an array of higher order two modes are rows and columns
and each choice of the other indices is a panel. Rows and columns are contraction modes where there are
two: along these the blocks of a sum follow one another, so that a superdiagonal is seen as such, panel
after panel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tnsum import _arrays
from tnsum.alignment import count
from tnsum.drawing._figure import drawable
from tnsum.drawing._words import shortened
from tnsum.errors import NetworkError
from tnsum.explicit import explicit_topology
from tnsum.network import Network
from tnsum.summation import NetworkSum
from tnsum.topology import listed

_MOST_ENTRIES = 2**22
_MOST_PANELS = 12
_MOST_BORDERS = 20
_PANELS_IN_ROW = 4
_PANEL = 2.2
_BORDER = "#1f2933"
# How many times as long as wide a panel may be.
_LONGEST = 6


@dataclass(frozen=True)
class Node:
    """A node's array on the host, the names of its axes, and where blocks begin along each."""

    array: np.ndarray[Any, Any]
    modes: tuple[str, ...]
    borders: tuple[tuple[int, ...], ...]


def heat_map(x: Network | NetworkSum, name: str, new_figure: Callable[..., Figure]) -> Figure:
    """The figure with the entries of a node (see `tnsum.drawing.draw_node`)."""
    node = _node(x, name)
    rows, columns, others = _axes_of(node)
    choices = list(product(*(range(node.array.shape[axis]) for axis in others)))
    shown = _some(choices)
    n_columns = min(len(shown), _PANELS_IN_ROW)
    n_rows = math.ceil(len(shown) / n_columns)
    size = (_PANEL * n_columns + 1.0, _PANEL * n_rows + 0.6)
    figure = new_figure(figsize=size, layout="constrained")
    panels: Any = figure.subplots(n_rows, n_columns, squeeze=False)
    is_complex = np.iscomplexobj(node.array)
    values = np.abs(node.array) if is_complex else node.array
    finite = np.abs(values[np.isfinite(values)])
    bound = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    colours: Any = {"cmap": "RdBu_r", "vmin": -bound, "vmax": bound}
    if is_complex:
        colours = {"cmap": "Reds", "vmin": 0, "vmax": bound}
    image: Any = None
    for panel, choice in zip(panels.flat, shown, strict=False):
        matrix = _slice(values, dict(zip(others, choice, strict=True)))
        image = panel.imshow(matrix, **colours, interpolation="nearest", aspect=_aspect(matrix))
        _dress(panel, node, rows, columns, dict(zip(others, choice, strict=True)))
    for panel in panels.flat[len(shown) :]:
        panel.set_axis_off()
    figure.colorbar(image, ax=panels, shrink=0.8)
    figure.suptitle(_heading(name, node, len(shown), len(choices)), fontsize=10, parse_math=False)
    return figure


def _node(x: Network | NetworkSum, name: str) -> Node:
    """The array of a node, once it is known to be there and not too large."""
    if not isinstance(x, Network | NetworkSum):
        raise NetworkError(
            f"Entries are drawn of a node of a Network or a NetworkSum; {type(x).__name__} came. Of a "
            f"stack take stack[k] or stack.sum()."
        )
    topology = explicit_topology(x) if isinstance(x, NetworkSum) else x.topology
    if name not in topology.nodes:
        raise NetworkError(f"A node must be one of {listed(tuple(topology.nodes))}; {name!r} came.")
    modes = topology.nodes[name]
    sizes = {**dict.fromkeys(modes, getattr(x, "n_summands", 1)), **x.sizes}
    n_entries = math.prod(sizes[mode] for mode in modes)
    if n_entries > _MOST_ENTRIES:
        raise NetworkError(
            f"A node must have at most {_MOST_ENTRIES} entries to be drawn; {name!r} has {n_entries}. "
            f"Draw the sum of fewer networks, or a part of it: x.select(...)."
        )
    array = x.node(name) if isinstance(x, NetworkSum) else x.arrays[name]
    borders = tuple(_borders(x, mode, topology.physical_modes) for mode in modes)
    return Node(_arrays.on_host(array), modes, borders)


def _borders(x: Network | NetworkSum, mode: str, physical: Sequence[str]) -> tuple[int, ...]:
    """Where the block of each summand but the first begins along a mode."""
    if mode in physical or not isinstance(x, NetworkSum):
        return ()
    # A mode that joins components has size 1 in every summand.
    sizes = [term.ranks.get(mode, 1) for term in x._terms for _ in range(count(term))]
    return tuple(accumulate(sizes[:-1]))


def _axes_of(node: Node) -> tuple[int | None, int | None, list[int]]:
    """The axes for rows, for columns, and all others: contraction modes first."""
    axes = sorted(range(len(node.modes)), key=lambda axis: not node.borders[axis])
    if len(axes) == 2:
        axes = [0, 1]
    shown = sorted(axes[:2])
    others = sorted(axes[2:])
    if len(shown) == 2:
        return shown[0], shown[1], others
    return None, shown[0] if shown else None, others


def _slice(values: np.ndarray[Any, Any], choice: dict[int, int]) -> np.ndarray[Any, Any]:
    where = tuple(choice.get(axis, slice(None)) for axis in range(values.ndim))
    return np.atleast_2d(values[where])


def _aspect(matrix: np.ndarray[Any, Any]) -> Literal["equal", "auto"]:
    """Entries are squares, unless there would be hardly anything to be seen of them."""
    return "auto" if max(matrix.shape) > _LONGEST * min(matrix.shape) else "equal"


def _name(name: str) -> str:
    return drawable(shortened(name))


def _dress(
    panel: Axes, node: Node, rows: int | None, columns: int | None, choice: dict[int, int]
) -> None:
    """Names of modes, and a line wherever a block begins, unless these would hide everything."""
    text: Any = {"fontsize": 8, "parse_math": False}
    panel.set_xticks([])
    panel.set_yticks([])
    for axis, label, line in (
        (rows, panel.set_ylabel, panel.axhline),
        (columns, panel.set_xlabel, panel.axvline),
    ):
        if axis is not None:
            label(f"{_name(node.modes[axis])}={node.array.shape[axis]}", **text)
            if len(node.borders[axis]) <= _MOST_BORDERS:
                for border in node.borders[axis]:
                    line(border - 0.5, color=_BORDER, linewidth=0.9)
    if choice:
        names = (f"{_name(node.modes[axis])}[{index}]" for axis, index in choice.items())
        panel.set_title(", ".join(names), **text)


def _some(choices: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All of them, or as many as fit, evenly over all of them."""
    if len(choices) <= _MOST_PANELS:
        return choices
    step = (len(choices) - 1) / (_MOST_PANELS - 1)
    return [choices[round(k * step)] for k in range(_MOST_PANELS)]


def _heading(name: str, node: Node, n_shown: int, n_all: int) -> str:
    sizes = " \N{MULTIPLICATION SIGN} ".join(map(str, node.array.shape)) or "a number"
    kind = ", absolute values" if np.iscomplexobj(node.array) else ""
    part = f", {n_shown} of {n_all} slices" if n_shown < n_all else ""
    return f"{_name(name)}: {sizes}{kind}{part}"
