"""Pictures by matplotlib and for LaTeX, entries of nodes as colours, and every error message."""

import io
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from packaging.version import Version

import tnsum
from raising import check_message, unreached
from test_drawing import HOSTILE
from tnsum import Network, NetworkError, NetworkStack, Topology
from tnsum.drawing import draw_node, to_svg, to_tikz

IMAGES = Path(__file__).parent / "images"

rng = np.random.default_rng(0).standard_normal
x = tnsum.tucker(rng((2, 2, 2)), [rng((6, 2)), rng((5, 2)), rng((4, 2))])
y = tnsum.tucker(rng((3, 3, 3)), [rng((6, 3)), rng((5, 3)), rng((4, 3))])
odd = Topology(
    {
        "A": ("i", "r", "t", "t"),
        "B": ("r", "s", "u"),
        "C": ("s", "u", "h"),
        "D": ("h",),
        "E": ("h", "o"),
    },
    ("i",),
)


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
        pyplot.close("all")


def saved(figure: Figure, kind: str) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=kind)
    return file.getvalue()


# matplotlib

# Versions of matplotlib smooth edges a little differently, but no part lacks as much as a letter.
TOLERANCE = 0.05
PICTURES: dict[str, Callable[[], Figure]] = {
    "tucker-sum": lambda: figure_of(tnsum.draw(x + 2 * y)),
    "many-summands": lambda: figure_of(tnsum.draw(tnsum.add(*[x] * 9, weights=range(9)))),
    "dark": lambda: figure_of(tnsum.draw(x, theme="dark"), "#14181d"),
    "odd": lambda: figure_of(tnsum.draw(odd)),
    "core": lambda: draw_node(x + y, "core"),
}


def figure_of(ax: Any, ground: str = "white") -> Figure:
    ax.figure.patch.set(alpha=1, facecolor=ground)
    return ax.figure  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", PICTURES)
def test_figures_look_as_they_did(name: str) -> None:
    if name == "core" and Version(mpl.__version__) < Version("3.11"):
        pytest.skip("matplotlib before 3.11 measures texts, and so arranges axes, one pixel off")
    actual, expected = image_of(PICTURES[name]()), pyplot.imread(IMAGES / f"{name}.png")
    assert actual.shape == expected.shape
    assert largest_difference(actual, expected) < TOLERANCE


def image_of(figure: Figure) -> np.ndarray[Any, Any]:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=72)
    file.seek(0)
    return np.asarray(pyplot.imread(file))


def largest_difference(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """The largest difference in colour, from 0 to 1, of small parts of two images."""
    difference = (one - other)[:, :, :3]
    sums = difference.cumsum(axis=0, dtype=float).cumsum(axis=1)
    n = 9
    parts = sums[n:, n:] - sums[n:, :-n] - sums[:-n, n:] + sums[:-n, :-n]
    return float(np.abs(parts).max() / n**2)


def test_whatever_is_missing_is_a_difference() -> None:
    ax = tnsum.draw(x + 2 * y)
    figure = figure_of(ax)
    whole = image_of(figure)
    for mark in ax.patches:
        mark.set_visible(False)
        assert largest_difference(image_of(figure), whole) > TOLERANCE
        mark.set_visible(True)
    assert largest_difference(image_of(figure), whole) == 0


def test_draw_gives_axes_as_large_as_the_picture() -> None:
    ax = tnsum.draw(x)
    view = re.search(r'width="(\d+)" height="(\d+)"', to_svg(x))
    assert view is not None
    size = tuple(ax.figure.get_size_inches() * 96)
    assert size == pytest.approx(tuple(map(float, view.groups())))
    assert ax.figure in map(pyplot.figure, pyplot.get_fignums())


def test_the_ground_is_painted_if_asked_for() -> None:
    figure = tnsum.draw(x, theme="dark").figure
    for options, corner in (({}, (1, 1, 1, 0)), ({"facecolor": "#14181d"}, (20, 24, 29, 1))):
        file = io.BytesIO()
        figure.savefig(file, format="png", **options)
        file.seek(0)
        *colour, alpha = pyplot.imread(file)[0, 0]
        assert alpha == corner[3]
        assert not alpha or [round(255 * part) for part in colour] == list(corner[:3])


def test_draw_draws_into_axes_of_others() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert tnsum.draw(x, ax=left) is left
    tnsum.draw(x + y, right, theme="dark")
    assert len(left.patches) < len(right.patches)
    assert pyplot.get_fignums() == []
    for kind, start in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        assert saved(figure, kind).startswith(start)


def test_hostile_names_are_drawn() -> None:
    nodes = {name: (name, HOSTILE[k - 1], f"i{k}") for k, name in enumerate(HOSTILE)}
    with mpl.rc_context({"text.usetex": True}):
        saved(figure_of(tnsum.draw(Topology(nodes))), "png")


# LaTeX


def test_tikz_has_every_node_and_mode() -> None:
    tikz = to_tikz(x + 2 * y)
    for text in ("core", "factor2", "i0=6", "r2=5", "weights 1, 2"):
        assert f"{{{text}}};" in tikz
    assert tikz.startswith("% Needs \\usepackage{tikz}.\n\\begin{tikzpicture}")
    assert tikz.endswith("\\end{tikzpicture}\n")
    used = set(re.findall(r"(?:draw|fill|text)=(tnsum\w+)", tikz))
    assert used <= set(re.findall(r"\\definecolor\{(tnsum\w+)\}", tikz))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a_b", r"a\_b"), ("50%", r"50\%"), ("{x}$", r"\{x\}\$"),
        ("#&~^", r"\#\&\textasciitilde{}\textasciicircum{}"), ("\\end", r"\textbackslash{}end"),
        ("Zähler", "Zähler"), ("--", "{-}{-}"), ("日", r"\resizebox{11.70bp}{!}{U+65E5}"),
        ("".join(map(chr, (0x3B1, 0x3BF, 0x3C9, 0x2082))), r"$\alpha$o$\omega$$_2$"),
        ("".join(map(chr, (0x391, 0x393, 0x3A7, 0x3A9, 0xB2))), r"A$\Gamma$X$\Omega$$^2$"),
        ("x" * 40, r"xxxxxx\dots{}xxxxx"), ("a\nb", r"a\textbackslash{}nb"),
    ],
)  # fmt: skip
def test_names_are_set_as_they_are(name: str, text: str) -> None:
    assert f"{{{text}}};\n" in to_tikz(Topology({name: ()}))


