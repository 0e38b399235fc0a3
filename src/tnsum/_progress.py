"""Showing how far long work is, when asked: a bar on a terminal, a few plain lines elsewhere.

Steps may take long. The bar counts the seconds as well; without a terminal a thread of its own writes a
line whenever nothing has been written for a few seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Step: TypeAlias = Callable[..., None]
"""To be called after each step, with nothing or with a few words on where the work is."""

# How many lines are written for the steps where there is no terminal, and the seconds without one after
# which another line is written.
_LINES, _SILENCE = 10, 3.0


def unseen(note: str = "") -> None:
    """A step that nobody sees."""


@contextmanager
def shown(title: str, n_steps: int, is_asked: bool) -> Iterator[Step]:
    """Work of some steps, shown on the standard error stream if asked for."""
    if not is_asked:
        yield unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines(console.print, title, n_steps)
        with lines.alive():
            yield lines.step
        lines.end()
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as bars:
        task = bars.add_task(title, total=n_steps, note="")
        yield lambda note="": bars.update(task, advance=1, note=note)


class _Lines:
    """A line for every tenth of the work, one at its end, and one after each few seconds of silence."""

    def __init__(self, write: Callable[[str], None], title: str, n_steps: int) -> None:
        self._write, self._title, self._n_steps, self._n_done = write, title, n_steps, 0
        self._note, self._start = "", time.monotonic()
        self._last = self._start

    def step(self, note: str = "") -> None:
        self._n_done += 1
        self._note = f", {note}" if note else ""
        done, n = self._n_done, self._n_steps
        if done < n and done * _LINES // n > (done - 1) * _LINES // n:
            self._say(f"{done} of {n} steps{self._note}")

    def end(self) -> None:
        self._say(f"done after {self._n_done} steps{self._note}")

    def _say(self, text: str) -> None:
        self._last = time.monotonic()
        self._write(f"{self._title}: {text}")

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Work during which it is never silent for long."""
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(over,), daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(self._last + _SILENCE - time.monotonic()):
            now = time.monotonic()
            if now >= self._last + _SILENCE:
                seconds = f"{now - self._start:.0f} s"
                self._say(f"{self._n_done} of {self._n_steps} steps{self._note}, {seconds}")
