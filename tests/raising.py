"""Tables of errors: the check of one row, and which `raise` of a module no row reaches."""

import ast
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tnsum import NetworkError


def check_message(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    """Assert that a call ends with that error, of that type and with that whole text."""
    with pytest.raises(Exception) as raised:
        call()
    assert type(raised.value) is error
    assert str(raised.value) == message


def check_missing(library: str, module: str, call: Callable[[], Any]) -> None:
    """Assert that a call, when a module cannot be imported, says how to install its library."""
    advice = rf"needs {library}, .*`pip install {library}`\.$"
    with patch.dict(sys.modules, {module: None}), pytest.raises(NetworkError, match=advice):
        call()


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
