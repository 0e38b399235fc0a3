"""Showing how far long work is, when asked: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Step: TypeAlias = Callable[[], None]
"""To be called after each step."""

# How many lines are written where there is no terminal.
_LINES = 10


def unseen() -> None:
    """A step that nobody sees."""


@contextmanager
def shown(title: str, n_steps: int, is_asked: bool) -> Iterator[Step]:
    """Work of some steps, shown on the standard error stream if asked for."""
    if not is_asked:
        yield unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines(console.print, title, n_steps)
        yield lines.step
        lines.end()
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(title, total=n_steps)
        yield lambda: bars.advance(task)


class _Lines:
    """A line for every tenth of the work, and one at its end."""

    def __init__(self, write: Callable[[str], None], title: str, n_steps: int) -> None:
        self._write, self._title, self._n_steps, self._n_done = write, title, n_steps, 0

    def step(self) -> None:
        self._n_done += 1
        done, n = self._n_done, self._n_steps
        if done < n and done * _LINES // n > (done - 1) * _LINES // n:
            self._write(f"{self._title}: {done} of {n} steps")

    def end(self) -> None:
        self._write(f"{self._title}: done after {self._n_done} steps")
