"""Pictures as SVG: everything is there, nothing lies over anything else, and names do no harm."""

import math
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest

import tnsum
from drawn import Picture, hidden_lines, inside, measured, overlaps, read
from tnsum import Network, NetworkStack, Topology
from tnsum.drawing import _placement, to_svg
from tnsum.drawing._draw import shown_in_notebook
from tnsum.drawing._words import shortened, width_of
from topologies import CASES, arrays

Shape = tuple[int, ...]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape)


def train(n: int) -> Network:
    return tnsum.tensor_train(
        [ones(1 if k == 0 else 3, 4, 1 if k == n - 1 else 3) for k in range(n)]
    )


def operator(n: int) -> Network:
    return tnsum.tensor_train(
        [ones(1 if k == 0 else 3, 2, 2, 1 if k == n - 1 else 3) for k in range(n)]
    )


def ring(n: int) -> Network:
    return tnsum.tensor_ring([ones(3, 4, 3)] * n)


def chain(n: int) -> Network:
    return tnsum.chain([ones(3, 3)] * n)


def star(n: int) -> Network:
    return tnsum.tucker(ones(*(2,) * n), [ones(5, 2)] * n)


def cp(n: int) -> Network:
    return tnsum.cp([ones(4 + k, 3) for k in range(n)])


def tree(depth: int) -> Network:
    def below(levels: int) -> object:
        return ones(4, 2) if levels == 0 else (ones(2, 2, 2), [below(levels - 1)] * 2)

    return tnsum.tree((ones(2, 2), [below(depth - 1)] * 2))


def grid(n: int) -> Network:
    height, width = n, n + 1
    return tnsum.grid([
        [ones(*(2,) * ((a > 0) + (a < height - 1) + (b > 0) + (b < width - 1)), 3) for b in range(width)]
        for a in range(height)
    ])  # fmt: skip


FORMATS: dict[str, tuple[Callable[[int], Network], Shape]] = {
    "train": (train, (1, 2, 5, 11, 23, 100)),
    "operator": (operator, (1, 2, 6, 13)),
    "ring": (ring, (2, 3, 4, 7, 12, 20, 21, 50)),
    "chain": (chain, (1, 2, 3, 8)),
    "star": (star, (2, 3, 4, 5, 8, 12, 14, 24)),
    "cp": (cp, (1, 2, 3, 5, 8, 30)),
    "tree": (tree, (1, 2, 3, 4)),
    "grid": (grid, (2, 3, 6)),
}
STANDARD = [
    pytest.param(build, n, id=f"{name}{n}") for name, (build, ns) in FORMATS.items() for n in ns
]


def renamed(x: Network, letters: int) -> Network:
    """The same with names of so many letters, or its own if that is 0."""
    if not letters:
        return x
    names = random.Random(0)
    new = lambda k: "".join(names.choice("aimWM_0") for _ in range(letters)) + str(k)  # noqa: E731
    modes = {mode: new(k) for k, mode in enumerate(x.topology.modes)}
    return x.rename(modes, {node: new(k) for k, node in enumerate(x.arrays)})


def check_complete(picture: Picture, x: Network) -> None:
    """Every node with its modes, and every mode with its size, is in the picture."""
    sizes = x.sizes
    assert set(picture.nodes) == set(x.arrays)
    physical = set(x.physical_modes)
    lines = {line.title for line in picture.lines}
    for name, modes in x.topology.nodes.items():
        listed = ", ".join(f"{m}={sizes[m]}" for m in modes[:12])
        assert picture.nodes[name].title.startswith(f"{name}: {listed}")
        role = "physical-node" if physical & set(modes) else "contraction-node"
        assert picture.nodes[name].role == role
    for mode in x.topology.modes:
        kind = "physical" if mode in physical else "contraction"
        assert f"{kind} mode {mode}={sizes[mode]}" in lines
    assert len(lines) == len(x.topology.modes)


def check_within_view(picture: Picture) -> None:
    assert all(inside(item.box, picture.view) for item in picture.items)


