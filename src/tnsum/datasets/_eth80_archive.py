"""ETH-80 as one npz file: its arrays, each checked before memory is asked for it.

An npz file is a zip file of npy files, and a few kilobytes of either can ask for gigabytes. So the
dtype and the shape in each header are read first, and the data only where they are as they must be.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from tnsum._checks import checked_integer
from tnsum._memory import check_memory
from tnsum.datasets._decoding import Pixels
from tnsum.errors import NetworkError
from tnsum.topology import printable

_MOST_IMAGES = 3280
_MOST_CLASSES = 8
_MOST_LETTERS = 32
_KINDS = {"iu": "integers", "U": "text"}


def read_archive(path: Path, size: int) -> tuple[list[str], Pixels]:
    """What each image of the file shows, as ETH-80 names it, and the images, float32 from 0 to 1."""
    size = checked_integer("size", size, 1)
    with open(path, "rb") as file:
        try:
            with ZipFile(file) as archive:
                return _read(archive, size)
        # Broken files make zipfile, zlib and NumPy fail with errors of many types.
        except Exception as error:
            is_ours = isinstance(error, NetworkError)
            reason = str(error) if is_ours else f"it cannot be read ({_short(error)})"
            raise NetworkError(f"{str(path)!r} must be an npz file of ETH-80: {reason}.") from None


def _read(archive: ZipFile, size: int) -> tuple[list[str], Pixels]:
    dtype, shape = _header(archive, "images")
    n = shape[0] if shape else 0
    if dtype == np.uint8 and shape[1:] in [(side, side, 3) for side in shape[1:2]] and n > 0:
        if shape[1] != size:
            raise NetworkError(
                f"its images are of {shape[1]} x {shape[1]} pixels; size={size} came. Ask for "
                f"size={shape[1]}, or name the folder of the original images"
            )
    else:
        raise NetworkError(
            f"'images' must be uint8 of shape (n, {size}, {size}, 3); {_short(dtype)} of shape "
            f"{_short(shape)} came"
        )
    if n > _MOST_IMAGES:
        raise NetworkError(f"it may hold {_MOST_IMAGES} images; {n} came")
    check_memory(n * size * size * 3, "float32", f"{n} images", "Take a file of smaller images.")
    labels = _array(archive, "labels", "iu", (n,))
    objects = _array(archive, "objects", "iu", (n,))
    views = _array(archive, "views", "iu", (n, 2))
    classes = _array(archive, "classes", "U", (_MOST_CLASSES,))
    if not 0 <= labels.min() <= labels.max() < len(classes):
        raise NetworkError(
            f"'labels' must be positions in 'classes', from 0 to {len(classes) - 1}; they go from "
            f"{labels.min()} to {labels.max()}"
        )
    names = [
        f"{classes[label]}{number}-{polar:03}-{azimuth:03}"
        for label, number, (polar, azimuth) in zip(labels, objects, views, strict=True)
    ]
    return names, _data(archive, "images").astype(np.float32) / 255


def _array(archive: ZipFile, name: str, kind: str, shape: tuple[int, ...]) -> Pixels:
    dtype, came = _header(archive, name)
    if dtype.kind not in kind or came != shape or dtype.itemsize > 4 * _MOST_LETTERS:
        raise NetworkError(
            f"{name!r} must be {_KINDS[kind]} of shape {shape}; {_short(dtype)} of shape "
            f"{_short(came)} came"
        )
    return _data(archive, name)


def _header(archive: ZipFile, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    if f"{name}.npy" not in archive.namelist():
        raise NetworkError(f"there is no array {name!r} in it")
    with archive.open(f"{name}.npy") as file:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(file)
    return dtype, shape


def _data(archive: ZipFile, name: str) -> Pixels:
    with archive.open(f"{name}.npy") as file:
        array: Pixels = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _short(value: object) -> str:
    """What a file holds or makes fail, for a line of text."""
    return printable(str(value) or type(value).__name__)[:80]
