"""Which `raise` of a module no call of a table of errors reaches."""

import ast
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def unreached(files: Iterable[Path], calls: Iterable[Callable[[], Any]]) -> list[tuple[str, int]]:
    """The places in `files` that raise and where no call ends: an untested message."""
    files = [file.resolve() for file in files]
    reached = set()
    for call in calls:
        try:
            call()
        except Exception as error:
            frames = [(Path(f.filename).resolve(), f.lineno)
                      for f in traceback.extract_tb(error.__traceback__)]  # fmt: skip
            reached |= set([place for place in frames if place[0] in files][-1:])
    raises = {
        (file, found.lineno)
        for file in files
        for found in ast.walk(ast.parse(file.read_text()))
        if isinstance(found, ast.Raise) and found.exc is not None
    }
    return sorted((file.name, line) for file, line in raises - reached)