@pytest.mark.parametrize("letters", [0, 1, 9, 40])
@pytest.mark.parametrize(("build", "n"), STANDARD)
def test_standard_layouts_show_everything_and_nothing_overlaps(
    build: Callable[[int], Network], n: int, letters: int
) -> None:
    x = renamed(build(n), letters)
    picture = read(to_svg(x))
    check_complete(picture, x)
    check_within_view(picture)
    assert overlaps(picture) == []
    assert hidden_lines(picture) == []
    for name in x.arrays:
        assert shortened(name) in picture.labels
    # Of every mode there is a text, not only a title.
    assert {f"{shortened(m)}={size}" for m, size in x.sizes.items()} <= set(picture.labels)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_any_topology_shows_everything_and_nothing_overlaps(case) -> None:  # type: ignore[no-untyped-def]
    nodes = {name: (array, case.nodes[name]) for name, array in arrays(case, 0).items()}
    x = Network(nodes, case.physical_modes)
    picture = read(to_svg(x))
    check_complete(picture, x)
    check_within_view(picture)
    assert overlaps(picture) == []
    assert hidden_lines(picture) == []
    # A topology alone has no sizes.
    bare = read(to_svg(x.topology))
    assert set(bare.nodes) == set(case.nodes)
    assert overlaps(bare) == []
    assert not any("=" in text for text in bare.labels)


# layouts, whatever the names


def centres(x: Network | Topology, shuffle: bool = True) -> dict[str, tuple[float, float]]:
    """The centres of nodes, drawn with other names that say nothing."""
    topology = x if isinstance(x, Topology) else x.topology
    names = [f"n{k}" for k in range(len(topology.nodes))]
    if shuffle:
        random.Random(1).shuffle(names)
    new = dict(zip(topology.nodes, names, strict=True))
    modes = {mode: f"m{k}" for k, mode in enumerate(topology.modes)}
    picture = read(to_svg(topology.rename(modes, new)))
    return {name: picture.nodes[new[name]].centre for name in topology.nodes}


def test_a_chain_lies_in_a_line() -> None:
    found = list(centres(train(7)).values())
    assert len({y for _, y in found}) == 1
    steps = np.diff([x for x, _ in found])
    assert np.allclose(steps, steps[0])
    assert steps[0] > 0


def test_physical_modes_of_a_train_hang_down_and_those_of_a_matrix_chain_go_on_to_the_side() -> (
    None
):
    hanging = read(to_svg(train(4))).of_role("physical-line")
    assert {round(line.points[-1][0] - line.points[0][0]) for line in hanging} == {0}
    assert all(line.points[-1][1] > line.points[0][1] for line in hanging)
    left, right = read(to_svg(chain(4))).of_role("physical-line")
    assert left.points[-1][0] < left.points[0][0]
    assert right.points[-1][0] > right.points[0][0]
    assert left.points[0][1] == left.points[-1][1] == right.points[-1][1]


def test_a_long_chain_goes_back_and_forth() -> None:
    found = list(centres(train(100)).values())
    rows = sorted({y for _, y in found})
    assert len(rows) == 10
    for k in range(10):
        row = found[10 * k : 10 * k + 10]
        assert {y for _, y in row} == {rows[k]}
        assert np.all(np.diff([x for x, _ in row]) * (-1) ** k > 0)


@pytest.mark.parametrize("n", [3, 4, 5, 9, 20])
def test_a_ring_lies_on_a_circle(n: int) -> None:
    found = np.array(list(centres(ring(n)).values()))
    radii = np.hypot(*(found - found.mean(axis=0)).T)
    assert np.allclose(radii, radii[0], rtol=0.01)
    steps = np.hypot(*np.diff(np.vstack([found, found[:1]]), axis=0).T)
    assert np.allclose(steps, steps[0], rtol=0.01)


