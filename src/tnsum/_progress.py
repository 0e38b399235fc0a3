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
        yield _in_lines(console.print, title, n_steps)
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(title, total=n_steps)
        yield lambda: bars.advance(task)


def _in_lines(write: Callable[[str], None], title: str, n_steps: int) -> Step:
    n_done = 0

    def step() -> None:
        nonlocal n_done
        n_done += 1
        if n_done <= n_steps and n_done * _LINES // n_steps > (n_done - 1) * _LINES // n_steps:
            write(f"{title}: {n_done} of {n_steps} steps")

    return step
