"""What the commands print: tables on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from tnsum.topology import printable

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Where to print. Off a terminal lines are as long as they are: nobody wants them folded."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 100_000
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> None:
    """A table; columns whose names begin with `#` hold numbers and stand on the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = console()
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else None, pad_edge=False)
    for name in columns:
        right = name.startswith("#")
        table.add_column(name.lstrip("#"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    if out.is_terminal:
        out.print(table)
    else:
        with out.capture() as captured:
            out.print(table)
        for line in captured.get().splitlines():
            out.print(line.rstrip())
    if more:
        out.print(more)


def working(what: str) -> AbstractContextManager[object]:
    """A sign on the terminal, while it takes time, that something is being done."""
    out = console()
    return out.status(what) if out.is_terminal else nullcontext()