@pytest.mark.parametrize("n", [3, 4, 7, 12, 20])
def test_a_tucker_network_is_a_star(n: int) -> None:
    found = centres(star(n))
    core = np.array(found.pop("core"))
    arms = np.array(list(found.values())) - core
    assert np.allclose(np.hypot(*arms.T), np.hypot(*arms[0]), rtol=0.01)
    assert np.allclose(arms.sum(axis=0), 0, atol=1)
    # Physical modes go on outwards.
    for line in read(to_svg(star(n))).of_role("physical-line"):
        (x0, y0), (x1, y1) = line.points[0], line.points[-1]
        assert (x1 - x0) * (x0 - core[0]) + (y1 - y0) * (y0 - core[1]) >= -1


def test_physical_modes_of_a_star_go_on_along_its_arms_whatever_its_nodes_hold() -> None:
    x = star(3)
    for y in (x, 2 * x, x + x, tnsum.add(x, x, x, weights=[1, 2, 3]), tnsum.add(*[x] * 100)):
        picture = read(to_svg(y))
        core = picture.nodes["core"].centre
        for line in picture.of_role("physical-line"):
            (x0, y0), (x1, y1) = line.points[0], line.points[-1]
            across = (x1 - x0) * (y0 - core[1]) - (y1 - y0) * (x0 - core[0])
            assert abs(across) < 0.02 * math.dist(core, (x0, y0)) * math.dist((x0, y0), (x1, y1))


def test_the_mode_of_a_cp_network_is_a_dot_joined_to_all_factors() -> None:
    picture = read(to_svg(cp(5)))
    (dot,) = picture.of_role("dot")
    assert dot.title == "contraction mode r=3"
    joined = [line for line in picture.lines if line.title == dot.title]
    assert len(joined) == 5
    assert all(math.dist(line.points[-1], dot.centre) < 0.2 for line in joined)


def test_a_tree_hangs_from_a_contraction_node_in_the_middle() -> None:
    found = centres(tree(3))
    assert min(found, key=lambda name: found[name][1]) == "inner0"
    for name in ("inner1", "inner4"):
        assert found["inner0"][1] < found[name][1]
    leaves = [found[f"leaf{k}"] for k in range(8)]
    assert len({y for _, y in leaves}) == 1
    assert np.all(np.diff([x for x, _ in leaves]) > 0)
    assert math.isclose(found["inner0"][0], (leaves[0][0] + leaves[-1][0]) / 2, abs_tol=0.2)


def test_a_tree_of_many_leaves_grows_to_the_right() -> None:
    found = centres(tree(5))
    leaves = [found[f"leaf{k}"] for k in range(32)]
    assert len({x for x, _ in leaves}) == 1
    assert np.all(np.diff([y for _, y in leaves]) > 0)
    assert min(found, key=lambda name: found[name][0]) == "inner0"


def grown_tree(n: int, seed: int, n_physical: int) -> Topology:
    """A tree that grew by chance, every node with physical modes."""
    chance = random.Random(seed)
    nodes = {f"n{k}": [f"i{k}_{j}" for j in range(n_physical)] for k in range(n)}
    for k in range(1, n):
        for end in (k, chance.randrange(max(0, k - 8), k)):
            nodes[f"n{end}"].append(f"r{k}")
    return Topology(nodes)


@pytest.mark.parametrize("n_physical", [1, 2])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [20, 50, 100])
def test_physical_modes_inside_a_tree_have_room(n: int, seed: int, n_physical: int) -> None:
    topology = grown_tree(n, seed, n_physical)
    picture = read(to_svg(topology))
    assert overlaps(picture) == []
    assert hidden_lines(picture) == []
    assert set(topology.physical_modes) <= set(picture.labels)


def test_a_comb_has_a_backbone_and_teeth() -> None:
    teeth = {f"t{k}": (f"s{k}", f"i{k}") for k in range(5)}
    back = {f"b{k}": [f"r{k - 1}"] * (k > 0) + [f"r{k}"] * (k < 4) + [f"s{k}"] for k in range(5)}
    found = centres(Topology({**back, **teeth}))
    assert len({found[f"b{k}"][1] for k in range(5)}) == 1
    for k in (1, 2, 3):
        assert found[f"t{k}"][0] == found[f"b{k}"][0]
        assert found[f"t{k}"][1] > found[f"b{k}"][1]


