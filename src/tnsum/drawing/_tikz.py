"""A scene as a tikzpicture, for papers that are set with LaTeX in their own fonts."""

from __future__ import annotations

from tnsum.drawing._palette import LIGHT, LINE_WIDTH, OUTLINE_WIDTH
from tnsum.drawing._scene import Line, Mark, Point, Role, Scene, Shape, Text

_POINTS_PER_PIXEL = 0.75
_BASE_LINE = 0.36
# Greek letters in the order of their numbers, and what capitals are that LaTeX has no other letter for.
_GREEK = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
    "varsigma sigma tau upsilon varphi chi psi omega"
)
_LIKE_LATIN = "AB--EZH-IK-MN-O-P--TY-X--"


def _maths() -> dict[str, str]:
    """Greek letters, and numbers that stand higher or lower, as LaTeX has them."""
    found = {}
    for k, (name, latin) in enumerate(zip(_GREEK.split(), _LIKE_LATIN, strict=True)):
        capital = rf"$\{name.removeprefix('var').title()}$"
        found[chr(0x391 + k)] = capital if latin == "-" else latin
        found[chr(0x3B1 + k)] = "o" if name == "omicron" else rf"$\{name}$"
    for digit in range(10):
        high = {1: 0xB9, 2: 0xB2, 3: 0xB3}.get(digit, 0x2070 + digit)
        found |= {chr(high): f"$^{digit}$", chr(0x2080 + digit): f"$_{digit}$"}
    return found


_ESCAPED = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"{\char34}",
    "…": r"\dots{}", "\N{MULTIPLICATION SIGN}": r"$\times$", "-": "{-}", "'": "{'}", "`": "{`}",
    **_maths(),
}  # fmt: skip
# The letters of Latin-1 that every LaTeX can put together in its oldest encoding.
_LATIN = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ"


def tikz_of(scene: Scene) -> str:
    """The tikzpicture of a scene, after a line that says what it needs."""
    lines = [
        r"% Needs \usepackage{tikz}.",
        r"\begin{tikzpicture}[x=0.75bp, y=-0.75bp, font=\sffamily]",
    ]
    for role, ink in LIGHT.items():
        for part, colour in (("fill", ink.fill), ("line", ink.line)):
            if colour is not None:
                name = _colour(role, part)
                lines.append(rf"  \definecolor{{{name}}}{{HTML}}{{{colour[1:].upper()}}}")
    lines += [f"  {_command(mark)}" for mark in scene.marks]
    return "\n".join([*lines, r"\end{tikzpicture}", ""])


def _command(mark: Mark) -> str:
    if isinstance(mark, Line):
        return _line(mark)
    return _shape(mark) if isinstance(mark, Shape) else _text(mark)


def _line(mark: Line) -> str:
    start, *middle, end = mark.points
    if len(middle) == 1:
        # A curve of second order as one of third, which is all that tikz has.
        middle = [_third_of_the_way(middle[0], end) for end in (start, end)]
    controls = " and ".join(map(_point, middle))
    joined = f".. controls {controls} .." if middle else "--"
    return rf"\draw[{_stroke(mark.role, LINE_WIDTH)}] {_point(start)} {joined} {_point(end)};"


def _shape(mark: Shape) -> str:
    box = mark.box
    options = [f"rounded corners={_points(mark.corner)}", *_paint(mark.role)]
    corners = _point((box.left, box.top)), _point((box.right, box.bottom))
    return rf"\path[{', '.join(options)}] {corners[0]} rectangle {corners[1]};"


def _text(mark: Text) -> str:
    size, (x, y) = _POINTS_PER_PIXEL * mark.size, mark.centre
    font = rf"\sffamily\fontsize{{{size:.1f}bp}}{{{1.2 * size:.1f}bp}}\selectfont"
    options = f"anchor=base, inner sep=0, text={_colour(mark.role, 'fill')}, font={font}"
    # The base line of all texts lies alike, whatever letters they have.
    place = _point((x, y + _BASE_LINE * mark.size))
    return rf"\node[{options}] at {place} {{{_escaped(mark)}}};"


def _point(point: Point) -> str:
    return f"({point[0]:.1f}, {point[1]:.1f})"


def _third_of_the_way(start: Point, end: Point) -> Point:
    return (2 * start[0] + end[0]) / 3, (2 * start[1] + end[1]) / 3


def _paint(role: Role) -> list[str]:
    ink = LIGHT[role]
    fill = [f"fill={_colour(role, 'fill')}"] if ink.fill else []
    return fill + ([_stroke(role, OUTLINE_WIDTH)] if ink.line else [])


def _stroke(role: Role, width: float) -> str:
    return f"draw={_colour(role, 'line')}, line width={_points(width)}"


def _colour(role: Role, part: str) -> str:
    return "tnsum" + f"{role} {part}".title().replace(" ", "").replace("-", "")


def _points(pixels: float) -> str:
    return f"{_POINTS_PER_PIXEL * pixels:.2f}bp"


def _escaped(text: Text) -> str:
    """A text that LaTeX sets as it is, or in numbers as wide as it would be."""
    words = "".join(map(_letter, text.text))
    if all(map(_is_known, text.text)):
        return words
    # tikz brings graphicx along.
    return rf"\resizebox{{{_points(text.box.width)}}}{{!}}{{{words}}}"


def _is_known(letter: str) -> bool:
    return letter in _ESCAPED or letter.isascii() or letter in _LATIN


def _letter(letter: str) -> str:
    return _ESCAPED.get(letter, letter) if _is_known(letter) else f"U+{ord(letter):04X}"
