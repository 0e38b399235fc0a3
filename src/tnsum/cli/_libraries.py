"""What some commands need besides what tnsum itself does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def libraries_needed(command: str) -> Iterator[None]:
    """Imports that a command needs; one that fails is told with what to install."""
    try:
        yield
    except ImportError as error:
        raise click.ClickException(
            f"{command} needs scikit-learn, Pillow and matplotlib, of which one cannot be imported "
            f"({error}). Install them with `pip install tnsum[fusion]`."
        ) from error
