"""ETH-80: 80 objects of 8 classes, each seen from 41 directions (Leibe and Schiele, 2003).

An image says in its name what it shows, so files are found by name and the folders they lie in do not
matter: `apple1/apple1-000-000.png` in the original, `1/1/apple1-000-000.png` in another layout that is
passed around. Beside the images of an object lies a folder `maps` with their masks, which is left out.
The numbers after the object are the polar angle and the azimuth of the direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tnsum.datasets._decoding import PathLike, read_images, some
from tnsum.datasets._eth80_archive import read_archive
from tnsum.datasets._image_files import files_in, text_of
from tnsum.datasets._image_set import ImageSet
from tnsum.errors import NetworkError, UnsuitableError

if TYPE_CHECKING:
    from PIL.Image import Image

CLASSES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
# The objects of each class as the data set numbers them; among the cars some numbers are missing.
_OBJECTS = {name: tuple(range(1, 11)) for name in CLASSES}
_OBJECTS["car"] = (1, 2, 3, 5, 6, 7, 9, 11, 12, 14)
# The azimuths, in degrees, at each polar angle: from above, and around at six heights.
_AZIMUTHS = {
    0: (0,),
    22: (0, 90, 180, 270),
    35: (45, 135, 225, 315),
    45: (0, 90, 180, 270),
    66: (27, 63, 117, 153, 207, 243, 297, 333),
    68: (0, 90, 180, 270),
    90: (0, 22, 45, 68, 90, 112, 135, 158, 180, 202, 225, 248, 270, 292, 315, 338),
}
_VIEWS = [f"{polar:03}-{azimuth:03}" for polar, around in _AZIMUTHS.items() for azimuth in around]
# All images in order, and the class and the rank of the object that each shows.
_IMAGES = {
    f"{name}{number}-{view}": (label, rank)
    for label, name in enumerate(CLASSES)
    for rank, number in enumerate(_OBJECTS[name])
    for view in _VIEWS
}


def load_eth80(
    path: PathLike, size: int = 32, resample: str = "box", *, complete: bool = True
) -> ImageSet:
    """The images of ETH-80, in order of class, object and direction.

    Objects are ranked within their class: the cars, which the data set numbers 1, 2, 3, 5, 6, 7, 9, 11,
    12 and 14, are objects 0 to 9 too.

    Parameters
    ----------
    path : str or path
        The folder that holds the images, at any depth; or an npz file with arrays `images` (n, height,
        width, 3) in uint8, `labels`, `objects`, `views` (n, 2) and `classes`; or a folder that holds
        such a file named after its size, as `eth80_32.npz`, which is preferred to the images.
    size : int
        The images are brought to `size` x `size` pixels. Those of an npz file must have that size.
    resample : {"box", "nearest", "bilinear", "hamming", "bicubic", "lanczos"}
        How: `box` averages areas, the others are Pillow's. Those of an npz file are taken as they are.
    complete : bool
        Whether all 3280 images must be there. If not, some must; classes and objects are numbered as
        if they all were.

    Raises
    ------
    NetworkError
        `path` is not there, or holds no image of ETH-80; images are missing, or there twice; files
        cannot be read as images, or are not square; the npz file is damaged, or holds something else,
        or images of another size; `size` or `resample` is wrong, or the images do not fit into
        memory; Pillow is not installed.
    OSError
        A folder or the npz file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (256, 256), "red").save(Path(folder, "tomato3-090-180.png"))
    ...     data = load_eth80(folder, complete=False)
    >>> data
    ImageSet of 1 images of 32 x 32, 8 classes: ETH-80, 1 of its 3280 images
    >>> data.classes[data.labels[0]], data.objects.tolist(), data.names
    ('tomato', [2], ('tomato3-090-180.png',))
    """
    root = Path(path)
    if not root.exists():
        raise NetworkError(
            f"path must be the folder of ETH-80, or an npz file of it; {str(root)!r} does not exist."
        )
    if not root.is_dir() and not root.is_file():
        raise NetworkError(
            f"path must be the folder of ETH-80, or an npz file of it; {str(root)!r} is neither."
        )
    archive = root / f"eth80_{size}.npz" if root.is_dir() else root
    if archive.is_file():
        shown, pixels = read_archive(archive, size)
        chosen = _checked(shown, [f"image {k}" for k in range(len(shown))], archive, complete)
        names = tuple(f"{shown[k]}.png" for k in chosen)
        images = pixels[chosen]
    else:
        found, _ = files_in(root)
        files = [f for f in found if f.stem in _IMAGES and f.parent.name != "maps"]
        places = [text_of(file.relative_to(root)) for file in files]
        chosen = _checked([file.stem for file in files], places, root, complete)
        names = tuple(places[k] for k in chosen)
        images = read_images(names, [files[k] for k in chosen], size, resample, _check_square)
    labels, objects = np.array([_IMAGES[Path(name).stem] for name in names]).T
    part = "" if len(names) == len(_IMAGES) else f", {len(names)} of its {len(_IMAGES)} images"
    return ImageSet(images, labels, CLASSES, objects, names, f"ETH-80{part}")


def _checked(shown: Sequence[str], places: Sequence[str], path: Path, complete: bool) -> list[int]:
    """The positions, in order, of what is shown at those places, if all is there and nothing twice."""
    positions: dict[str, int] = {}
    for k, name in enumerate(shown):
        if name in positions:
            raise NetworkError(
                f"Each image of ETH-80 must be there once; {name!r} is there twice in {str(path)!r}: "
                f"{places[positions[name]]!r} and {places[k]!r}. Name the folder of one copy."
            )
        positions[name] = k
    missing = [repr(name) for name in _IMAGES if name not in positions]
    if len(missing) == len(_IMAGES):
        raise UnsuitableError(
            f"There must be images of ETH-80 in {str(path)!r}, named as 'apple1-000-000.png'; there "
            f"are none."
        )
    if missing and complete:
        raise NetworkError(
            f"All {len(_IMAGES)} images of ETH-80 must be in {str(path)!r}; {len(missing)} are missing: "
            f"{some(missing)}. In Python, load_eth80(..., complete=False) goes without them."
        )
    return [positions[name] for name in _IMAGES if name in positions]


def _check_square(image: Image) -> None:
    if image.width != image.height:
        raise NetworkError(
            f"it has {image.width} x {image.height} pixels; those of ETH-80 are square"
        )
