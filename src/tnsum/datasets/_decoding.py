"""Image files as arrays of one size, whatever their format, mode and size.

Files are treated as hostile. Only formats that Pillow decodes by itself are opened (an EPS would start
another program), and the size that the header tells is checked before a pixel is decoded: a few
kilobytes can ask for gigabytes.

What comes out is red, green and blue with 8 bits each. Grey images have three equal channels, 16 bits
are rounded to 8, transparent pixels lie over white, the orientation that a camera noted is followed,
colour profiles are not. An image that is not square loses what lies outside the square at its centre,
so that nothing is stretched; what is left is resampled. `box` gives each new pixel the mean of those
it covers, which is what area averaging means.
"""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tnsum._checks import checked_integer
from tnsum._memory import check_memory
from tnsum.errors import NetworkError
from tnsum.topology import listed, printable

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels: TypeAlias = np.ndarray[Any, Any]
PathLike: TypeAlias = str | os.PathLike[str]

EXTENSIONS = (
    ".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp",
)  # fmt: skip
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
FILTERS = ("box", "nearest", "bilinear", "hamming", "bicubic", "lanczos")
MOST_PIXELS = 64 * 10**6
_SHOWN = 5


def read_images(
    names: Sequence[str],
    paths: Sequence[PathLike],
    size: int,
    resample: str,
    check: Callable[[Image], None] = lambda image: None,
) -> Pixels:
    """The images of files, float32 of shape (n, size, size, 3), from 0 to 1.

    `names` are what errors call them. `check` may refuse an image by raising a NetworkError with the
    reason. All files are tried before those that cannot be read are named, in one error.
    """
    _check_pillow()
    size = checked_integer("size", size, 1)
    if resample not in FILTERS:
        raise NetworkError(f"resample must be one of {listed(FILTERS)}; {resample!r} came.")
    check_memory(
        len(paths) * size * size * 3, "float32", f"{len(paths)} images", "Ask for a smaller size."
    )
    images = np.empty((len(paths), size, size, 3), np.float32)
    faults = []
    for image, name, path in zip(images, names, paths, strict=True):
        try:
            image[...] = _scaled(_decoded(path, check), size, resample)
        except NetworkError as error:
            faults.append(f"{name!r} ({error})")
    if faults:
        raise NetworkError(
            f"Every image file must be readable; {len(faults)} of {len(paths)} "
            f"{'is' if len(faults) == 1 else 'are'} not: "
            f"{some(faults)}. Mend them, or take them away."
        )
    images /= 255
    return images


def some(texts: list[str]) -> str:
    """The first few, and how many more there are."""
    more = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _check_pillow() -> None:
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise NetworkError(
            f"Reading images needs pillow, which cannot be imported ({error}). Install it with "
            f"`pip install pillow`."
        ) from error


def _decoded(path: PathLike, check: Callable[[Image], None]) -> Image:
    """The image in a file, in mode RGB; a NetworkError with the reason if there is none."""
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        # Odd metadata make Pillow warn; they do not matter here. Its limit on sizes is not ours.
        warnings.simplefilter("ignore")
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise NetworkError("it is not a file")
            with Image.open(path, formats=FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise NetworkError(_too_large(f"{image.width} x {image.height} pixels"))
                check(image)
                return _in_colour(image)
        except NetworkError:
            raise
        except UnidentifiedImageError:
            raise NetworkError(
                f"it is none of {', '.join(FORMATS)}, or its header is broken"
            ) from None
        except Image.DecompressionBombError:
            raise NetworkError(_too_large("more pixels than Pillow opens")) from None
        # Decoders fail on broken files with errors of many types, IndexError and struct.error too.
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise NetworkError(printable(reason)[:100]) from None


def _too_large(came: str) -> str:
    return f"it has {came}; at most {MOST_PIXELS // 10**6} million are read"


def _in_colour(image: Image) -> Image:
    """The image upright and in mode RGB."""
    from PIL import Image, ImageOps

    # What PGM files with 16 bits are opened as; in a TIFF it is 32 bits, of any range.
    has_16_bits = image.mode.startswith("I;16") or (image.mode == "I" and image.format != "TIFF")
    image = ImageOps.exif_transpose(image)
    if has_16_bits:
        values = np.asarray(image).astype(np.int64)
        image = Image.fromarray(((np.clip(values, 0, 65535) + 128) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise NetworkError(f"it is of mode {image.mode}; 8 or 16 bits a channel are read")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


def _scaled(image: Image, size: int, resample: str) -> Pixels:
    """The square at the centre of an image, resampled to that many pixels a side."""
    from PIL.Image import Resampling

    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = (left, top, left + side, top + side)
    return np.asarray(image.resize((size, size), Resampling[resample.upper()], box=square))
