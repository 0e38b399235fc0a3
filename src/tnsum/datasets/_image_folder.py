"""A user's own images: a folder for each class, or files and folders without classes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tnsum.datasets._decoding import EXTENSIONS, PathLike, Pixels, read_images, some
from tnsum.datasets._image_files import image_files, text_of
from tnsum.datasets._image_set import ImageSet
from tnsum.errors import NetworkError
from tnsum.topology import printable


def load_image_folder(path: PathLike, size: int = 32, resample: str = "box") -> ImageSet:
    """The images of a folder that holds one folder for each class, in order of their names.

    Folders within that of a class are searched too. Hidden files, files with other extensions than
    those of images, and files that lie beside the folders of the classes are left out. A link to a
    folder is followed if it stands for a class, and not further down.

    Images may be of any size and mode: see `load_images`. Nothing is known of the objects they show,
    so each is an object of its own. One class is enough here; a classifier needs two.

    Parameters
    ----------
    path : str or path
    size : int
        The images are brought to `size` x `size` pixels.
    resample : {"box", "nearest", "bilinear", "hamming", "bicubic", "lanczos"}
        How: `box` averages areas, the others are Pillow's.

    Raises
    ------
    NetworkError
        `path` is no folder, holds no folder, or a folder in it holds no image; files cannot be read
        as images, all of which are named; `size` or `resample` is wrong, or the images do not fit into
        memory; Pillow is not installed.
    OSError
        A folder cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, colour in [("lemons", "yellow"), ("plums", "purple")]:
    ...         Path(folder, name).mkdir()
    ...         Image.new("RGB", (64, 48), colour).save(Path(folder, name, "one.png"))
    ...     data = load_image_folder(folder, size=8)
    >>> data.classes, data.names, data.images.shape
    (('lemons', 'plums'), ('lemons/one.png', 'plums/one.png'), (2, 8, 8, 3))
    """
    root = Path(path)
    if not root.is_dir():
        raise NetworkError(f"path must be a folder that holds one for each class; {_came(root)}.")
    folders = [folder for folder in sorted(root.iterdir()) if _is_class(folder, root)]
    if not folders:
        n_images = sum(1 for _ in image_files(root))
        raise NetworkError(
            f"{str(root)!r} must hold a folder for each class; it holds {n_images} images and no "
            f"folder. Put the images of each class into a folder named after it."
        )
    files = {folder.name: list(image_files(folder)) for folder in folders}
    classes = tuple(text_of(Path(name)) for name in files)
    if len(set(classes)) < len(classes):
        twice = next(name for name in classes if classes.count(name) > 1)
        raise NetworkError(
            f"Folders in {str(root)!r} must have different names; two read {twice!r}, one of which is "
            f"no UTF-8. Rename one of them."
        )
    empty = [repr(name) for name, found in files.items() if not found]
    if empty:
        raise NetworkError(
            f"Each folder in {str(root)!r} must hold images of one class; there are none in "
            f"{some(empty)}. Add images ({', '.join(EXTENSIONS)}), or take the folder away."
        )
    paths = [file for found in files.values() for file in found]
    names = tuple(text_of(file.relative_to(root)) for file in paths)
    counts = [len(found) for found in files.values()]
    return ImageSet(
        images=read_images(names, paths, size, resample),
        labels=np.repeat(np.arange(len(counts)), counts),
        classes=classes,
        objects=np.concatenate([np.arange(count) for count in counts]),
        names=names,
        source=f"images in the folder {printable(text_of(Path(root.resolve().name)))!r}",
    )


def load_images(
    paths: Sequence[PathLike], size: int = 32, resample: str = "box"
) -> tuple[Pixels, tuple[str, ...]]:
    """The images in files and folders, float32 of shape (n, size, size, 3) from 0 to 1, and their names.

    A file is read whatever its extension; a folder is searched, and the folders in it, in order of
    names. Names begin as the path did that came.

    Images may be of any size and mode. Grey ones get three equal channels, 16 bits are rounded to 8,
    transparent pixels lie over white, the orientation that a camera noted is followed; of one that is
    not square the square at its centre is taken. Of several frames the first is read. Images of more
    than 64 million pixels are refused before they are decoded.

    Parameters
    ----------
    paths : sequence of str or path
    size, resample
        As in `load_image_folder`.

    Raises
    ------
    NetworkError
        `paths` is empty or a single string, or one of them is not there or holds no image; files
        cannot be read as images, all of which are named; `size` or `resample` is wrong, or the images
        do not fit into memory; Pillow is not installed.
    OSError
        A folder cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (40, 30), 51).save(Path(folder, "grey.png"))
    ...     images, names = load_images([folder], size=2)
    >>> images[0, 0, 0].tolist(), Path(names[0]).name
    ([0.20000000298023224, 0.20000000298023224, 0.20000000298023224], 'grey.png')
    """
    if isinstance(paths, str | os.PathLike) or not paths:
        raise NetworkError(f"paths must be a sequence of at least one path; {paths!r} came.")
    files: list[Path] = []
    for path in map(Path, paths):
        found = list(image_files(path)) if path.is_dir() else [path]
        if not found or not path.exists():
            raise NetworkError(f"Each path must be an image or a folder of images; {_came(path)}.")
        files += found
    names = tuple(text_of(file) for file in files)
    return read_images(names, files, size, resample), names


def _came(path: Path) -> str:
    """What is wrong with a path, in words."""
    if not path.exists():
        return f"{str(path)!r} does not exist"
    return f"{str(path)!r} holds no image" if path.is_dir() else f"{str(path)!r} is a file"


def _is_class(folder: Path, root: Path) -> bool:
    """Whether it is a folder to be read: not a hidden one, nor a link to one that holds it."""
    if folder.name.startswith(".") or not folder.is_dir():
        return False
    return not root.resolve().is_relative_to(folder.resolve())
