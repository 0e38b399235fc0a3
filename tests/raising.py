"""Tables of errors: the check of one row, and which `raise` of a module no row reaches."""

import ast
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tnsum import NetworkError
from tnsum.errors import UnsuitableError

# How messages begin that tell of something unsuitable, after which a command ends with exit code 2.
UNSUITABLE = re.compile(
    r"path must be a folder that holds one for each class; |'.*' must hold a folder for each class; "
    r"|Folders in '.*' must have different names; |Each folder in '.*' must hold images of one class; "
    r"|Each path must be an image or a folder of images; |There must be images of ETH-80 in "
    r"|There must be images of two classes at least; |Each class must have two images at least, "
    r"|\S+ must be new, empty, or of an earlier run; |\S+ must be of a run with the same settings; "
    r"|A fraction must leave images |Leaving out an object of every class needs two "
    r"|\S+ must be the folder of a finished "
)


def kind_of(message: str) -> type[NetworkError]:
    """The type of the error with that message, where it is of images, folders or runs."""
    return UnsuitableError if UNSUITABLE.match(message) else NetworkError


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
