"""What a file seems to be that is none of tnsum's safetensors files, by its first bytes.

A safetensors file begins with the length of its header, 8 bytes that may be any, and then the header, a
JSON object: what has no `{` there, or would have a header of absurd length, is something else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tnsum._tensor_files import MOST_HEADER_BYTES

_HEAD = 512
_IMAGE = "Its class is told by `tnsum predict MODEL {file}`"
_NUMPY = "numpy.load reads it, tnsum.decompose makes a network of an array"
_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image", _IMAGE),
    (b"\xff\xd8\xff", "a JPEG image", _IMAGE),
    (b"GIF8", "a GIF image", _IMAGE),
    (b"II*\0", "a TIFF image", _IMAGE),
    (b"MM\0*", "a TIFF image", _IMAGE),
    (b"\x93NUMPY", "an npy file of NumPy", _NUMPY),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", ""),
    (b"%PDF-", "a PDF document", ""),
    (b"\x1f\x8b", "a gzip archive", ""),
    (b"\x80\x04\x95", "a pickle of Python", "tnsum reads none: it may run any program"),
)
JSON, _EMPTY = "JSON", "empty"


@dataclass(frozen=True)
class Kind:
    """What a file seems to be, in words, and what to do with it, if there is something."""

    words: str
    advice: str = ""


def kind_of(file: str) -> Kind | None:
    """What a file seems to be; None if a safetensors file, or nothing that is known."""
    with open(file, "rb") as opened:
        head = opened.read(_HEAD)
    length = int.from_bytes(head[:8], "little")
    if length <= MOST_HEADER_BYTES and head[8:9] == b"{":
        return None
    for start, words, advice in _STARTS:
        if head.startswith(start):
            return Kind(words, advice)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return Kind("a WebP image", _IMAGE)
    if head.startswith(b"PK\x03\x04"):
        return _zip(head)
    return _text(head) if head else Kind(_EMPTY)


def _zip(head: bytes) -> Kind:
    """A zip archive is an npz file of NumPy if the first thing in it is an array."""
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    return Kind("an npz file of NumPy", _NUMPY) if name.endswith(b".npy") else Kind("a zip archive")


def _text(head: bytes) -> Kind | None:
    # The last character may be cut.
    text = head.decode("utf-8", "ignore")
    if len(text.encode()) < len(head) - 3 or not text.translate(_SPACES).isprintable():
        return None
    text = text.lstrip().lower()
    if text.startswith(("{", "[")):
        return Kind(JSON)
    if text.startswith(("<!doctype html", "<html")):
        return Kind("a page for a browser", "Open it in one")
    return Kind("an SVG image" if "<svg" in text else "text")


_SPACES = dict.fromkeys(map(ord, "\t\r\n\f\ufeff"))


def told(file: str, kind: Kind) -> str:
    """That a file holds nothing to be described, and what it is instead."""
    advice = f" {kind.advice.format(file=os.path.basename(file))}." if kind.advice else ""
    is_what = f"{'is' if kind.words == _EMPTY else 'seems to be'} {kind.words}"
    return f"{file!r} must hold networks, a classifier or results of a run; it {is_what}.{advice}"
