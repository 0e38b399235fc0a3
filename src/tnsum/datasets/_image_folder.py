"""A user's own images: a folder for each class, or files and folders without classes."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tnsum.datasets._decoding import EXTENSIONS, PathLike, Pixels, read_images, some
from tnsum.datasets._image_files import files_in, is_hidden, text_of
from tnsum.datasets._image_set import ImageSet
from tnsum.errors import NetworkError, UnsuitableError
from tnsum.topology import printable

# As ETH-80 names its images: the object, and the two angles from which it is seen.
_VIEW = re.compile(r"(.+)-\d{3}-\d{3}")


def load_image_folder(path: PathLike, size: int = 32, resample: str = "box") -> ImageSet:
    """The images of a folder that holds one folder for each class, in order of their names.

    Folders within that of a class are searched too. Files with other extensions than those of images,
    and files that lie beside the folders of the classes, are left out with a warning; hidden files
    without. A link to a folder is followed if it stands for a class, and not further down.

    Which object an image shows is known where all lie in folders within that of their class, one for
    each object; or are named as those of ETH-80, `cup3-066-153.png`, the object before two angles.
    Otherwise each is an object of its own.

    Images may be of any size and mode: see `load_images`. One class is enough here; a classifier needs
    two.

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

    Warns
    -----
    UserWarning
        Files were left out; it says how many, and names the first.

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
        raise UnsuitableError(
            f"path must be a folder that holds one for each class; {_came(root)}."
        )
    folders = [folder for folder in sorted(root.iterdir()) if _is_class(folder, root)]
    if not folders:
        n = len(files_in(root)[0])
        raise UnsuitableError(
            f"{str(root)!r} must hold a folder for each class; it holds {n or 'no'} "
            f"image{'s' * (n != 1)} and no folder. Put the images of each class into a folder named "
            f"after it."
        )
    found = {folder: files_in(folder) for folder in folders}
    _check_folders(root, {folder.name: len(images) for folder, (images, _) in found.items()})
    paths = [file for images, _ in found.values() for file in images]
    names = tuple(text_of(file.relative_to(root)) for file in paths)
    beside = [file for file in sorted(root.iterdir()) if file.is_file() and not is_hidden(file)]
    others = [*beside, *(file for _, files in found.values() for file in files)]
    _warn_of(
        [text_of(file.relative_to(root)) for file in others], ", and lies in the folder of a class"
    )
    shown = [file.relative_to(folder) for folder, (images, _) in found.items() for file in images]
    labels = np.repeat(np.arange(len(found)), [len(images) for images, _ in found.values()])
    return ImageSet(
        images=read_images(names, paths, size, resample),
        labels=labels,
        classes=tuple(text_of(Path(folder.name)) for folder in folders),
        objects=_numbered(labels, _objects(shown)),
        names=names,
        source=f"images in the folder {printable(text_of(Path(root.resolve().name)))!r}",
    )


def _check_folders(root: Path, n_images: Mapping[str, int]) -> None:
    """Raise unless each folder, by name, has images, and a name that no other one reads as."""
    classes = [text_of(Path(name)) for name in n_images]
    if len(set(classes)) < len(classes):
        twice = next(name for name in classes if classes.count(name) > 1)
        raise UnsuitableError(
            f"Folders in {str(root)!r} must have different names; two read {twice!r}, one of which is "
            f"no UTF-8. Rename one of them."
        )
    empty = [repr(name) for name, n in n_images.items() if not n]
    if empty:
        raise UnsuitableError(
            f"Each folder in {str(root)!r} must hold images of one class; there are none in "
            f"{some(empty)}. Add images ({', '.join(EXTENSIONS)}), or take the folder away."
        )


def _objects(files: Sequence[Path]) -> list[str]:
    """What tells which object each file shows, by its path within the folder of its class."""
    if all(len(file.parts) > 1 for file in files):
        return [file.parts[0] for file in files]
    views = [view for file in files if (view := _VIEW.fullmatch(file.stem))]
    if len(views) == len(files):
        return [view[1] for view in views]
    return [str(k) for k in range(len(files))]


def _numbered(labels: Pixels, objects: Sequence[str]) -> Pixels:
    """The objects of each class numbered from 0 on, in order of appearance."""
    numbers: list[dict[str, int]] = [{} for _ in range(labels.max() + 1)]
    pairs = [(numbers[label], name) for label, name in zip(labels, objects, strict=True)]
    return np.array([known.setdefault(name, len(known)) for known, name in pairs])


def load_images(
    paths: Sequence[PathLike], size: int = 32, resample: str = "box"
) -> tuple[Pixels, tuple[str, ...]]:
    """The images in files and folders, float32 of shape (n, size, size, 3) from 0 to 1, and their names.

    A file is read whatever its extension; a folder is searched, and the folders in it, in order of
    names, for files with the extensions of images: others are left out with a warning, hidden ones
    without. Names begin as the path did that came.

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

    Warns
    -----
    UserWarning
        Files were left out; it says how many, and names the first.

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
    others: list[Path] = []
    for path in map(Path, paths):
        found, left_out = files_in(path) if path.is_dir() else ([path], [])
        if not found or not path.exists():
            raise UnsuitableError(
                f"Each path must be an image or a folder of images; {_came(path)}."
            )
        files += found
        others += left_out
    _warn_of([text_of(file) for file in others])
    names = tuple(text_of(file) for file in files)
    return read_images(names, files, size, resample), names


def _warn_of(left_out: Sequence[str], where: str = "") -> None:
    """Say which files are not read: somebody may think that they are."""
    if left_out:
        n = len(left_out)
        warnings.warn(
            f"{n} file{'s were' if n > 1 else ' was'} left out, the first is {left_out[0]!r}: what is "
            f"read ends in {', '.join(EXTENSIONS)}{where}.",
            stacklevel=3,
        )


def _came(path: Path) -> str:
    """What is wrong with a path, in words."""
    if not path.exists():
        return f"{str(path)!r} does not exist"
    kinds = ", ".join(EXTENSIONS)
    return f"{str(path)!r} {f'holds none ({kinds})' if path.is_dir() else 'is a file'}"


def _is_class(folder: Path, root: Path) -> bool:
    """Whether it is a folder to be read: not a hidden one, nor a link to one that holds it."""
    if is_hidden(folder) or not folder.is_dir():
        return False
    return not root.resolve().is_relative_to(folder.resolve())
