"""Common factors as pictures.

For images the first two modes are rows and columns: their vectors are profiles, and the outer product
of one of each is a small picture, on which the image is projected. The vectors of the third mode mix
red, green and blue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tnsum.experiments._figures import INK, SETTINGS
from tnsum.fusion._samples import Matrix

_COLOURS = ("#3572c6", "#d07a1f", "#2a9468")
_CHANNELS = ("#d43d3d", "#2a9468", "#3572c6")


def factors_figure(factors: Sequence[Matrix]) -> Figure:
    """The common factors of images of shape (height, width, 3): each mode's vectors, outer products.

    Of each mode the first three vectors are drawn.
    """
    rows, columns, colours = (factor[:, :3] for factor in factors)
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(4.8, 7.2), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.0, 1.1))
        above: Sequence[Axes] = parts[0].subplots(3, 1)
        _profiles(above[0], rows, "rows, from top to bottom")
        _profiles(above[1], columns, "columns, from left to right")
        parts[0].legend(*above[0].get_legend_handles_labels(), ncols=3, loc="outside upper right")
        _mixtures(above[2], colours)
        grid: Any = parts[1].subplots(rows.shape[1], columns.shape[1], squeeze=False)
        for k, m in np.ndindex(*grid.shape):
            _outer_product(grid[k, m], rows[:, k], columns[:, m])
            grid[k, m].set_title(f"row {k + 1}, column {m + 1}", fontsize=8)
    return figure


def _profiles(axes: Axes, vectors: Matrix, title: str) -> None:
    for k in range(vectors.shape[1]):
        axes.plot(vectors[:, k], color=_COLOURS[k], label=f"vector {k + 1}")
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set_xticks([])
    axes.set_title(title, loc="left")


def _mixtures(axes: Axes, colours: Matrix) -> None:
    n = colours.shape[1]
    for k, channel in enumerate(_CHANNELS):
        axes.bar(np.arange(n) + 0.25 * (k - 1), colours[k], width=0.22, color=channel)
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set_xticks(range(n), [f"vector {k + 1}" for k in range(n)])
    axes.set_title("red, green and blue", loc="left")


def _outer_product(axes: Axes, row: Matrix, column: Matrix) -> None:
    product = np.outer(row, column)
    bound = float(np.abs(product).max())
    axes.imshow(product, cmap="RdBu_r", vmin=-bound, vmax=bound, interpolation="nearest")
    axes.set_axis_off()
