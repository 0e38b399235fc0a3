"""Texts of a picture: how wide they are at most, and short forms of long names.

No font is asked: widths are those of DejaVu Sans, which is wider than what browsers take for
`sans-serif`, rounded up. So a text fits into the box that is kept free for it.
"""

from __future__ import annotations

from unicodedata import east_asian_width

from tnsum.topology import printable

LINE_HEIGHT = 1.2

_ELLIPSIS = "…"
_LONGEST = 12
# Advance widths of DejaVu Sans by letter, in parts of its size, rounded up.
_CLASSES = {
    0.3: "'IJijl", 0.35: " ,./:;\\|", 0.4: "()-[]ft", 0.45: "!r", 0.5: '"*_`', 0.55: "?csz",
    0.6: "FLkvxy", 0.65: "$0123456789EPSTYabdeghnopqu{}", 0.7: "ABCKRVXZ", 0.75: "NU",
    0.8: "&DGHOQ", 0.85: "#+<=>^w~\N{MULTIPLICATION SIGN}", 0.9: "M", 1.0: "%@Wm…",
}  # fmt: skip
_WIDTHS = {letter: width for width, letters in _CLASSES.items() for letter in letters}


def width_of(text: str, size: float) -> float:
    """An upper bound of the width of a text in letters of that size."""
    return size * sum(map(_width, text))


def _width(letter: str) -> float:
    known = _WIDTHS.get(letter)
    if known is not None:
        return known
    return 1.3 if east_asian_width(letter) in "WF" else 1.0


def shortened(name: str, longest: int = _LONGEST) -> str:
    """A name without control characters, its middle left out if it is long: numbers stand at the end."""
    text = printable(name)
    if len(text) <= longest:
        return text
    end = (longest - 1) // 2
    return text[: longest - 1 - end] + _ELLIPSIS + text[len(text) - end :]
