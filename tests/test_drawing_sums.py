"""Pictures of sums: the blocks of the summands lie in each node as in the explicit block arrays."""

from itertools import pairwise

import numpy as np
import pytest

import tnsum
from drawn import Item, Picture, inside, overlap, overlaps, read
from tnsum import Network, NetworkStack, NetworkSum
from tnsum.drawing import to_svg
from topologies import CASES, Case, arrays


def network(case: Case, which: int) -> Network:
    nodes = {name: (array, case.nodes[name]) for name, array in arrays(case, which).items()}
    return Network(nodes, case.physical_modes)


def blocks_of(picture: Picture, name: str) -> list[Item]:
    return [block for block in picture.blocks if inside(block.box, picture.nodes[name].box)]


def layout_of_arrays(s: NetworkSum, name: str) -> str:
    """How blocks lie, by the axes along which the explicit array is larger than a summand's."""
    explicit = s.to_network()
    block = s.summands[0].arrays[name].shape
    found = explicit.arrays[name].shape
    # Modes that join components come last, with one index for each summand.
    block += (1,) * (len(found) - len(block))
    n_larger = sum(a > b for a, b in zip(found, block, strict=True))
    return ["added", "side by side"][n_larger] if n_larger < 2 else "superdiagonal"


def layout_drawn(blocks: list[Item]) -> str:
    for one, other in pairwise(blocks):
        assert one.centre[0] < other.centre[0]
        assert not overlap(one.box, other.box)
    steps = {other.centre[1] - one.centre[1] for one, other in pairwise(blocks)}
    return "superdiagonal" if min(steps) > 5 else "side by side"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("n", [2, 3])
def test_blocks_lie_as_in_the_explicit_arrays(case: Case, n: int) -> None:
    s = tnsum.add(*(network(case, k) for k in range(n)))
    picture = read(to_svg(s))
    explicit = s.to_network().topology
    assert set(picture.nodes) == set(explicit.nodes)
    assert overlaps(picture) == []
    assert len(picture.blocks) == n * len(picture.nodes)
    sizes = s.to_network().sizes
    physical = set(explicit.physical_modes)
    for mode in explicit.modes:
        kind = "physical" if mode in physical else "contraction"
        assert f"{kind} mode {mode}={sizes[mode]}" in picture.titles
    for name in explicit.nodes:
        blocks = blocks_of(picture, name)
        assert len(blocks) == n
        wanted = layout_of_arrays(s, name)
        assert picture.nodes[name].title.endswith(f"; {n} blocks {wanted}")
        assert layout_drawn(blocks) == (
            "superdiagonal" if wanted == "superdiagonal" else "side by side"
        )
        for k, block in enumerate(blocks):
            assert block.title.startswith(f"block of summand {k}")
            shape = s.summands[k].arrays[name].shape
            held = zip(case.nodes[name], shape, strict=True)
            assert all(f"{mode}={size}" in block.title for mode, size in held)


def lone(value: float) -> Network:
    return Network({"A": (np.full((2, 2), value), ("i", "j"))})


def test_the_arrays_of_a_lone_node_are_added() -> None:
    picture = read(to_svg(lone(1.0) + lone(2.0)))
    assert picture.labels.count("+") == 1
    assert picture.nodes["A"].title == "A: i=2, j=2; 2 blocks added"


def test_nothing_is_beside_the_diagonal() -> None:
    x = tnsum.chain([np.ones((2, 2))] * 3)
    picture = read(to_svg(x + x))
    outline = picture.nodes["matrix1"].box
    held = [text.text for text in picture.texts if inside(text.box, outline)]
    assert held == ["matrix1", "0", "1"]


def test_of_many_summands_the_first_and_the_last_are_drawn() -> None:
    x = tnsum.tucker(np.ones((2, 2, 2)), [np.ones((4, 2))] * 3)
    s = tnsum.add(*[x] * 10_000, weights=np.arange(10_000.0))
    picture = read(to_svg(s))
    for name in x.arrays:
        first, last = blocks_of(picture, name)
        assert first.title.startswith("block of summand 0")
        assert last.title.startswith("block of summand 9999")
        dots = [dot for dot in picture.of_role("dot") if inside(dot.box, picture.nodes[name].box)]
        assert len(dots) == 3
    assert "weights 0, …, 1e+04" in picture.labels
    assert "contraction mode r0=20000" in picture.titles
    assert overlaps(picture) == []


def test_weights_stand_in_the_node_that_holds_them() -> None:
    x = tnsum.chain([np.ones((2, 3)), np.ones((3, 2))])
    s = x - 2.5 * x + 1j * x
    picture = read(to_svg(s))
    (text,) = [item for item in picture.texts if item.text.startswith("weights")]
    assert text.text == "weights 1+0j, -2.5+0j, 0+1j"
    assert inside(text.box, picture.nodes["matrix0"].box)
    assert "block of summand 1, weight -2.5+0j: i0=2, r0=3" in picture.titles
    assert not any("weight" in item.text for item in read(to_svg(x + x)).texts)
    single = read(to_svg(3 * x))
    assert "weight 3" in single.labels
    assert len(single.blocks) == 2


def test_the_sum_of_a_stack_shows_its_weights() -> None:
    x = tnsum.chain([np.ones((2, 3)), np.ones((3, 2))])
    stack = NetworkStack.from_networks([x] * 5)
    picture = read(to_svg(stack.sum(weights=[1, 2, 3, 4, 5]) + 6 * x))
    assert "weights 1, …, 6" in picture.labels
    assert "block of summand 5, weight 6: i0=2, r0=3" in picture.titles


def test_summands_of_other_ranks_say_their_own() -> None:
    x = tnsum.chain([np.ones((2, 3)), np.ones((3, 2))])
    y = tnsum.chain([np.ones((2, 7)), np.ones((7, 2))])
    picture = read(to_svg(x + y))
    assert "block of summand 1: i0=2, r0=7" in picture.titles
    assert "r0=10" in picture.labels
