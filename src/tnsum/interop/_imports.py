"""Importing a library that only one conversion needs."""

from importlib import import_module
from typing import Any

from tnsum.errors import NetworkError


def imported(module: str, function: str) -> Any:
    """The module, or an error that says how to install its library."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        raise NetworkError(
            f"{function} needs {library}, which cannot be imported ({error}). Install it with "
            f"`pip install {library}`."
        ) from error
