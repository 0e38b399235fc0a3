"""Finding image files in folders, in an order that does not depend on the machine."""

import os
from pathlib import Path

from tnsum.datasets._decoding import EXTENSIONS


def files_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """The image files in a folder and those below it, in order of names; and the other files.

    What an image file is, its extension says. Hidden files and links to folders are not looked at.
    """
    images: list[Path] = []
    others: list[Path] = []
    folders = [folder]
    while folders:
        entries = [e for e in sorted(folders.pop().iterdir()) if not is_hidden(e)]
        for file in filter(Path.is_file, entries):
            (images if file.suffix.lower() in EXTENSIONS else others).append(file)
        folders += [e for e in reversed(entries) if e.is_dir() and not e.is_symlink()]
    return images, others


def is_hidden(path: Path) -> bool:
    """Whether a file or folder is one that is not shown."""
    return path.name.startswith(".")


def text_of(path: Path) -> str:
    """A path with slashes, and with bytes that are no text written out, so that it can be stored."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")
