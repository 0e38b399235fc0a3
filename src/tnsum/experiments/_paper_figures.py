"""paper_figures: all figures of the paper in one folder, drawn anew.

The diagrams are drawn from the paper's text and captions. The figures of the experiment are those of a
run: one that is given, or a small one on objects made by a program, which says nothing of the paper's
images. Each of them tells in its heading what it is of.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tnsum._replacing import replacing
from tnsum.datasets import make_objects
from tnsum.drawing._figure import figure_of
from tnsum.drawing._paper import building_blocks, matrix_chain_sum, tucker_sum, two_networks
from tnsum.drawing._scene import Scene
from tnsum.drawing._svg import svg_of
from tnsum.errors import UnsuitableError
from tnsum.experiments._figures import (
    INK,
    accuracy_figure,
    as_inline,
    as_pdf,
    as_svg,
    confusion_figure,
    difference_figure,
)
from tnsum.experiments._page import escaped, figure, page
from tnsum.experiments._protocols import SUM
from tnsum.experiments._reproduce import reproduce
from tnsum.experiments._settings import Settings
from tnsum.experiments._splits import percent
from tnsum.experiments._stored import StoredRun, stored_run
from tnsum.storage import faults_named
from tnsum.topology import printable

_SMALL_RUN = "experiment"
_SETTINGS = Settings(("paper",), (0.05, 0.1, 0.2, 0.5, 0.8), n_splits=3)


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper: the name of its files, its caption, and its files' contents."""

    name: str
    caption: str
    is_diagram: bool
    svg: str
    pdf: bytes


_DIAGRAMS: tuple[tuple[str, str, Callable[[], Scene]], ...] = (
    ("figure1-building-blocks",
     "Fig. 1. Building blocks. Anticlockwise from the top left: scalar, vector, matrix, third-order "
     "tensor.", building_blocks),
    ("figure2-networks",
     "Fig. 2. Two networks. Left: of 16th order, contraction nodes blue, physical nodes green. Right: "
     "of 32nd order, contraction nodes blue (third order) and orange (fourth order), physical nodes "
     "green.",
     two_networks),
    ("figure3-matrix-chain-sum",
     "Fig. 3. The sum of two matrices as chains. Its nodes hold those of the summands side by side, or "
     "along the diagonal.", matrix_chain_sum),
    ("figure4-tucker-sum",
     "Fig. 4. The sum of two tensors in the Tucker format: the core superdiagonal, the factors side by "
     "side.", tucker_sum),
)  # fmt: skip


def paper_figures(
    folder: str | os.PathLike[str],
    results: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> tuple[PaperFigure, ...]:
    """All figures of the paper, drawn anew; `folder` holds each as SVG and PDF, and a page of them.

    Parameters
    ----------
    folder : path
        A new or empty folder, or one that this function wrote.
    results : path, optional
        The folder of a finished `tnsum reproduce` with the protocol *paper*, for the figures of the
        experiment. Without it a small run on objects made by a program is done first, in the folder
        `experiment` there; it says nothing of the paper's images, and its figures say so.
    progress : bool
        Show on the standard error stream how far that run is.

    Raises
    ------
    NetworkError
        `folder` cannot be written to or holds other files, or `results` is no such folder.
    """
    path = Path(folder)
    _check_folder(path)
    if results is None:
        reproduce(make_objects(5, 12), path / _SMALL_RUN, _SETTINGS, progress=progress)
        results = path / _SMALL_RUN
    run = stored_run(results)
    found = (*_diagrams(), *_of_experiment(run))
    for one in found:
        _write(path / f"{one.name}.svg", one.svg.encode("utf-8"))
        _write(path / f"{one.name}.pdf", one.pdf)
    _write(path / "index.html", _page(found).encode("utf-8"))
    return found


def _check_folder(path: Path) -> None:
    """Refuse a folder with files of somebody else's, which might have the names of ours."""
    held = {one.name for one in path.iterdir()} if path.is_dir() else set()
    held = {name for name in held if not name.startswith(".tnsum-")}
    is_ours = held <= {_SMALL_RUN} or f"{_DIAGRAMS[0][0]}.svg" in held
    if not is_ours:
        raise UnsuitableError(
            f"{printable(str(path))} must be new, empty, or of earlier figures; it holds other files, "
            f"such as {printable(min(held))}. Give another folder."
        )


def _diagrams() -> Iterator[PaperFigure]:
    for name, caption, draw in _DIAGRAMS:
        scene = draw()
        yield PaperFigure(name, caption, True, svg_of(scene), as_pdf(figure_of(scene)))


def _of_experiment(run: StoredRun) -> Iterator[PaperFigure]:
    last = run.points[-1]
    for name, caption, drawn in (
        (
            "figure5-confusion",
            f"Fig. 5. Confusion matrix of SUM, trained on {percent(last.fraction)} of the images, in "
            f"per cent.",
            confusion_figure(last.confusions[SUM], run.classes),
        ),
        ("figure6-accuracy", "Fig. 6, top. Accuracy.", accuracy_figure(run.points)),
        (
            "figure6-difference",
            "Fig. 6, bottom. Difference in accuracy to the support vector machine on pixels.",
            difference_figure(run.points),
        ),
    ):
        # What the figure is of goes with it, wherever it is put.
        drawn.suptitle(run.heading, fontsize=9, color=INK)
        yield PaperFigure(
            name, f"{caption} {run.data}.", False, as_svg(drawn).decode("utf-8"), as_pdf(drawn)
        )


def _page(figures: tuple[PaperFigure, ...]) -> str:
    intro = (
        "Drawn anew by <code>tnsum figures</code> from the text and captions of The Sum of Tensor "
        "Networks (Calvi, Kisil, Mandic)."
    )
    parts = [f"<p>{intro}</p>"]
    for one in figures:
        caption = escaped(one.caption)
        if one.is_diagram:
            # As wide as it is: a page would stretch a figure to its own width.
            parts.append(f'<div>{one.svg}<p class="quiet">{caption}</p></div>')
        else:
            parts.append(figure(as_inline(one.svg.encode("utf-8"), one.name, caption), caption))
    return page("Figures of the paper", parts)


def _write(path: Path, content: bytes) -> None:
    with faults_named(path, "saved"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content)