@pytest.mark.parametrize(("height", "width"), [(2, 3), (3, 3), (3, 5), (2, 9)])
def test_a_grid_is_a_grid(height: int, width: int) -> None:
    nodes = {
        f"{a},{b}": [f"v{a - 1},{b}"] * (a > 0) + [f"v{a},{b}"] * (a < height - 1)
        + [f"h{a},{b - 1}"] * (b > 0) + [f"h{a},{b}"] * (b < width - 1)
        for a in range(height) for b in range(width)
    }  # fmt: skip
    found = centres(Topology(nodes))
    xs = sorted({round(x) for x, _ in found.values()})
    ys = sorted({round(y) for _, y in found.values()})
    assert (len(ys), len(xs)) == (height, width)
    for a in range(height):
        for b in range(width):
            assert tuple(map(round, found[f"{a},{b}"])) == (xs[b], ys[a])


def test_any_other_graph_looks_the_same_every_time() -> None:
    case = next(case for case in CASES if case.name == "complete5")
    topology = Topology(case.nodes, case.physical_modes)
    assert to_svg(topology) == to_svg(topology)


def random_graph(n: int, seed: int) -> Topology:
    """A path through n nodes, and half as many further modes between any two."""
    chance = random.Random(seed)
    pairs = [(k, k + 1) for k in range(n - 1)]
    pairs += [(a, b) for a, b in (chance.sample(range(n), 2) for _ in range(n // 2))]
    nodes = {f"n{k}": [f"i{k}"] for k in range(n)}
    for number, pair in enumerate(pairs):
        for k in pair:
            nodes[f"n{k}"].append(f"r{number}")
    return Topology(nodes)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [6, 15, 30, 50, 100])
def test_lines_of_any_graph_go_around_nodes(n: int, seed: int) -> None:
    topology = random_graph(n, seed)
    picture = read(to_svg(topology))
    check_within_view(picture)
    assert overlaps(picture) == []
    # Of a hundred nodes few lines find no way, and few modes room for a text.
    n_few = n // 10 if n > 50 else 0
    assert len(hidden_lines(picture)) <= n_few
    missing = set(topology.modes) - set(picture.labels)
    assert len(missing & set(topology.physical_modes)) <= n_few


@pytest.mark.parametrize("n", [2, 33, 60])
def test_texts_beside_many_lines_between_two_nodes_lie_over_none(n: int) -> None:
    modes = tuple(f"e{k}" for k in range(n))
    picture = read(to_svg(Topology({"a": (*modes, "i", "k"), "b": (*modes, "j")}, ("i", "j", "k"))))
    assert overlaps(picture) == []
    check_within_view(picture)


def test_neighbours_in_a_honeycomb_are_nearer_than_others() -> None:
    case = next(case for case in CASES if case.name == "honeycomb")
    topology = Topology(case.nodes, case.physical_modes)
    found = centres(topology, shuffle=False)
    joined = {frozenset(topology.holders(mode)) for mode in topology.contraction_modes}
    lengths = [math.dist(*(found[name] for name in pair)) for pair in joined]
    assert max(lengths) < 1.8 * min(lengths)


def test_traces_are_loops_and_modes_summed_in_one_node_end_with_a_bar() -> None:
    picture = read(to_svg(Topology({"A": ("i", "t", "t"), "B": ("s",)}, ("i",))))
    (loop,) = [line for line in picture.lines if line.title == "contraction mode t"]
    assert loop.points[0] == loop.points[-1] == picture.nodes["A"].centre
    stem, bar = [line for line in picture.lines if line.title == "contraction mode s"]
    ends = bar.points[0], bar.points[-1]
    assert math.dist(*ends) > 5
    assert (
        math.dist(stem.points[-1], ((ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2))
        < 0.2
    )


def test_parallel_modes_are_bent_apart() -> None:
    picture = read(to_svg(Topology({"A": ("r", "s", "t"), "B": ("r", "s", "t")})))
    middles = sorted(line.points[20][1] for line in picture.lines)
    assert np.all(np.diff(middles) > 10)


def test_a_physical_mode_of_several_nodes_is_a_dot_with_a_line() -> None:
    picture = read(to_svg(Topology({"A": ("i", "r"), "B": ("j", "r")}, ("i", "j", "r"))))
    (dot,) = picture.of_role("dot")
    lines = [line for line in picture.of_role("physical-line") if line.title == "physical mode r"]
    assert len(lines) == 1
    assert math.dist(lines[0].points[0], dot.centre) < 0.2


# texts


def test_no_text_is_wider_than_the_room_kept_for_it() -> None:
    for text in (
        "node0",
        "WWWmmm@%",
        "r_inner12=300",
        "".join(map(chr, range(32, 127))),
        "\N{MULTIPLICATION SIGN} 1000…",
    ):
        assert measured(text, 11.0) <= width_of(text, 11.0)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("core", "core"), ("x" * 12, "x" * 12), ("disentangler0_15", "disent…r0_15"),
        ("a\nb", "a\\nb"), ("\u202eevil", "\\u202eevil"), ("", ""),
    ],
)  # fmt: skip
def test_long_names_lose_their_middle(name: str, short: str) -> None:
    assert shortened(name) == short


HOSTILE = [
    "<script>alert(1)</script>", "]]>&amp;\"'", "a\nb\tc", "\u202eevil\u200f", "x" * 300, "日本語" * 9,
    "שלום", "e\u0301\u0301", "", "$x_1$ \\frac{1}", "\ud800", "\x00\x1b[31m", "﷽", "👩‍👩‍👧", "\u2800",
]  # fmt: skip


def test_hostile_names_are_shown_and_do_no_harm() -> None:
    nodes = {name: (name, HOSTILE[k - 1], f"i{k}") for k, name in enumerate(HOSTILE)}
    svg = to_svg(Topology(nodes))
    assert "<script" not in svg
    assert "]]>" not in svg
    assert all(character.isprintable() or character == "\n" for character in svg)
    svg.encode("utf-8")
    picture = read(svg)
    assert len(picture.nodes) == len(HOSTILE)
    assert any("x" * 300 in title for title in picture.titles)
    check_within_view(picture)
    assert overlaps(picture) == []


def test_an_svg_can_stand_in_any_page() -> None:
    svg = to_svg(train(3))
    root = ET.fromstring(svg)
    assert not re.search(r"\bid=|href|url\(|@import|<script|\bon\w+=", svg)
    assert svg.count("http") == 1  # the name of the language
    assert root.attrib["role"] == "img"
    assert (
        root.attrib["aria-label"] == "Network of order 3, shape (4, 4, 4), float64, 60 parameters"
    )


def test_other_kinds_of_pictures_are_described_too() -> None:
    x = train(3)
    labels = [ET.fromstring(to_svg(y)).attrib["aria-label"] for y in (x.topology, x + x)]  # type: ignore[arg-type]
    assert labels == [
        "Topology of 3 nodes, order 3", "Sum of 2 networks of order 3, shape (4, 4, 4)"
    ]  # fmt: skip


# what else there is to draw


def test_networks_without_modes_or_physical_modes_and_disconnected_ones_are_drawn() -> None:
    for nodes in (
        {"a": ()},
        {"a": (), "b": ()},
        {"a": ("r",), "b": ("r",)},
        {"a": ("i",), "b": ("j", "r"), "c": ("r",)},
    ):
        picture = read(to_svg(Topology(nodes)))
        assert set(picture.nodes) == set(nodes)
        assert overlaps(picture) == []
        check_within_view(picture)


@pytest.mark.parametrize("n", [5, 9, 12, 40])
def test_a_lone_node_of_many_modes_is_a_fan(n: int) -> None:
    topology = Topology({"A": [f"i{k}" for k in range(n)]})
    picture = read(to_svg(topology))
    assert overlaps(picture) == []
    assert set(topology.modes) <= set(picture.labels)


def test_texts_of_crowded_pictures_thin_out_and_titles_stay() -> None:
    modes = {f"n{a}": [f"r{min(a, b)}_{max(a, b)}" for b in range(13) if a != b] for a in range(13)}
    picture = read(to_svg(Topology(modes)))
    assert len({line.title for line in picture.lines}) == 78
    assert overlaps(picture) == []


def test_a_thousand_nodes_are_drawn() -> None:
    long = {f"n{k}": (f"r{k}", f"i{k}", f"r{k + 1}") for k in range(1000)}
    picture = read(to_svg(Topology(long)))
    assert len(picture.nodes) == 1000


def test_a_stack_is_outlines_behind_one_another() -> None:
    x = star(3)
    arrays = {name: np.stack([array] * 1000) for name, array in x.arrays.items()}
    stack = NetworkStack(x.topology, arrays)
    picture = read(to_svg(stack))
    assert "\N{MULTIPLICATION SIGN} 1000" in picture.labels
    assert len(picture.of_role("behind")) == 2 * len(picture.nodes)
    check_complete(picture, x)
    assert overlaps(picture) == []
    assert len(read(to_svg(stack[:1])).of_role("behind")) == 0


def test_a_compression_is_drawn_as_its_network() -> None:
    found = tnsum.compress(train(4) + train(4))
    assert to_svg(found) == to_svg(found.network)


# notebooks


def test_notebooks_show_pictures() -> None:
    x = train(3)
    stack = NetworkStack.from_networks([x, x])
    for y in (x, x.topology, x + x, stack, tnsum.compress(x)):
        assert y._repr_svg_() == y._repr_html_() == to_svg(y)  # type: ignore[union-attr]


def test_notebooks_show_text_where_a_picture_would_take_long() -> None:
    large = Topology({f"n{k}": (f"i{k}",) for k in range(201)})
    assert shown_in_notebook(large) is None
    assert large._repr_html_() is None
    assert Topology({"A": [f"i{k}" for k in range(1001)]})._repr_svg_() is None


@pytest.mark.parametrize(("n", "most"), [(6, 8), (12, 3), (20, 1)])
def test_few_nodes_with_many_modes_are_not_drawn_again_and_again(
    n: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []
    board = _placement._board
    monkeypatch.setattr(_placement, "_board", lambda *a: drawn.append(a) or board(*a))
    pairs = [(a, b) for a in range(n) for b in range(a)]
    nodes = {f"n{k}": [f"{a},{b}" for a, b in pairs if k in (a, b)] for k in range(n)}
    picture = read(to_svg(Topology(nodes)))
    assert {line.title for line in picture.lines} == {f"contraction mode {a},{b}" for a, b in pairs}
    assert 1 <= len(drawn) <= most


# themes


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_told_from_their_ground(theme: str) -> None:
    from tnsum.drawing._palette import GROUNDS, palette_of

    palette = palette_of(theme)
    texts = [palette[role].fill for role in ("text", "size")]
    fills = [ink.fill for role, ink in palette.items() if "node" in role or "block" in role]
    for text in texts:
        for ground in (GROUNDS[theme], *fills):
            assert text
            assert ground
            assert contrast(text, ground) >= 4.5
    for role in ("contraction line", "physical line"):
        assert contrast(str(palette[role].line), GROUNDS[theme]) >= 3


def test_themes_differ_in_colours_only() -> None:
    x = train(3) + train(3)
    light, dark, auto = (to_svg(x, theme) for theme in ("light", "dark", "auto"))
    bare = [re.sub(r"#[0-9a-f]{6}|<style>.*</style>", "", svg) for svg in (light, dark, auto)]
    assert bare[0] == bare[1] == bare[2]
    assert light != dark
    assert "prefers-color-scheme:dark" in auto
    assert "prefers-color-scheme" not in light + dark
    assert re.sub("<style>.*</style>", "", auto) == re.sub("<style>.*</style>", "", light)
    for page in ("[data-theme=dark]", "[data-jp-theme-light=false]", ".vscode-dark"):
        assert page in auto
