"""Finding image files in folders, in an order that does not depend on the machine."""

import os
from collections.abc import Iterator
from pathlib import Path

from tnsum.datasets._decoding import EXTENSIONS


def image_files(folder: Path) -> Iterator[Path]:
    """The image files in a folder and those below it, in order of names, links to folders left out."""
    folders = [folder]
    while folders:
        entries = [e for e in sorted(folders.pop().iterdir()) if not e.name.startswith(".")]
        yield from (e for e in entries if e.suffix.lower() in EXTENSIONS and e.is_file())
        folders += [e for e in reversed(entries) if e.is_dir() and not e.is_symlink()]


def text_of(path: Path) -> str:
    """A path with slashes, and with bytes that are no text written out, so that it can be stored."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")
