"""Showing how far a run is: a bar with the time left on a terminal, a line for each split elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tnsum.experiments._outcomes import Outcome
from tnsum.experiments._protocols import PROTOCOLS, WIDTHS
from tnsum.experiments._splits import Split


@contextmanager
def shown_splits(
    splits: Sequence[Split], n_done: int, is_asked: bool
) -> Iterator[Callable[[Outcome], None]]:
    """A function to be called with each outcome; shows on the standard error stream if asked for.

    `splits` are those to be done; `n_done` others have been.
    """
    if not is_asked:
        yield lambda outcome: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    n_all = n_done + len(splits)
    if not splits:
        console.print(
            f"All {n_all} splits are there already; only tables and figures are made anew."
        )
    if not splits or not console.is_terminal:
        lines = _Lines(console.print, n_done, n_all)
        yield lines.show
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bars:
        # Steps are as long as they take, or the time left would be that of the small splits.
        task = bars.add_task("", total=sum(_cost(split) for split in splits))
        lines = _Lines(lambda text: bars.update(task, description=text), n_done, n_all)

        def show(outcome: Outcome) -> None:
            lines.show(outcome)
            bars.advance(task, _cost(outcome.split))

        bars.update(task, description=f"{n_done} of {n_all} splits")
        yield show


class _Lines:
    """A line for each outcome."""

    def __init__(self, write: Callable[[str], None], n_done: int, n_all: int) -> None:
        self._write, self._n_done, self._n_all = write, n_done, n_all

    def show(self, outcome: Outcome) -> None:
        self._n_done += 1
        accuracies = (f"{name} {100 * outcome.accuracy(name):.1f}" for name in outcome.methods)
        self._write(
            f"{self._n_done} of {self._n_all}: {outcome.split.title}: {', '.join(accuracies)}"
        )


def _cost(split: Split) -> float:
    """How long a split takes, roughly, compared with others."""
    fraction = 0.9 if split.fraction is None else split.fraction
    n_kernels = 3 * len(WIDTHS) if PROTOCOLS[split.protocol].is_tuned else 1
    return (0.01 + fraction**2) * (2 + n_kernels)
