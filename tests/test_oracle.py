"""The oracle against formulas written by hand, and the table against what it claims."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from numpy.typing import NDArray

from oracle import dense, dense_sum, probe, probe_sum, relative_error, vectors
from topologies import (
    BY_NAME,
    CASES,
    DTYPES,
    EQUAL_RANKS,
    MAX_WORK,
    Case,
    any_cases,
    arrays,
    random_cases,
)

MODERATE = [case for case in CASES if case.order <= 12]
LARGE = [case for case in CASES if case.order > 12]

# Written apart from the table, with letters of their own.
EQUATIONS = {
    "lone_matrix": "xy->xy",
    "lone_vector": "x->x",
    "lone_trace": "xaya->xy",
    "lone_summed_once": "xa->x",
    "two_nodes": "xa,ay->xy",
    "parallel_modes": "xab,bya->xy",
    "trace": "xbab,ay->xy",
    "summed_once": "xab,ay->xy",
    "chain5": "xa,ab,bc,cd,dy->xy",
    "tensor_train5": "va,awb,bxc,cyd,dz->vwxyz",
    "operator_train6": "uva,awxb,byz->uvwxyz",
    "ring4": "dwa,axb,byc,czd->wxyz",
    "ring2": "bxa,ayb->xy",
    "star2": "ab,xa,yb->xy",
    "star3": "abc,xa,yb,zc->xyz",
    "star4": "abcd,wa,xb,yc,zd->wxyz",
    "star5": "abcde,va,wb,xc,yd,ze->vwxyz",
    "cp3": "xa,ya,za->xyz",
    "cp4": "wa,xa,ya,za->wxyz",
    "hyperedge_and_modes": "xab,yabc,zacd,d->xyz",
    "shared_kept": "xz,yz->xyz",
    "shared_kept_and_summed": "xza,yza->xyz",
    "kept_twice": "xxa,ay->xy",
    "tree8": "ab,acd,bef,cgh,dij,ekl,fmn,sg,th,ui,vj,wk,xl,ym,zn->stuvwxyz",
    "comb": "ae,abf,bcg,ch,esi,ftj,guk,hvl,iw,jx,ky,lz->stuvwxyz",
    "grid3x3": "rag,sabh,tbi,ucgj,vcdhk,wdil,xej,yefk,zfl->rstuvwxyz",
    "complete5": "abcdv,aefgw,behix,cfhjy,dgijz->vwxyz",
    "disconnected_chains": "wa,ax,yb,bz->wxyz",
    "disconnected_vectors": "x,y,z->xyz",
    "disconnected_scalar": "xa,,ay->xy",
    "disconnected_closed": "xa,bc,ay,cb->xy",
    "closed_ring": "ab,bc,ca->",
    "closed_tree": "abc,a,b,cd,d->",
    "permuted": "xab,ayc,bcz->zxy",
}

# "Only modes that are summed over connect": a shared mode that is kept does not.
DISCONNECTED = {
    "shared_kept",
    "disconnected_chains",
    "disconnected_vectors",
    "disconnected_scalar",
    "disconnected_closed",
}
WITHOUT_CONTRACTION_MODE = {"lone_matrix", "lone_vector", "shared_kept", "disconnected_vectors"}


def _dense(case: Case, which: int = 0, seed: int = 0, dtype: str = "complex128") -> NDArray[Any]:
    return dense(case.nodes, case.physical_modes, arrays(case, which, seed, dtype))


def _of(name: str, which: int = 0) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    case = BY_NAME[name]
    return _dense(case, which), list(arrays(case, which, 0, "complex128").values())


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("case", MODERATE, ids=lambda case: case.name)
def test_dense_equals_einsum_by_hand(case: Case, which: int) -> None:
    got, operands = _of(case.name, which)
    expected = np.einsum(EQUATIONS[case.name], *operands, optimize=len(operands) > 5)
    assert got.shape == case.shape
    assert relative_error(got, expected) < 1e-13


def test_dense_equals_formulas_without_einsum() -> None:
    got, (a, b, c, d, e) = _of("chain5")
    assert relative_error(got, a @ b @ c @ d @ e) < 1e-13
    got, (core, a, b, c) = _of("star3")
    expected = core
    for factor in (a, b, c):
        expected = np.tensordot(expected, factor, (0, 1))
    assert relative_error(got, expected) < 1e-13
    got, (a, b, c) = _of("cp3")
    terms = [np.multiply.outer(np.outer(a[:, r], b[:, r]), c[:, r]) for r in range(a.shape[1])]
    assert relative_error(got, np.add.reduce(terms)) < 1e-13
    got, (a,) = _of("lone_trace")
    assert relative_error(got, np.trace(a, axis1=1, axis2=3)) < 1e-13
    got, (a,) = _of("lone_summed_once")
    assert relative_error(got, a.sum(1)) < 1e-13
    got, (a, b) = _of("shared_kept")
    assert relative_error(got, a[:, None, :] * b[None, :, :]) < 1e-13
    got, (a, b) = _of("kept_twice")
    assert relative_error(got, np.array([a[i, i] @ b for i in range(len(a))])) < 1e-13
    got, (a, scalar, b) = _of("disconnected_scalar")
    assert relative_error(got, scalar * (a @ b)) < 1e-13
    got, (a, b, c) = _of("closed_ring")
    assert relative_error(got, np.trace(a @ b @ c)) < 1e-13


def test_dense_of_complete_graph_equals_plain_loops() -> None:
    case = BY_NAME["complete5"]
    values = arrays(case, 1)
    ranks = case.ranks[1]
    entry = (2, 1, 3, 0, 1)
    at = dict(zip(case.physical_modes, entry, strict=True))
    total = 0.0
    for where in np.ndindex(*ranks.values()):
        at.update(zip(ranks, where, strict=True))
        total += prod(values[n][tuple(at[m] for m in modes)] for n, modes in case.nodes.items())
    assert relative_error(_dense(case, 1, dtype="float64")[entry], total) < 1e-12


@pytest.mark.parametrize("case", [c for c in MODERATE if c.order], ids=lambda case: case.name)
def test_probe_equals_dense_with_vectors_applied(case: Case) -> None:
    values = arrays(case, 1, 0, "complex128")
    keep = case.physical_modes[::-2]
    expected, left = dense(case.nodes, case.physical_modes, values), list(case.physical_modes)
    for mode, vector in vectors(case.sizes, set(left) - set(keep), 7).items():
        expected = np.tensordot(expected, vector, (left.index(mode), 0))
        left.remove(mode)
    expected = expected.transpose([left.index(mode) for mode in keep])
    assert relative_error(probe(case.nodes, case.physical_modes, values, keep, 7), expected) < 1e-12


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_probe_of_large_cases(case: Case, which: int) -> None:
    values = arrays(case, which, 0, "complex128")
    keep = case.physical_modes[:: case.order // 8]
    # Without its modes of rank 1 the network has few enough letters for np.einsum.
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    letter = {m: next(letters) for m in case.contraction_modes if case.ranks[which][m] > 1}
    letter |= {mode: next(letters) for mode in keep}
    applied = vectors(case.sizes, set(case.physical_modes) - set(keep), 5)
    inputs, operands = [], []
    for node, modes in case.nodes.items():
        array, left = values[node], list(modes)
        for mode in modes:
            if mode in applied:
                array = np.tensordot(array, applied[mode], (left.index(mode), 0))
                left.remove(mode)
        kept = [mode for mode in left if mode in letter]
        operands.append(array.reshape([array.shape[left.index(mode)] for mode in kept]))
        inputs.append("".join(letter[mode] for mode in kept))
    equation = ",".join(inputs) + "->" + "".join(letter[mode] for mode in keep)
    expected = np.einsum(equation, *operands, optimize="greedy")
    assert expected.shape == (2,) * 8
    assert relative_error(probe(case.nodes, case.physical_modes, values, keep, 5), expected) < 1e-12


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_probe_is_cheap_with_ranks_of_a_sum(case: Case) -> None:
    ranks = {mode: sum(r[mode] for r in case.ranks) for mode in case.contraction_modes}
    added = Case(case.name, case.nodes, case.physical_modes, case.sizes, (ranks,))
    start = perf_counter()
    probe(case.nodes, case.physical_modes, arrays(added, 0), case.physical_modes[:8], 0)
    assert perf_counter() - start < 5


def test_sums_take_weights_once() -> None:
    for name in ("two_nodes", "cp3", "disconnected_chains", "closed_ring"):
        case = BY_NAME[name]
        summands = [arrays(case, which, 0, "complex128") for which in (0, 1, 2)]
        weights = [2.0, -1, 0.5j]
        x, y, z = (dense(case.nodes, case.physical_modes, summand) for summand in summands)
        got = dense_sum(case.nodes, case.physical_modes, summands, weights)
        assert relative_error(got, 2 * x - y + 0.5j * z) < 1e-14
        keep = case.physical_modes[:1]
        probed = probe_sum(case.nodes, case.physical_modes, summands, weights, keep, 3)
        parts = [probe(case.nodes, case.physical_modes, s, keep, 3) for s in summands]
        assert relative_error(probed, 2 * parts[0] - parts[1] + 0.5j * parts[2]) < 1e-14
    with pytest.raises(ValueError, match="zip"):
        dense_sum(case.nodes, case.physical_modes, summands, [1.0, 2.0])
    with pytest.raises(ValueError, match="need at least one"):
        dense_sum(case.nodes, case.physical_modes, [], [])


def test_oracle_computes_in_double_precision() -> None:
    for dtype, wide in zip(DTYPES, ("float64", "float64", "complex128", "complex128"), strict=True):
        assert _dense(BY_NAME["chain5"], dtype=dtype).dtype == wide


def test_oracle_refuses_what_does_not_fit() -> None:
    nodes = {"A": ("i", "r"), "B": ("r", "j")}
    good = {"A": np.ones((2, 3)), "B": np.ones((3, 2))}
    with pytest.raises(ValueError, match="sizes 3 and 1"):
        dense(nodes, ("i", "j"), {**good, "B": np.ones((1, 2))})
    with pytest.raises(ValueError, match="has shape"):
        dense(nodes, ("i", "j"), {**good, "B": np.ones(3)})
    with pytest.raises(ValueError, match="equal names"):
        dense(nodes, ("i", "j"), {"A": good["A"]})
    with pytest.raises(ValueError, match="distinct modes"):
        dense(nodes, ("i", "k"), good)
    with pytest.raises(ValueError, match="must be physical"):
        probe(nodes, ("i", "j"), good, ("r",), 0)
    with pytest.raises(ValueError, match="4294967296 entries"):
        _dense(BY_NAME["mera"])


def test_vectors_depend_on_seed_and_name_only() -> None:
    sizes = {"i": 3, "j": 3, "k": 2}
    first, again = vectors(sizes, ["i", "j", "k"], 1), vectors(sizes, ["j"], 1)
    assert np.array_equal(first["j"], again["j"])
    assert not np.array_equal(first["i"], first["j"])
    assert not np.array_equal(first["j"], vectors(sizes, ["j"], 2)["j"])
    # Fixed for good: equal in another process too.
    assert first["k"] == pytest.approx([0.493258637703644, 0.5310294085893661], rel=1e-12)


def test_relative_error() -> None:
    expected = np.array([[3.0, 4.0]])
    assert relative_error(expected, expected) == 0
    assert relative_error(0 * expected, expected) == 1
    assert relative_error(expected + np.array([[0, 5e-3]]), expected) == pytest.approx(1e-3)
    assert relative_error(1e200 * 1.5 * expected, 1e200 * expected) == pytest.approx(0.5)
    for got, wrong, reason in [
        (expected[0], expected, "shapes differ"),
        (expected.T, expected, "shapes differ"),
        (1.0, np.ones(1), "shapes differ"),
        (0 * expected, 0 * expected, "all zeros"),
        (np.ones(0), np.ones(0), "all zeros"),
        (expected, expected * np.nan, "not finite"),
        (expected, expected * np.inf, "not finite"),
        (expected * np.nan, expected, "not finite"),
    ]:
        with pytest.raises(AssertionError, match=reason):
            relative_error(got, wrong)


def _check_valid(case: Case) -> None:
    held = {mode for modes in case.nodes.values() for mode in modes}
    assert set(case.sizes) == set(case.physical_modes) <= held
    assert len(case.physical_modes) == len(set(case.physical_modes))
    assert set(case.contraction_modes) == held - set(case.physical_modes)
    assert len(case.ranks) >= 3
    for ranks in case.ranks:
        assert set(ranks) == set(case.contraction_modes)
    assert case.ranks[EQUAL_RANKS[0]] == case.ranks[EQUAL_RANKS[1]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_table(case: Case) -> None:
    _check_valid(case)
    assert case.is_connected == (case.name not in DISCONNECTED)
    assert (not case.contraction_modes) == (case.name in WITHOUT_CONTRACTION_MODE)
    if case.contraction_modes:
        assert case.ranks[0] != case.ranks[1]
    assert all(2 <= size <= 4 for size in case.sizes.values())
    assert all(1 <= rank <= 3 for ranks in case.ranks for rank in ranks.values())
    if 1 < case.order <= 12:
        assert len(set(case.shape)) > 1


def test_names_are_unique_and_all_moderate_cases_have_an_equation() -> None:
    assert len(BY_NAME) == len(CASES)
    assert set(EQUATIONS) == {case.name for case in MODERATE}
    assert set(BY_NAME) >= DISCONNECTED | WITHOUT_CONTRACTION_MODE


def _contraction_nodes(case: Case) -> list[tuple[str, ...]]:
    return [modes for modes in case.nodes.values() if not set(modes) & set(case.physical_modes)]


def test_honeycomb() -> None:
    case = BY_NAME["honeycomb"]
    assert case.order == 16
    assert {len(modes) for modes in case.nodes.values()} == {3}
    assert len(case.nodes) - len(_contraction_nodes(case)) == 16
    assert len(case.contraction_modes) + case.order > 52
    # A plane connected graph has (modes - nodes + 1) inner faces, here the 12 hexagons ...
    assert len(case.contraction_modes) - len(case.nodes) + 1 == 12
    # ... and no loop shorter than 6: any two joined nodes have no other short way.
    near = {n: {k for k in case.nodes if k != n and _joined(case, n, k)} for n in case.nodes}
    for start, end in ((n, k) for n in near for k in near[n]):
        reached = {start}
        for _ in range(4):
            reached |= {k for n in reached for k in near[n] if {n, k} != {start, end}}
        assert end not in reached


def _joined(case: Case, a: str, b: str) -> bool:
    return bool(set(case.nodes[a]) & set(case.nodes[b]))


def test_mera() -> None:
    case = BY_NAME["mera"]
    assert case.order == 32
    contraction_nodes = _contraction_nodes(case)
    assert Counter(map(len, contraction_nodes)) == {3: 16 + 8 + 4, 4: 8 + 4 + 1}
    assert len(case.nodes) - len(contraction_nodes) == 16
    held = Counter(mode for modes in case.nodes.values() for mode in modes)
    assert {held[mode] for mode in case.contraction_modes} == {2}
    assert {held[mode] for mode in case.physical_modes} == {1}
    # Disentanglers join neighbours: no two nodes share more than one mode.
    for a, b in combinations(case.nodes.values(), 2):
        assert len(set(a) & set(b)) <= 1
    for ranks in case.ranks:
        assert sum(rank == 2 for rank in ranks.values()) >= 10


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_have_the_dtype_and_the_ranks(dtype: str) -> None:
    for case in CASES:
        for which in range(len(case.ranks)):
            values = arrays(case, which, 3, dtype)
            assert list(values) == list(case.nodes)
            for node, array in values.items():
                assert isinstance(array, np.ndarray)
                assert array.dtype == dtype
                assert array.shape == case.node_shape(node, which)
                assert np.any(array.imag) == dtype.startswith("complex")


def test_arrays_differ_by_seed_and_summand_and_repeat() -> None:
    case = BY_NAME["two_nodes"]
    first = arrays(case, 0, 1)["A"]
    assert np.array_equal(first, arrays(case, 0, 1)["A"])
    assert not np.array_equal(first, arrays(case, 0, 2)["A"])
    assert not np.array_equal(first, arrays(case, EQUAL_RANKS[1], 1)["A"])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_summand_hides_another(case: Case, dtype: str) -> None:
    keep = case.physical_modes[:8]
    summands = [arrays(case, which, 0, dtype) for which in range(3)]
    probes = [probe(case.nodes, case.physical_modes, summand, keep, 0) for summand in summands]
    norms = [float(np.linalg.norm(array)) for array in probes]
    assert 1e-3 < min(norms) < max(norms) < 1e5
    assert max(norms) < 1000 * min(norms)


FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
FIND = settings(FEW, max_examples=2000, phases=[Phase.generate], database=None)


def _check_drawn(case: Case) -> None:
    _check_valid(case)
    assert case.order <= 5
    assert all(1 <= size <= 3 for ranks in (case.sizes, *case.ranks) for size in ranks.values())
    added = {mode: sum(ranks[mode] for ranks in case.ranks) for mode in case.contraction_modes}
    sizes = {**case.sizes, **added}
    assert prod(sizes.values()) <= MAX_WORK
    assert all(prod(sizes[mode] for mode in ms) <= MAX_WORK for ms in case.nodes.values())
    operands: list[Any] = []
    labels = {mode: k for k, mode in enumerate(sizes)}
    for node, array in arrays(case, 1, 0, "complex128").items():
        operands += [array, [labels[mode] for mode in case.nodes[node]]]
    expected = np.einsum(*operands, [labels[mode] for mode in case.physical_modes])
    got = _dense(case, 1)
    assert got.shape == case.shape
    assert np.linalg.norm(got - expected) <= 1e-11 * max(1.0, float(np.linalg.norm(expected)))


@FEW
@given(random_cases())
def test_random_cases(case: Case) -> None:
    assert 2 <= len(case.nodes) <= 6
    assert case.is_connected
    _check_drawn(case)


@FEW
@given(any_cases())
def test_any_cases(case: Case) -> None:
    assert 1 <= len(case.nodes) <= 6
    _check_drawn(case)


def _holders(case: Case, mode: str) -> list[int]:
    return [modes.count(mode) for modes in case.nodes.values() if mode in modes]


def _has_parallel_modes(case: Case) -> bool:
    pairs = Counter(
        tuple(node for node, modes in case.nodes.items() if mode in modes)
        for mode in case.contraction_modes
    )
    return any(n > 1 and len(pair) == 2 for pair, n in pairs.items())


@pytest.mark.parametrize(
    "has",
    [
        lambda case: any(_holders(case, mode) == [1, 1, 1] for mode in case.contraction_modes),
        lambda case: any(_holders(case, mode) == [2] for mode in case.contraction_modes),
        lambda case: any(_holders(case, mode) == [1] for mode in case.contraction_modes),
        lambda case: any(_holders(case, mode) == [1, 1] for mode in case.physical_modes),
        lambda case: any(_holders(case, mode) == [2] for mode in case.physical_modes),
        lambda case: list(case.physical_modes) != sorted(case.physical_modes),
        lambda case: not case.physical_modes,
        lambda case: case.order == 5,
        lambda case: case.ranks[0] != case.ranks[1],
        _has_parallel_modes,
    ],
    ids=[
        "hyperedge",
        "trace",
        "summed once",
        "shared and kept",
        "kept twice",
        "permuted",
        "no physical mode",
        "order 5",
        "ranks differ",
        "parallel modes",
    ],
)
def test_strategy_reaches(has: Callable[[Case], bool]) -> None:
    find(random_cases(), has, settings=FIND)


def test_strategy_reaches_disconnected() -> None:
    find(any_cases(), lambda case: not case.is_connected, settings=FIND)
    find(any_cases(), lambda case: () in case.nodes.values(), settings=FIND)
