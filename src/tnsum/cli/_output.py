"""What the commands print: tables on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

import click

from tnsum.topology import printable

if TYPE_CHECKING:
    from rich.console import Console


class Stopped(click.ClickException):
    """The user has stopped the command; the message says what there is."""


class OutputError(click.ClickException):
    """The standard output takes no more."""


class Output:
    """An output stream that says what failed when it cannot be written to.

    The system says only why, as it does of every file. A reader that has gone is left to click.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, as the stream does."""
        with _faults_told():
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush, as the stream does."""
        with _faults_told():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _faults_told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"The output cannot be written: {error.strerror}.") from error


def say(text: str = "", end: str = "\n") -> None:
    """Print text as it is, in the output's own encoding; click puts another in the place of ASCII."""
    sys.stdout.write(f"{text}{end}")
    sys.stdout.flush()


def _console() -> Console:
    """Where tables go. Off a terminal lines are as long as they are: nobody wants them folded."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 100_000
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> None:
    """A table; columns whose names begin with `#` hold numbers and stand on the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = _console()
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else None, pad_edge=False)
    for name in columns:
        right = name.startswith("#")
        shown = Text(printable(name.lstrip("#")))
        table.add_column(shown, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    with out.capture() as captured:
        out.print(table)
    lines = captured.get().splitlines()
    say("\n".join(lines if out.is_terminal else [line.rstrip() for line in lines]))
    if more:
        say(more)


def working(what: str) -> AbstractContextManager[object]:
    """A sign on the terminal, while it takes time, that something is being done."""
    out = _console()
    return out.status(what) if out.is_terminal else nullcontext()