def test_braces_are_balanced_whatever_the_names() -> None:
    tikz = to_tikz(Topology({name: (f"{name}i",) for name in HOSTILE}))
    bare = re.sub(r"\\[{}]", "", tikz)
    assert bare.count("{") == bare.count("}")
    assert all(
        line.endswith(";")
        for line in tikz.splitlines()
        if line.startswith(("  \\draw", "  \\node"))
    )
    assert tikz.isascii()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_latex_sets_it(tmp_path: Path) -> None:
    greek = {chr(k): () for k in range(0x391, 0x3CA) if chr(k).isprintable()}
    others = {chr(k): () for k in (0xB2, 0xB9, *range(0x2080, 0x208A))}
    names = Topology(dict.fromkeys(HOSTILE, ()) | greek | others)
    pictures = [to_tikz(z) for z in (x + 2 * y, odd, names)]
    text = "\n\n".join(pictures)
    head = "\\documentclass{article}\n\\usepackage{tikz}\n\\begin{document}\n"
    (tmp_path / "picture.tex").write_text(f"{head}{text}\n\\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "picture.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


# entries of a node


def images(figure: Figure) -> list[np.ndarray[Any, Any]]:
    found = (
        panel.get_images() for panel in figure.axes if panel.get_xlabel() or panel.get_ylabel()
    )
    return [np.asarray(image[0].get_array()) for image in found]


def test_a_factor_is_one_panel_with_a_border_between_blocks() -> None:
    s = x + 2 * y
    figure = draw_node(s, "factor0")
    (image,) = images(figure)
    assert np.array_equal(image, s.node("factor0"))
    panel = figure.axes[0]
    assert (panel.get_ylabel(), panel.get_xlabel()) == ("i0=6", "r0=5")
    assert [line.get_xdata()[0] for line in panel.lines] == [1.5]  # type: ignore[index]
    assert figure.get_suptitle() == "factor0: 6 \N{MULTIPLICATION SIGN} 5"


def test_a_core_is_a_panel_for_each_index_of_its_third_mode() -> None:
    s = x + 2 * y
    figure = draw_node(s, "core")
    core = s.node("core")
    assert all(np.array_equal(image, core[:, :, k]) for k, image in enumerate(images(figure)))
    assert [panel.get_title() for panel in figure.axes[:5]] == [f"r2[{k}]" for k in range(5)]
    assert all(len(panel.lines) == 2 for panel in figure.axes[:5])


def test_rows_and_columns_are_contraction_modes() -> None:
    t = tnsum.tensor_train([rng((1, 3, 2)), rng((2, 3, 2)), rng((2, 3, 1))])
    figure = draw_node(t + t + t, "node1")
    panels = [panel for panel in figure.axes if panel.get_title()]
    assert [panel.get_title() for panel in panels] == ["i1[0]", "i1[1]", "i1[2]"]
    assert {(panel.get_ylabel(), panel.get_xlabel()) for panel in panels} == {("r0=6", "r1=6")}
    assert all(len(panel.lines) == 4 for panel in panels)


def test_other_nodes_are_drawn_too() -> None:
    scalar = Network({"a": (np.array(2.0), ()), "b": (rng(3), ("i",))})
    assert images(draw_node(scalar, "b"))[0].shape == (1, 3)
    assert draw_node(scalar, "a").get_suptitle() == "a: a number"
    big = Network({"A": (np.zeros((2, 3, 4, 5)), ("i", "j", "k", "l"))})
    figure = draw_node(big, "A")
    assert figure.get_suptitle().endswith("5, 12 of 20 slices")
    complex_one = Network({"A": (rng((2, 2)) * 1j, ("i", "j"))})
    assert draw_node(complex_one, "A").get_suptitle().endswith("2, absolute values")
    joined = Network.from_einsum("i,j->ij", rng(2), rng(3))
    assert images(draw_node(joined + joined, "node0"))[0].shape == (2, 2)
    odd_values = Network({"A": (np.array([[np.nan, np.inf], [1.0, 2.0]]), ("i", "j"))})
    assert len(images(draw_node(odd_values, "A"))) == 1


def test_long_arrays_fill_their_panel() -> None:
    for shape, aspect in (((5, 30), 1), ((5, 31), "auto"), ((300, 4), "auto")):
        network = Network({"A": (rng(shape), ("i", "j"))})
        assert draw_node(network, "A").axes[0].get_aspect() == aspect


def test_absolute_values_begin_with_zero() -> None:
    figure = draw_node(Network({"A": (rng((2, 2)) * 1j, ("i", "j"))}), "A")
    assert figure.axes[0].get_images()[0].get_clim()[0] == 0
    real = draw_node(Network({"A": (rng((2, 2)), ("i", "j"))}), "A")
    low, high = real.axes[0].get_images()[0].get_clim()
    assert -low == high > 0


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_nodes_stay_within_the_figure(name: str) -> None:
    figure = draw_node(Network({name: (rng((2, 2, 2)), (name, f"{name}j", "k"))}), name)
    saved(figure, "png")
    width, height = figure.canvas.get_width_height()
    texts = [figure.texts[0], *(panel.yaxis.label for panel in figure.axes)]
    for box in (text.get_window_extent() for text in texts if text.get_text()):
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        assert box.y1 <= height


def test_borders_that_would_hide_everything_are_left_out() -> None:
    s = tnsum.add(*[x] * 30)
    assert not any(panel.lines for panel in draw_node(s, "factor0").axes)


# errors

stack = NetworkStack.from_networks([x, x])
many = Topology({f"n{k}": () for k in range(2001)})
wide = Topology({"A": [f"i{k}" for k in range(10_001)]})
THINGS = "What is drawn must be a Network, NetworkStack, NetworkSum, Topology or Compression; "
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: to_svg(3), THINGS + "int came."),  # type: ignore[arg-type]
    (lambda: tnsum.draw([x]), THINGS + "list came."),  # type: ignore[arg-type]
    (lambda: to_tikz(many), "A drawing must have at most 2000 nodes and 10000 modes; 2001 nodes and 0 "
     "modes came. Draw a part of it."),
    (lambda: to_svg(wide), "A drawing must have at most 2000 nodes and 10000 modes; 1 nodes and 10001 "
     "modes came. Draw a part of it."),
    (lambda: to_svg(x, "blue"), "theme must be 'auto', 'light' or 'dark'; 'blue' came."),
    (lambda: tnsum.draw(x, ax=3), "ax must be a matplotlib Axes; int came."),  # type: ignore[arg-type]
    (lambda: draw_node(stack, "core"),  # type: ignore[arg-type]
     "Entries are drawn of a node of a Network or a NetworkSum; NetworkStack came. Of a stack take "
     "stack[k] or stack.sum()."),
    (lambda: draw_node(x, "kernel"), "A node must be one of ('core', 'factor0', 'factor1', 'factor2'); "
     "'kernel' came."),
    (lambda: draw_node(tnsum.add(*[x] * 200), "core"), "A node must have at most 4194304 entries to be "
     "drawn; 'core' has 64000000. Draw the sum of fewer networks, or a part of it: x.select(...)."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_messages(call: Callable[[], Any], message: str) -> None:
    check_message(call, NetworkError, message)


def without_matplotlib() -> None:
    hidden = {"matplotlib": None, "tnsum.drawing._figure": None, "tnsum.drawing._heat": None}
    with patch.dict(sys.modules, hidden):
        tnsum.draw(x)


def test_without_matplotlib_the_message_says_what_to_do() -> None:
    with pytest.raises(NetworkError) as raised:
        without_matplotlib()
    assert re.fullmatch(
        r"tnsum\.draw needs matplotlib, which cannot be imported \(.*\)\. Install it with "
        r"`pip install tnsum\[draw\]`; tnsum\.drawing\.to_svg does without it\.",
        str(raised.value),
    )


def test_every_raise_is_reached() -> None:
    files = (Path(tnsum.__file__).parent / "drawing").glob("*.py")
    assert not unreached(files, [*(call for call, _ in ERRORS), without_matplotlib])


def test_svg_and_tikz_need_no_matplotlib() -> None:
    code = (
        "import sys, numpy as np, tnsum; from tnsum.drawing import to_svg, to_tikz; "
        "x = tnsum.chain([np.ones((2, 2))] * 3); x._repr_html_(), to_svg(x + x), to_tikz(x.topology); "
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
