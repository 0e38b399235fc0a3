"""A scene as an SVG, for pages and notebooks: a string, made without any library.

Nothing in it has an id, runs, or is loaded from elsewhere, so that any number of pictures fit one page.
Colours are attributes, which every program understands. With the theme "auto" there is a style besides,
for a dark ground: that which the reader's system prefers, or the page's own choice (Jupyter, Visual
Studio Code and Sphinx themes say it in different ways).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from tnsum.drawing._palette import DARK, LIGHT, LINE_WIDTH, OUTLINE_WIDTH, Ink, palette_of
from tnsum.drawing._scene import Line, Mark, Role, Scene, Shape, Text

_FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
_DARK_PAGES = ("[data-theme=dark]", "[data-jp-theme-light=false]", ".vscode-dark")
_LIGHT_PAGES = ("[data-theme=light]", "[data-jp-theme-light=true]", ".vscode-light")
# The part of a letter's size by which a text's base line lies below its middle.
_BASE_LINE = 0.36


def svg_of(scene: Scene, theme: str = "auto") -> str:
    """The SVG of a scene; it shrinks with the page that holds it, and never grows."""
    palette, box = palette_of(theme), scene.box
    width, height = _number(box.width), _number(box.height)
    view = " ".join(map(_number, (box.left, box.top, box.width, box.height)))
    label = quoteattr(scene.description)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="{view}" '
        f'role="img" aria-label={label} class="tnsum" font-family="{_FONT}" text-anchor="middle">',
        f"<style>{_SHRINKING}{_STYLE if theme == 'auto' else ''}</style>",
    ]
    for (kind, role), marks in groupby(scene.marks, key=lambda mark: (type(mark), mark.role)):
        parts.append(_group(kind, role, palette[role]))
        parts += map(_element, marks)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>\n"])


def _group(kind: type[Mark], role: Role, ink: Ink) -> str:
    paint = f'fill="{ink.fill or "none"}"'
    if ink.line is not None:
        width = LINE_WIDTH if kind is Line else OUTLINE_WIDTH
        paint += f' stroke="{ink.line}" stroke-width="{width}"'
    return f'<g class="{_class(role)}" {paint}>'


def _element(mark: Mark) -> str:
    title = f"<title>{escape(mark.title)}</title>" if mark.title else ""
    if isinstance(mark, Line):
        (start, *others), curve = mark.points, " LQC"[len(mark.points) - 1]
        where = " ".join(f"{_number(x)},{_number(y)}" for x, y in others)
        return _closed(
            "path", f'd="M{_number(start[0])},{_number(start[1])} {curve}{where}"', title
        )
    if isinstance(mark, Shape):
        box = mark.box
        where = f'x="{_number(box.left)}" y="{_number(box.top)}"'
        size = f'width="{_number(box.width)}" height="{_number(box.height)}"'
        return _closed("rect", f'{where} {size} rx="{_number(mark.corner)}"', title)
    return _text(mark, title)


def _text(mark: Text, title: str) -> str:
    x, y = mark.centre
    where = f'x="{_number(x)}" y="{_number(y + _BASE_LINE * mark.size)}" font-size="{mark.size:g}"'
    # Letters of an unknown width are made to fit.
    fit = (
        ""
        if mark.text.isascii()
        else f' textLength="{_number(mark.box.width)}" lengthAdjust="spacingAndGlyphs"'
    )
    return f"<text {where}{fit}>{title}{escape(mark.text)}</text>"


def _closed(name: str, attributes: str, content: str) -> str:
    return f"<{name} {attributes}>{content}</{name}>" if content else f"<{name} {attributes}/>"


def _number(value: float) -> str:
    """A number with one digit behind the point, if it needs one."""
    return f"{value:.1f}".removesuffix(".0")


def _class(role: Role) -> str:
    return role.replace(" ", "-")


def _rules(palette: Mapping[Role, Ink], pages: Iterable[str]) -> str:
    found = ""
    for role, ink in palette.items():
        where = ",".join(f"{page}.tnsum .{_class(role)}" for page in pages)
        paint = f"fill:{ink.fill};" if ink.fill else ""
        found += f"{where}{{{paint}{f'stroke:{ink.line}' if ink.line else ''}}}"
    return found


def _within(pages: Iterable[str]) -> list[str]:
    return [f"{page} " for page in pages]


# Not as an attribute: programs that are no browsers would take the height to be nothing.
_SHRINKING = "@media screen{svg.tnsum{max-width:100%;height:auto}}"
_STYLE = (
    f"@media(prefers-color-scheme:dark){{{_rules(DARK, [''])}}}"
    f"{_rules(DARK, _within(_DARK_PAGES))}{_rules(LIGHT, _within(_LIGHT_PAGES))}"
)
