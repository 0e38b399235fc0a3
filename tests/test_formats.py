"""Each format against an einsum written by hand, with its documented names."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tnsum
from oracle import relative_error
from tnsum import Network, Topology
from topologies import CASES, DTYPES, Case

Array = NDArray[Any]


def rand(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).uniform(0.5, 1.5, shape)


def names(x: Network) -> dict[str, str]:
    """The modes of each node, in one string."""
    return {name: " ".join(modes) for name, modes in x.topology.nodes.items()}


def agrees(x: Network, equation: str, *arrays: Array) -> bool:
    wanted = np.einsum(equation, *arrays)
    return x.shape == wanted.shape and relative_error(x.contract(), wanted) < 1e-13


def numbered(prefix: str, n: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{k}" for k in range(n))


# chain


@pytest.mark.parametrize("n", [1, 2, 5])
def test_chain_is_the_product_of_its_matrices(n: int) -> None:
    sizes = (3, 2, 4, 1, 5, 2)[: n + 1]
    matrices = [rand(a, b, seed=k) for k, (a, b) in enumerate(pairwise(sizes))]
    x = tnsum.chain(matrices)
    wanted = np.linalg.multi_dot(matrices) if n > 1 else matrices[0]
    assert relative_error(x.contract(), wanted) < 1e-13
    assert x.physical_modes == ("i0", "i1")
    assert list(x.arrays) == [f"matrix{k}" for k in range(n)]
    assert x.topology.contraction_modes == numbered("r", n - 1)
    assert all(x.arrays[f"matrix{k}"] is matrices[k] for k in range(n))


def test_chain_names() -> None:
    x = tnsum.chain([rand(2, 3), rand(3, 4), rand(4, 5)])
    assert names(x) == {"matrix0": "i0 r0", "matrix1": "r0 r1", "matrix2": "r1 i1"}


# tucker, cp


@pytest.mark.parametrize(
    "equation",
    ["a,ia->i", "ab,ia,jb->ij", "abc,ia,jb,kc->ijk", "abcd,ia,jb,kc,ld->ijkl",
     "abcde,ia,jb,kc,ld,me->ijklm"],
)  # fmt: skip
def test_tucker_is_the_core_times_a_factor_in_each_mode(equation: str) -> None:
    order = len(equation.split("->")[1])
    ranks, sizes = (2, 3, 1, 2, 3)[:order], (4, 2, 3, 5, 2)[:order]
    core = rand(*ranks)
    factors = [
        rand(size, rank, seed=n) for n, (size, rank) in enumerate(zip(sizes, ranks, strict=True))
    ]
    x = tnsum.tucker(core, factors)
    assert agrees(x, equation, core, *factors)
    assert x.physical_modes == numbered("i", order)
    factor_modes = {f"factor{n}": f"i{n} r{n}" for n in range(order)}
    assert names(x) == {"core": " ".join(numbered("r", order)), **factor_modes}
    assert x.topology.is_tree


@pytest.mark.parametrize("equation", ["ir->i", "ir,jr->ij", "ir,jr,kr->ijk", "ir,jr,kr,lr->ijkl"])
def test_cp_shares_one_mode_and_takes_weights(equation: str) -> None:
    order = len(equation.split("->")[1])
    factors = [rand(size, 3, seed=size) for size in (4, 2, 3, 5)[:order]]
    weights = np.array([1.0, -2.0, 0.5])
    x, weighted = tnsum.cp(factors), tnsum.cp(factors, weights)
    assert agrees(x, equation, *factors)
    assert agrees(weighted, "r," + equation, weights, *factors)
    assert names(x) == {f"factor{n}": f"i{n} r" for n in range(order)}
    assert x.physical_modes == numbered("i", order)
    assert x.topology == weighted.topology
    np.testing.assert_array_equal(factors[0], rand(4, 3, seed=4))


def test_cp_weights_do_not_change_the_precision() -> None:
    factors = [rand(2, 3).astype("float32"), rand(4, 3).astype("float32")]
    weights = np.array([1.0, -2.0, 0.5])
    assert tnsum.cp(factors, weights.astype("float32")).dtype == np.float32
    assert tnsum.cp(factors, weights).dtype == np.float32
    assert tnsum.cp(factors, np.array([1, 2, 3])).dtype == np.float32
    assert tnsum.cp(factors, 1j * weights).dtype == np.complex64


# tensor trains and rings


TRAINS = {
    "order 1": ([(1, 3, 1)], "aib->i", "i0"),
    "order 1 without boundary": ([(3,)], "i->i", "i0"),
    "order 2": ([(1, 3, 2), (2, 4, 1)], "aib,bjc->ij", "i0 r0|r0 i1"),
    "order 2 without boundary": ([(3, 2), (2, 4)], "ib,bj->ij", "i0 r0|r0 i1"),
    "order 2, one boundary": ([(1, 3, 2), (2, 4)], "aib,bj->ij", "i0 r0|r0 i1"),
    "order 4": (
        [(1, 3, 2), (2, 4, 3), (3, 2, 1), (1, 5, 1)],
        "aib,bjc,ckd,dle->ijkl",
        "i0 r0|r0 i1 r1|r1 i2 r2|r2 i3",
    ),
    "order 3 without boundary": ([(3, 2), (2, 4, 3), (3, 5)], "ib,bjc,ck->ijk",
                                 "i0 r0|r0 i1 r1|r1 i2"),
    "operator of order 1": ([(1, 2, 3, 1)], "aijb->ij", "i0 j0"),
    "operator of order 2": ([(1, 2, 3, 2), (2, 4, 2, 1)], "aixb,bjyc->ijxy", "i0 j0 r0|r0 i1 j1"),
    "operator of order 3": (
        [(1, 2, 3, 2), (2, 4, 2, 3), (3, 3, 5, 1)],
        "aixb,bjyc,ckzd->ijkxyz",
        "i0 j0 r0|r0 i1 j1 r1|r1 i2 j2",
    ),
    "operator of order 3 without boundary": (
        [(2, 3, 2), (2, 4, 2, 3), (3, 3, 5)],
        "ixb,bjyc,ckz->ijkxyz",
        "i0 j0 r0|r0 i1 j1 r1|r1 i2 j2",
    ),
}  # fmt: skip

RINGS = {
    "1": ([(2, 3, 2)], "aia->i", "r0 i0 r0"),
    "2": ([(2, 3, 4), (4, 5, 2)], "aib,bja->ij", "r0 i0 r1|r1 i1 r0"),
    "4": (
        [(2, 3, 1), (1, 4, 3), (3, 2, 2), (2, 5, 2)],
        "aib,bjc,ckd,dla->ijkl",
        "r0 i0 r1|r1 i1 r2|r2 i2 r3|r3 i3 r0",
    ),
    "operator of 1": ([(2, 3, 4, 2)], "aija->ij", "r0 i0 j0 r0"),
    "operator of 3": (
        [(2, 3, 2, 1), (1, 4, 2, 3), (3, 2, 3, 2)],
        "aixb,bjyc,ckza->ijkxyz",
        "r0 i0 j0 r1|r1 i1 j1 r2|r2 i2 j2 r0",
    ),
}


@pytest.mark.parametrize(
    ("build", "shapes", "equation", "modes"),
    [
        pytest.param(build, *row, id=f"{build.__name__} {name}")
        for build, table in ((tnsum.tensor_train, TRAINS), (tnsum.tensor_ring, RINGS))
        for name, row in table.items()
    ],
)
def test_trains_and_rings_contract_neighbours(
    build: Callable[..., Network], shapes: list[tuple[int, ...]], equation: str, modes: str
) -> None:
    cores = [rand(*shape, seed=k) for k, shape in enumerate(shapes)]
    x = build(cores)
    assert agrees(x, equation, *cores)
    assert names(x) == {f"node{k}": held for k, held in enumerate(modes.split("|"))}
    columns = numbered("j", len(cores)) if " j0" in modes else ()
    assert x.physical_modes == numbered("i", len(cores)) + columns


def test_an_operator_train_is_a_matrix() -> None:
    a, b = rand(2, 3), rand(4, 5)
    x = tnsum.tensor_train([a[None, :, :, None], b[None, :, :, None]])
    np.testing.assert_allclose(x.contract().reshape(8, 15), np.kron(a, b), rtol=1e-14)


# tree, grid


def test_tree_of_one_leaf_is_a_vector() -> None:
    leaf = rand(3)
    x = tnsum.tree(leaf)
    assert agrees(x, "i->i", leaf)
    assert names(x) == {"leaf0": "i0"}


def test_tree_of_one_level_is_a_tucker_network() -> None:
    core, leaves = rand(2, 3, 2), [rand(4, 2), rand(3, 3), rand(2, 2)]
    assert agrees(tnsum.tree((core, leaves)), "abc,ia,jb,kc->ijk", core, *leaves)


def test_tree_nests() -> None:
    root, left, right = rand(2, 3), rand(2, 3, 2), rand(3, 2, 3)
    leaves = [rand(4, 2), rand(3, 3), rand(2, 3), rand(5, 2)]
    x = tnsum.tree((root, [(left, leaves[:2]), (right, leaves[2:])]))
    assert agrees(x, "xy,abx,cdy,ia,jb,kc,ld->ijkl", root, left, right, *leaves)
    assert names(x) == {
        "inner0": "r_inner1 r_inner2",
        "inner1": "r_leaf0 r_leaf1 r_inner1",
        "leaf0": "i0 r_leaf0",
        "leaf1": "i1 r_leaf1",
        "inner2": "r_leaf2 r_leaf3 r_inner2",
        "leaf2": "i2 r_leaf2",
        "leaf3": "i3 r_leaf3",
    }
    assert x.topology.is_tree


def test_tree_may_be_unbalanced() -> None:
    root, inner, lower, only = rand(2, 3, 2), rand(2, 4, 3), rand(3, 4), rand(2, 2)
    a, b, c, d = rand(3, 2), rand(4, 2), rand(2, 3), rand(5, 2)
    x = tnsum.tree([root, (a, [inner, [b, (lower, (c,))]], (only, [d]))])
    assert agrees(x, "xyz,buy,cu,dz,ix,jb,kc,ld->ijkl", root, inner, lower, only, a, b, c, d)
    assert x.physical_modes == numbered("i", 4)


GRIDS = {
    "1x1": ([[(3,)]], "i->i"),
    "1x3": ([[(2, 3), (3, 2, 4), (3, 2)]], "ai,baj,bk->ijk"),
    "3x1": ([[(2, 3)], [(2, 3, 4)], [(3, 2)]], "ai,abj,bk->ijk"),
    # up, right, down, left, physical
    "2x3": (
        [[(2, 3, 2), (4, 2, 2, 3), (3, 4, 2)], [(3, 2, 3), (2, 3, 2, 2), (3, 3, 2)]],
        "aci,bdaj,ebk,cfl,dgfm,egn->ijklmn",
    ),
    "3x3": (
        [
            [(2, 2, 2), (1, 3, 2, 2), (2, 1, 2)],
            [(2, 3, 2, 1), (3, 1, 2, 3, 2), (2, 2, 1, 2)],
            [(2, 2, 2), (2, 3, 2, 2), (2, 3, 2)],
        ],
        "aci,bdaj,ebk,cfhl,dgpfm,eqgn,hso,ptsu,qtv->ijklmnouv",
    ),
    "operator 2x2": (
        [[(2, 3, 2, 3), (3, 2, 2, 2)], [(3, 2, 2, 3), (3, 2, 3, 2)]],
        "abiw,cajx,bdky,cdlz->ijklwxyz",
    ),
    "closed 2x2": ([[(2, 3), (3, 2)], [(3, 2), (3, 2)]], "ab,ca,bd,cd->"),
    "mixed 1x3": ([[(2, 3), (3, 2), (3, 2, 4)]], "ai,ba,bjx->ijx"),
}


@pytest.mark.parametrize(("shapes", "equation"), GRIDS.values(), ids=GRIDS)
def test_grid_joins_up_right_down_left(shapes: list[list[tuple[int, ...]]], equation: str) -> None:
    arrays = [[rand(*s, seed=9 * a + b) for b, s in enumerate(row)] for a, row in enumerate(shapes)]
    x = tnsum.grid(arrays)
    assert agrees(x, equation, *(array for row in arrays for array in row))


def test_grid_names() -> None:
    x = tnsum.grid([[np.ones((2, 2, 3)), np.ones((2, 2, 3))], [np.ones((2, 2, 3))] * 2])
    assert names(x) == {
        "node0_0": "h0_0 v0_0 i0",
        "node0_1": "v0_1 h0_0 i1",
        "node1_0": "v0_0 h1_0 i2",
        "node1_1": "v0_1 h1_0 i3",
    }
    assert x.physical_modes == numbered("i", 4)
    operator = tnsum.grid([[np.ones((2, 3, 4)), np.ones((2, 3, 4))]])
    assert operator.physical_modes == ("i0", "i1", "j0", "j1")


# all of them


BUILDERS: dict[str, Callable[[int], Network]] = {
    "chain": lambda r: tnsum.chain([rand(2, r), rand(r, r), rand(r, 3)]),
    "tucker": lambda r: tnsum.tucker(rand(r, r, r), [rand(2, r), rand(3, r), rand(4, r)]),
    "cp": lambda r: tnsum.cp([rand(2, r), rand(3, r)], rand(r)),
    "train": lambda r: tnsum.tensor_train([rand(1, 2, r), rand(r, 3, r), rand(r, 4)]),
    "ring": lambda r: tnsum.tensor_ring([rand(r, 2, r), rand(r, 3, r), rand(r, 4, r)]),
    "tree": lambda r: tnsum.tree((rand(r, r), [rand(2, r), (rand(r, r, r), [rand(3, r)] * 2)])),
    "grid": lambda r: tnsum.grid([[rand(r, r, 2), rand(r, r, 3)], [rand(r, r, 2)] * 2]),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_networks_of_one_builder_add_by_name(name: str) -> None:
    x, y = BUILDERS[name](2), BUILDERS[name](3)
    assert x.topology == y.topology
    total = x - 2 * y
    assert total.topology == x.topology
    assert relative_error(total.contract(), x.contract() - 2 * y.contract()) < 1e-13
    explicit = total.to_network()
    assert explicit.topology == x.topology
    assert relative_error(explicit.contract(), x.contract() - 2 * y.contract()) < 1e-13


# random_network


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_network_has_the_topology_sizes_and_dtype_asked_for(case: Case, dtype: str) -> None:
    topology = Topology(case.nodes, case.physical_modes)
    sizes = case.sizes | case.ranks[0]
    x = tnsum.random_network(topology, sizes, seed=3, dtype=dtype)
    assert x.topology == topology
    assert dict(x.sizes) == sizes
    assert x.dtype == dtype
    again = tnsum.random_network(topology, sizes, seed=3, dtype=dtype)
    other = tnsum.random_network(topology, sizes, seed=4, dtype=dtype)
    for name in case.nodes:
        np.testing.assert_array_equal(x.arrays[name], again.arrays[name])
        assert not np.any(x.arrays[name] == other.arrays[name])
        assert np.any(x.arrays[name].imag) == dtype.startswith("complex")


@pytest.mark.parametrize(
    "equation", ["ij->ij", "ia,abj,bk->ijk", "abc,ia,jb,kc->ijk", "aib,bjc,cka->ijk", "iab,abj->ij"]
)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_entries_of_a_random_network_have_variance_one(equation: str, dtype: str) -> None:
    inputs, output = equation.split("->")
    topology = Topology({t: tuple(t) for t in inputs.split(",")}, tuple(output))
    sizes = {mode: 5 if mode in output else 8 for mode in topology.modes}
    squares = [
        np.mean(np.abs(tnsum.random_network(topology, sizes, seed, dtype).contract()) ** 2)
        for seed in range(60)
    ]
    assert 0.8 < np.mean(squares) < 1.25


def test_one_size_may_stand_for_all_modes() -> None:
    topology = Topology({"A": ("i", "r"), "B": ("r", "j")})
    assert dict(tnsum.random_network(topology, 3).sizes) == {"i": 3, "r": 3, "j": 3}
    sizes: Any = {"i": np.int64(2), "r": np.int32(3), "j": 4}
    assert tnsum.random_network(topology, sizes).shape == (2, 4)
    assert tnsum.random_network(topology, np.int64(3)).shape == (3, 3)  # type: ignore[arg-type]
