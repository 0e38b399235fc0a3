"""SumAccumulator: what comes one by one adds up as if it had come at once, and the error is honest."""

import copy
import hashlib
import math
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tnsum
from compression_cases import (
    FAMILIES,
    Nodes,
    binary_tree,
    comb,
    decaying,
    extended,
    extended_error,
    in_bad_gauge,
    log2_norm,
    matrix_chain,
    random_sum,
    star,
    train,
    true_error,
)
from libraries import LIBRARIES_AND_DTYPES, library, network
from oracle import dense, relative_error
from raising import check_message, unreached
from test_compression import (
    CANCELLING,
    EPS,
    SHARP,
    TREES,
    fast,
    in_another_gauge,
    scaled,
    slow,
    sums,
    wide,
    wide_sum,
    with_arrays,
)
from tnsum import (
    Compression,
    ModeError,
    Network,
    NetworkError,
    NetworkStack,
    Topology,
    TopologyError,
    compress,
    tensor_train,
)
from tnsum._arrays import dtype_name
from tnsum.compression._accumulator import SumAccumulator
from topologies import BY_NAME, DTYPES, Case, arrays

EVERY_TREE = pytest.mark.parametrize("case", TREES, ids=lambda case: case.name)


def accumulator_for(x: Any, max_rank: int, seed: int = 0, dtype: str | None = None) -> Any:
    return SumAccumulator(x.topology, x.shape, max_rank, dtype or dtype_name(x.dtype), seed)


def accumulated(x: Any, max_rank: int, seed: int = 0) -> SumAccumulator:
    found: SumAccumulator = accumulator_for(x, max_rank, seed)
    found.add(x)
    return found


def held(a: SumAccumulator) -> list[Any]:
    """All that an accumulator holds, as plain values."""
    assert a._sums is not None
    pairs = [*a._sums.psi, *a._sums.omega]
    return [*(np.asarray(array) * 2.0**exponent for array, exponent in pairs), *a._sums.alone]


def are_same(a: SumAccumulator, b: SumAccumulator) -> bool:
    return a.n_summands == b.n_summands and all(map(np.array_equal, held(a), held(b)))


def are_near(a: SumAccumulator, b: SumAccumulator, precision: float) -> bool:
    """Whether both hold the same, but for rounding relative to the norms of the terms."""
    assert a._sums is not None
    assert b._sums is not None
    n = len(a._sums.omega)
    pairs = list(zip(held(a), held(b), strict=True))
    alone = a._sums.alone
    for k, (x, y) in enumerate(pairs[: len(a._sums.psi)]):
        scale = 2.0 ** alone[min(k, len(alone) - 1)]
        assert np.linalg.norm(x - y) <= 30 * precision * scale * math.sqrt(max(1, x.size / 50))
    for k, (x, y) in enumerate(pairs[len(pairs) - len(alone) - n : len(pairs) - len(alone)]):
        assert np.linalg.norm(x - y) <= 30 * precision * 2.0 ** alone[k]
    return np.allclose(alone, b._sums.alone, rtol=0, atol=1e-3)


def check(c: Compression, x: Any, tolerance: float | None, error: float) -> None:
    assert error <= c.error * (1 + 1e-6)
    if tolerance is not None:
        assert c.error <= tolerance
    assert c.error_kind == "estimate"
    assert c.method == "accumulator"
    assert c.network.physical_modes == x.physical_modes
    assert c.network.shape == x.shape
    assert c.network.dtype == x.dtype


# every tree, dtype and library


@EVERY_TREE
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_tree_and_dtype(case: Case, dtype: str) -> None:
    found = sums(case, dtype)
    keys = list(found) if dtype == "complex128" else ["stack"]
    for key in keys:
        x = found[key]
        exact = wide_sum(x)
        a = accumulated(x, max([4, *x.ranks.values()]))
        for tolerance in (SHARP[dtype], 0.3):
            c = a.compress(tolerance)
            check(c, x, tolerance, relative_error(wide(c.network), exact))
        lossless = a.compress()
        check(lossless, x, None, relative_error(wide(lossless.network), exact))
        assert lossless.error < 1e3 * EPS[dtype]
        assert lossless.network.topology == x.topology.joined


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
@pytest.mark.parametrize(
    "case_name", ["two_nodes", "tensor_train5", "tree8", "disconnected_chains"]
)
def test_every_library(name: str, dtype: str, case_name: str) -> None:
    if name == "jax" and (case_name != "two_nodes" or dtype != "float64"):
        pytest.skip("JAX compiles it for long")
    of, case = library(name), BY_NAME[case_name]
    theirs, ours = sums(case, dtype, of.convert), sums(case, dtype)
    a = accumulator_for(ours["one"], 9)
    a.add(theirs["two"], -0.5)
    a.add(theirs["stack"])
    a.add(theirs["one"].conj(), of.convert(np.asarray(2.0)))
    exact = -0.5 * wide_sum(ours["two"]) + wide_sum(ours["stack"]) + 2 * wide(ours["one"].conj())
    c = a.compress(SHARP[dtype])
    some = next(iter(c.network.arrays.values()))
    assert type(some) is type(theirs["one"]._some_array)
    assert dtype_name(some.dtype) == dtype
    values = {node: of.to_numpy(array) for node, array in c.network.arrays.items()}
    got = dense(c.network.topology.nodes, c.network.physical_modes, values)
    assert relative_error(got, exact) <= min(SHARP[dtype], c.error * (1 + 1e-6))
    b = copy.deepcopy(a)
    b.merge(a)
    assert b.n_summands == 2 * a.n_summands == 12
    twice = b.compress().network
    values = {node: of.to_numpy(array) for node, array in twice.arrays.items()}
    got = dense(twice.topology.nodes, twice.physical_modes, values)
    assert relative_error(got, 2 * exact) <= SHARP[dtype]


@pytest.mark.large
def test_no_gradient_keeps_terms_alive() -> None:
    torch = library("torch").convert(np.ones(1)).__class__
    x = decaying(train(4), 3, 2, fast, np.random.default_rng(0))
    convert = library("torch").convert
    y = with_arrays(x, {n: convert(array).requires_grad_() for n, array in x.arrays.items()})
    a = accumulator_for(x, 4)
    a.add(y, convert(np.asarray(2.0)).requires_grad_())
    c = a.compress()
    assert all(type(array) is torch for array in c.network.arrays.values())
    assert not any(array.requires_grad for array in c.network.arrays.values())
    assert not any(array.requires_grad for array, _ in (*a._sums.psi, *a._sums.omega))


@pytest.mark.large
def test_a_dtype_that_jax_has_not_switched_on() -> None:
    of = library("jax")
    import jax

    x = decaying(train(3), 3, 2, fast, np.random.default_rng(0), "float32")
    with jax.enable_x64(False):
        y = with_arrays(x, {n: of.convert(array) for n, array in x.arrays.items()})
        a = accumulator_for(x, 4, dtype="float64")
        with pytest.warns(UserWarning, match="float64"), pytest.raises(NetworkError) as raised:
            a.add(y)
    assert str(raised.value) == (
        "dtype must be one that jax has switched on; float64 came, and it makes float32 of it."
    )
    assert a.n_summands == 0


def test_terms_are_brought_to_the_dtype() -> None:
    rng = np.random.default_rng(0)
    x, y = (decaying(train(4), 3, 3, slow, rng, dtype) for dtype in ("float32", "float64"))
    z = decaying(train(4), 3, 3, slow, rng, "complex64")
    a = accumulator_for(y, 9, dtype="complex128")
    for term in (x, y, z):
        a.add(term, 1 + 2j)
    exact = (1 + 2j) * (wide(x) + wide(y) + wide(z))
    assert relative_error(wide(a.compress().network), exact) < 1e-13
    single = accumulator_for(y, 9, dtype="float32")
    for term in (x, y):
        single.add(term, np.float64(2))
    c = single.compress()
    assert c.network.dtype == np.float32
    assert relative_error(wide(c.network), 2 * (wide(x) + wide(y))) <= c.error < 1e-4


# one by one, at once, in any order, in parts


NODES = [train(5), star(3), comb(2), binary_tree(5), {"A": ("i", "j")}]


@given(st.data())
@settings(deadline=None, max_examples=15)
def test_neither_order_nor_grouping_matters(data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    nodes = data.draw(st.sampled_from(NODES))
    dtype = data.draw(st.sampled_from(["float32", "float64", "complex128"]))
    n = data.draw(st.integers(2, 6))
    terms = [decaying(nodes, 4, int(rng.integers(1, 4)), slow, rng, dtype) for _ in range(n)]
    weights = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3, n)
    once = accumulator_for(terms[0], 5)
    once.add(tnsum.add(*terms, weights=weights))
    parts = [accumulator_for(terms[0], 5) for _ in range(data.draw(st.integers(1, 3)))]
    for k in data.draw(st.permutations(range(n))):
        data.draw(st.sampled_from(parts)).add(terms[k], weights[k])
    parts = data.draw(st.permutations(parts))
    if data.draw(st.booleans()):
        for a, b in pairwise(parts):
            b.merge(a)
        whole = parts[-1]
    else:
        for a in parts[1:]:
            parts[0].merge(a)
        whole = parts[0]
    assert whole.n_summands == once.n_summands == n
    assert are_near(whole, once, EPS[dtype])
    one, other = whole.compress(), once.compress()
    both = one.error + other.error
    assert true_error(other.network, one.network) <= 2 * both


@pytest.mark.parametrize("nodes", NODES, ids=["train", "Tucker", "comb", "tree", "lone"])
def test_a_stack_is_all_its_networks(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    terms = [decaying(nodes, 4, 3, slow, rng) for _ in range(30)]
    weights = rng.standard_normal(30)
    one_by_one, at_once, in_pieces, alike = (accumulator_for(terms[0], 5) for _ in range(4))
    for x, weight in zip(terms, weights, strict=True):
        one_by_one.add(x, weight)
        alike.add(x, 0.5)
    stack = NetworkStack.from_networks(terms)
    at_once.add(stack, weights)
    monkeypatch.setattr(tnsum.compression._accumulator, "piece_size", lambda _: 1000)
    assert len(list(in_pieces._pieces(stack))) > 1 or len(nodes) == 1
    in_pieces.add(stack, list(weights))
    for a in (at_once, in_pieces):
        assert a.n_summands == 30
        assert are_near(a, one_by_one, EPS["float64"])
    in_a_sum = accumulator_for(terms[0], 5)
    in_a_sum.add(stack.sum(weights) + 0 * terms[0], 1)
    assert in_a_sum.n_summands == 31
    assert are_near(in_a_sum, one_by_one, EPS["float64"])
    equal = accumulator_for(terms[0], 5)
    equal.add(stack, 0.5)
    assert are_near(equal, alike, EPS["float64"])


def test_terms_are_matched_to_the_topology() -> None:
    rng = np.random.default_rng(2)
    x = decaying(binary_tree(4), 3, 2, slow, rng)
    names = {f"n{k}": f"leaf {k}" for k in range(4)}
    modes = {mode: f"{mode} of y" for mode in x.topology.modes}
    y = x.rename(modes, names)
    backwards = list(y.topology.nodes)[::-1]
    nodes = {name: (y.arrays[name].T, y.topology.nodes[name][::-1]) for name in backwards}
    y = Network(nodes, y.physical_modes)
    one, other = accumulated(x, 4), accumulator_for(x, 4)
    other.add(y)
    assert are_near(one, other, EPS["float64"])
    z = x.transpose()
    back = accumulator_for(x, 4)
    back.add(z)
    assert are_near(one, back, EPS["float64"])
    assert back.compress().network.topology == x.topology


@pytest.mark.parametrize(
    "nodes", [train(6), star(3), binary_tree(6)], ids=["train", "star", "tree"]
)
def test_memory_does_not_grow(nodes: Nodes) -> None:
    rng = np.random.default_rng(3)
    x = decaying(nodes, 6, 3, slow, rng)
    a = accumulator_for(x, 5)
    expected = a.n_parameters
    stack = NetworkStack.from_networks([x, decaying(nodes, 6, 3, slow, rng)] * 20)
    for term in (x, stack, x + 2 * x):
        a.add(term)
        assert sum(array.size for array, _ in (*a._sums.psi, *a._sums.omega)) == expected
    assert a.n_summands == 43


# errors: exact where ranks allow it, near the best where not, and honest


def test_exact_if_ranks_allow_it() -> None:
    rng = np.random.default_rng(4)
    for nodes, size, rank in ((train(6), 5, 3), (star(3), 20, 3), (binary_tree(7), 4, 3)):
        terms = [decaying(nodes, size, rank, slow, rng) for _ in range(4)]
        x = tnsum.add(*terms, weights=[1, -2, 0.5, 3])
        a = accumulated(x, 12)
        c = a.compress()
        assert true_error(x, c.network) <= c.error < 1e-12
        best = compress(x, method="direct")
        assert dict(c.ranks) == dict(best.ranks)
        c = accumulated(x + x, 12).compress(1e-2)
        best = compress(x, 1e-2, method="direct")
        assert all(rank <= best.ranks[mode] + 1 for mode, rank in c.ranks.items())


def all_pairs(n: int) -> NetworkStack:
    """The operators Z_i Z_j for all pairs of n sites."""
    z, one = np.diag([1.0, -1.0]), np.eye(2)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    held = {}
    for k in range(n):
        matrices = np.stack([z if k in pair else one for pair in pairs])
        left, right = (1,) * (k > 0), (1,) * (k < n - 1)
        held[f"n{k}"] = np.reshape(matrices, (-1, *left, 2, *right, 2))
    return NetworkStack(Topology({m: (*modes, f"j{m[1:]}") for m, modes in train(n).items()}), held)


def test_the_sum_over_all_pairs_has_rank_three() -> None:
    for n in (12, 40):
        stack = all_pairs(n)
        a = accumulator_for(stack, 6)
        a.add(stack)
        c = a.compress()
        assert list(c.ranks.values()) == [2, *[3] * (n - 3), 2]
        assert c.error < 1e-11
        if n == 12:
            assert true_error(stack.sum(), c.network) <= c.error


@pytest.mark.parametrize(
    ("nodes", "size", "rank"),
    [(train(12), 4, 12), (train(50), 3, 8), (star(3), 30, 5), (binary_tree(8), 4, 8),
     (matrix_chain(3), 60, 12), (comb(4), 4, 8)],
    ids=["train", "long train", "Tucker", "tree", "chain", "comb"],
)  # fmt: skip
@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_near_the_best_where_ranks_are_too_small(
    nodes: Nodes, size: int, rank: int, power: float
) -> None:
    rng = np.random.default_rng(5)
    terms = [decaying(nodes, size, rank, lambda k: (k + 1) ** -power, rng) for _ in range(5)]
    x = tnsum.add(*terms, weights=rng.standard_normal(5))
    c = accumulated(x, 8).compress()
    assert max(c.ranks.values()) == 8
    error = true_error(x, c.network)
    best = true_error(x, compress(x, max_rank=8, method="direct").network)
    assert error <= (2 if power == 0.5 else 1.7) * best
    assert error <= c.error


def check_calibration(family: str, seeds: Sequence[int]) -> tuple[list[Any], list[float]]:
    """Which of some random sums have larger errors than reported, and how much smaller they are."""
    exceeded, ratios = [], []
    for seed in seeds:
        x, how, _ = random_sum(family, seed)
        rank = how.get("max_rank") or 4 + seed % (12 if family == "Tucker" else 26)
        with warnings.catch_warnings():
            # That ranks are far too small is told by the error.
            warnings.filterwarnings("ignore", "The accumulator must be made with a larger max_rank")
            c = accumulated(x, rank, how["seed"]).compress(how.get("tolerance"))
        error = true_error(x, c.network)
        if error > c.error * (1 + 1e-6):
            exceeded.append((family, seed, how, error, c.error))
        if error > 1e-11:
            ratios.append(c.error / error)
    return exceeded, ratios


@pytest.mark.parametrize("family", FAMILIES)
def test_the_estimate_is_hardly_ever_exceeded_and_not_far_off(family: str) -> None:
    exceeded, ratios = check_calibration(family, range(8))
    assert not exceeded
    assert len(ratios) > 4
    assert np.quantile(ratios, 0.95) <= 4


@pytest.mark.large
def test_the_estimate_over_many_sums() -> None:
    found = [check_calibration(family, range(10_000, 10_110)) for family in FAMILIES]
    exceeded = [one for some, _ in found for one in some]
    ratios = [ratio for _, some in found for ratio in some]
    assert len(exceeded) <= 1, exceeded
    assert len(ratios) > 500
    assert np.quantile(ratios, 0.95) <= 4


def test_terms_of_rank_one_that_decay_slowly() -> None:
    rng = np.random.default_rng(6)
    atoms = NetworkStack.from_networks([decaying(train(50), 3, 1, fast, rng) for _ in range(40)])
    x = atoms.sum(0.8 ** np.arange(40))
    for rank in (10, 40):
        c = accumulated(x, rank).compress()
        assert true_error(x, c.network) <= c.error
    assert c.error < 1e-11


@pytest.mark.parametrize(("nodes", "size"), [(train(4), 12), (star(3), 24), (matrix_chain(2), 80)])
def test_ranks_that_are_far_too_small_give_nothing_worse_than_zero(nodes: Nodes, size: int) -> None:
    rng = np.random.default_rng(0)
    terms = [decaying(nodes, size, 4, np.ones_like, rng) for _ in range(60)]
    x = NetworkStack.from_networks(terms).sum()
    for rank in (1, 2, 4):
        with pytest.warns(RuntimeWarning, match=f"a larger max_rank: with {rank} nothing is known"):
            c = accumulated(x, rank).compress()
        assert c.error == 1
        assert set(c.ranks.values()) == {1}
        assert true_error(x, c.network) == 1


def test_less_than_is_known_may_be_asked_for() -> None:
    rng = np.random.default_rng(0)
    terms = [decaying(train(8), 6, 4, np.ones_like, rng) for _ in range(40)]
    a = accumulator_for(terms[0], 20)
    for k, term in enumerate(terms):
        a.add(term, 0.5**k)
    c = a.compress(max_rank=1)
    assert true_error(NetworkStack.from_networks(terms).sum(0.5 ** np.arange(40)), c.network) < 1
    assert any(np.any(array) for array in c.network.arrays.values())


@pytest.mark.large
@pytest.mark.parametrize("name", ["torch"])
def test_ranks_that_are_far_too_small_in_other_libraries(name: str) -> None:
    rng = np.random.default_rng(0)
    convert = library(name).convert
    terms = [decaying(train(4), 12, 4, np.ones_like, rng) for _ in range(60)]
    arrays_of = NetworkStack.from_networks(terms).arrays
    stack = NetworkStack(terms[0].topology, {n: convert(a) for n, a in arrays_of.items()})
    a = SumAccumulator(stack.topology, terms[0].shape, 2)
    a.add(stack)
    with pytest.warns(RuntimeWarning, match="a larger max_rank"):
        assert a.compress().error == 1


def test_terms_may_be_added_from_several_threads() -> None:
    rng = np.random.default_rng(0)
    x = decaying(train(4), 6, 3, fast, rng)
    a = accumulator_for(x, 4)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: a.add(x), range(200)))
    finally:
        sys.setswitchinterval(interval)
    assert a.n_summands == 200
    c = a.compress()
    assert true_error(200.0 * x, c.network) <= c.error < 1e-12


def test_bad_gauges_are_seen() -> None:
    rng = np.random.default_rng(0)
    x = decaying(binary_tree(4), 4, 3, fast, rng)
    y = in_bad_gauge(x, 1e3, rng)
    assert accumulated(x, 4).compress().error < 1e-12
    c = accumulated(y, 4).compress()
    assert extended_error(extended(y), c.network) <= c.error
    assert 1e-12 < c.error < 1e-3


# terms that cancel


@pytest.mark.parametrize(("nodes", "size", "rank"), CANCELLING)
@pytest.mark.parametrize("n_pairs", [1, 100])
def test_terms_that_cancel_lose_no_more_digits_than_they_have(
    nodes: Nodes, size: int, rank: int, n_pairs: int
) -> None:
    rng = np.random.default_rng([n_pairs, size])
    pairs = [decaying(nodes, size, rank, slow, rng) for _ in range(n_pairs)]
    others = [in_another_gauge(x, rng) for x in pairs]
    small = decaying(nodes, size, rank, slow, rng)
    norms = sum(2 * float(np.linalg.norm(wide(x))) for x in pairs)
    cancelled = np.sum([wide(x) - wide(y) for x, y in zip(pairs, others, strict=True)], axis=0)
    a = accumulator_for(small, rank + 2)
    a.add(NetworkStack.from_networks(pairs))
    a.add(NetworkStack.from_networks(others), -1)
    for eps in (1e-2, 1e-5, 1e-8) if n_pairs == 1 else (1e-8,):
        b = copy.deepcopy(a)
        b.add(small, eps)
        exact = cancelled + eps * wide(small)
        c = b.compress()
        error = relative_error(wide(c.network), exact)
        assert error <= 60 * EPS["float64"] * norms / float(np.linalg.norm(exact))
        assert error <= c.error * (1 + 1e-6)
        # The noise of the pairs has gone from the ranks.
        assert max(c.ranks.values()) <= rank
    assert c.error < 1e-2


@EVERY_TREE
def test_what_cancels_altogether_is_zero_of_rank_one(case: Case) -> None:
    for dtype in ("float32", "complex128"):
        x = network(case, arrays(case, 0, 0, dtype))
        y = network(case, arrays(case, 1, 1, dtype))
        for zero in (x - x, 0 * x, x + 2.0 * y - x - 2.0 * y):
            a = accumulator_for(x, 3)
            for weight, term in zip(np.asarray(zero.weights), zero.summands, strict=True):
                a.add(term, weight)
            if zero.n_summands > 1:
                with pytest.warns(RuntimeWarning, match="a relative error of 1 or more"):
                    c = a.compress(1e-2)
            else:
                # That this is zero is known.
                c = a.compress(1e-2)
            assert c.error == 1
            assert set(c.ranks.values()) <= {1}
            assert c.network.dtype == dtype
            assert c.network.shape == x.shape
            assert c.network.topology == x.topology.joined
            assert not any(np.any(array) for array in c.network.arrays.values())


@pytest.mark.parametrize("order", [50, 400])
def test_long_chains_cancel_too(order: int) -> None:
    x = decaying(train(order), 3, 4, slow, np.random.default_rng(order))
    a = accumulated(x, 3)
    a.add(in_another_gauge(x, np.random.default_rng(0)), -1)
    c = a.compress()
    assert c.error == 1
    assert set(c.ranks.values()) == {1}
    a.add(x, 1e-6)
    c = a.compress()
    assert true_error(1e-6 * x, c.network) <= c.error


# sizes of numbers


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e-3), ("float64", 1e3)])
def test_order_400(dtype: str, scale: float) -> None:
    x = decaying(train(400), 2, 3, fast, np.random.default_rng(0), dtype)
    nodes = x.arrays.items()
    x = with_arrays(
        x, {n: a * a.dtype.type(scale) if k % 2 else a for k, (n, a) in enumerate(nodes)}
    )
    a = accumulated(x, 3)
    a.add(scaled(x, 0.5))
    c = a.compress(1e-3)
    check(c, x, 1e-3, true_error(x, c.network))


def test_a_long_comb() -> None:
    rng = np.random.default_rng(12)
    y, z = (decaying(comb(80), 2, 2, fast, rng) for _ in range(2))
    # Of equal norms, but on the way one is far larger than the other.
    log2_norms = [
        log2_norm(dict(t.topology.nodes), t.physical_modes, [t.arrays], [1]) for t in (y, z)
    ]
    x = y - 2.0 ** (log2_norms[0] - log2_norms[1] - 240) * scaled(z, 2)
    c = accumulated(x, 4).compress(1e-6)
    check(c, x, 1e-6, true_error(x, c.network))


def test_huge_and_tiny_terms() -> None:
    rng = np.random.default_rng(2)
    x, y = (decaying(train(8), 4, 6, fast, rng) for _ in range(2))
    for pairs in (
        [(x, 1e200), (y, 1e-200)],
        [(y, 1e-200), (x, 1e200)],
        [(x, 1e-200), (y, -1e-203)],
        [(scaled(x, 1e150), 1), (scaled(y, 1e150), -3)],
        [(scaled(x, 1e-150), 1), (scaled(y, 1e-150), 1)],
        [(scaled(x, 1e30), 1e250), (scaled(y, 1e-30), 1)],
        [(scaled(x, 1e-30), 1e300), (scaled(y, 1e10), 1e-20)],
    ):
        total = tnsum.add(*(term for term, _ in pairs), weights=[weight for _, weight in pairs])
        a, b = accumulated(total, 12), accumulator_for(x, 12)
        for term, weight in pairs:
            # Zeros set no scale.
            b.add(0 * term)
            b.add(term, weight)
            b.add(term, 0)
        zero = with_arrays(x, {**x.arrays, "n3": 0 * x.arrays["n3"]})
        b.add(zero + pairs[0][1] * pairs[0][0] + zero)
        b.add(pairs[0][0], -pairs[0][1])
        for found in (a, b):
            c = found.compress(1e-6)
            # Extended precision has a wider range, too.
            check(c, total, 1e-6, relative_error(wide(c.network), wide_sum(total)))


def test_size_one_and_ranks_larger_than_sizes_allow() -> None:
    rng = np.random.default_rng(7)
    for size, expected in ((2, [2, 4, 2]), (1, [1, 1, 1])):
        x = decaying(train(4), size, 7, slow, rng)
        a = accumulated(x, 50)
        a.add(x)
        c = a.compress()
        assert list(c.ranks.values()) == expected
        assert relative_error(wide(c.network), 2 * wide(x)) <= c.error
        # Wider test tensors than the shape needs are not made.
        assert a.n_parameters == accumulator_for(x, 5000).n_parameters


# max_rank, bits, copies, words


def test_max_rank_of_all_and_of_some_modes() -> None:
    x = decaying(train(5), 6, 8, slow, np.random.default_rng(4))
    a = accumulated(x, 6)
    three: Any = np.int64(3)
    assert dict(a.compress(max_rank=three).ranks) == dict.fromkeys(x.ranks, 3)
    some = a.compress(max_rank={"r1": 2, "r2": 5})
    assert dict(some.ranks) == {"r0": 6, "r1": 2, "r2": 5, "r3": 6}
    both = a.compress(0.5, {"r1": 1})
    assert both.ranks["r1"] == 1
    assert both.ranks["r3"] < 6
    for c in (some, both):
        assert true_error(x, c.network) <= c.error
    case = BY_NAME["disconnected_chains"]
    joined = accumulated(network(case, arrays(case, 0)), 3)
    assert joined.compress(max_rank={"join0": 1}).ranks["join0"] == 1


def test_seeds_fix_the_bits() -> None:
    rng = np.random.default_rng(8)
    x = tnsum.add(*(decaying(comb(3), 3, 6, slow, rng) for _ in range(3)))
    one, same, other = (accumulated(x, 4, seed) for seed in (5, 5, 6))
    assert are_same(one, same)
    assert not are_same(one, other)
    a, b = one.compress(), other.compress()
    for name, array in same.compress().network.arrays.items():
        assert np.array_equal(array, a.network.arrays[name])
    assert a.error != b.error
    assert true_error(x, b.network) <= b.error


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (1, 1, 1, 1)])
def test_no_product_state_is_orthogonal_to_all_test_tensors(signs: tuple[int, ...]) -> None:
    x = tensor_train([np.array(signs, dtype=float)[None, :, None]] * 3)
    for seed in range(150):
        a = accumulated(x, 1, seed)
        assert a._sums is not None
        assert min(a._sums.alone) > -4
        c = a.compress()
        assert true_error(x, c.network) <= c.error < 1e-12


def test_the_numbers_drawn_stay_what_they_are() -> None:
    """Files that were written once are read through them: other numbers need another name there."""
    x = decaying(comb(3), 12, 2, slow, np.random.default_rng(0))
    tests = accumulated(x, 2, 2**70)._tests
    assert tests is not None
    assert sum(array is not None for array in tests.below) > 2
    digest = hashlib.sha256()
    for array in (*tests.below, *tests.above):
        digest.update(b"none" if array is None else array.tobytes())
    assert digest.hexdigest()[:16] == "93dbbd73736c97ce"
    vectors = [array.ravel() for array in tests.above if array is not None and array.ndim == 2]
    numbers = np.concatenate(vectors)
    assert abs(np.mean(numbers)) < 0.1
    assert abs(np.mean(numbers**2) - 1) < 0.1
    assert np.max(np.abs(numbers)) < math.sqrt(3)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_copies_go_on_by_themselves(copied: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(9)
    x, y = (decaying(star(3), 9, 3, slow, rng) for _ in range(2))
    a = accumulated(x, 4, 3)
    b = copied(a)
    assert are_same(a, b)
    assert repr(a) == repr(b)
    b.add(y)
    assert (a.n_summands, b.n_summands) == (1, 2)
    a.add(y)
    assert are_same(a, b)
    assert a.compress().error == b.compress().error
    empty = copied(accumulator_for(x, 4))
    empty.add(x)
    assert empty.n_summands == 1
    assert len(pickle.dumps(a)) < 9 * a.n_parameters + 5000


def test_what_is_added_is_left_alone_and_so_is_what_is_merged() -> None:
    rng = np.random.default_rng(10)
    x, y = (decaying(train(5), 4, 3, slow, rng) for _ in range(2))
    before = {n: array.copy() for n, array in x.arrays.items()}
    a, b = accumulated(x, 4), accumulated(y, 4)
    kept = copy.deepcopy(b)
    a.merge(b)
    assert are_same(b, kept)
    a.add(x)
    assert are_same(b, kept)
    c = accumulator_for(x, 4)
    c.merge(b)
    c.merge(accumulator_for(x, 4))
    assert are_same(c, b)
    c.add(x)
    assert are_same(b, kept)
    assert all(np.array_equal(array, before[n]) for n, array in x.arrays.items())


def test_words_and_numbers() -> None:
    x = decaying(train(15), 2, 1, fast, np.random.default_rng(0))
    a = SumAccumulator(x.topology, list(x.shape), np.int64(3), "complex64", seed=4)  # type: ignore[arg-type]
    shape = f"({', '.join(['2'] * 12)}, ... 15 in all)"
    assert repr(a) == (
        f"SumAccumulator of 0 networks of order 15, shape {shape}, complex64, max_rank 3, seed 4"
    )
    assert (a.order, a.shape, a.max_rank, a.dtype, a.seed) == (15, x.shape, 3, "complex64", 4)
    assert a.topology == x.topology
    assert SumAccumulator(x.topology, x.shape, 3, np.float32).dtype == "float32"
    for name in ("n_summands", "max_rank", "seed", "shape"):
        with pytest.raises(AttributeError):
            setattr(a, name, 1)


# errors


X = Network.from_einsum("ir,rj->ij", np.eye(3), np.eye(3))
RING = BY_NAME["ring4"]


def made(
    topology: Any = X.topology, shape: Any = (3, 3), max_rank: Any = 2, **more: Any
) -> SumAccumulator:
    return SumAccumulator(topology, shape, max_rank, **more)


def after_adding(**more: Any) -> SumAccumulator:
    found = made(**more)
    found.add(X)
    return found


def with_weight(weight: float, scale: float = 1e300) -> SumAccumulator:
    found = made()
    found.add(scaled(X, scale), weight)
    return found


def damaged() -> SumAccumulator:
    found = after_adding()
    assert found._sums is not None
    root, exponent = found._sums.psi[-1]
    found._sums.psi[-1] = 0 * root, exponent
    return found


def in_strict(x: Network) -> Network:
    strict = pytest.importorskip("array_api_strict")
    return with_arrays(x, {n: strict.asarray(array) for n, array in x.arrays.items()})


def strictly_accumulated() -> SumAccumulator:
    found = made()
    found.add(in_strict(X))
    return found


BAD = with_arrays(X, {"node0": np.full((3, 3), np.nan), "node1": np.eye(3)})
NOT_FINITE = "The entries and weights of all summands must be finite; some are not."
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: made({"A": "ij"}), NetworkError, "topology must be a Topology; dict came."),
    (lambda: made(Topology(RING.nodes, RING.physical_modes), (2, 2, 2, 2)), TopologyError,
     "A SumAccumulator needs a tree, in which each contraction mode joins two nodes and no two ways "
     "lead from one node to another; a topology with 4 nodes and 4 contraction modes that is none "
     "came."),
    (lambda: made(shape=(3,)), ModeError,
     "shape must be one positive integer for each of the physical modes ('i', 'j'); (3,) came."),
    (lambda: made(shape=3), ModeError,
     "shape must be one positive integer for each of the physical modes ('i', 'j'); (3,) came."),
    (lambda: made(shape=(3, 0)), ModeError,
     "shape must be one positive integer for each of the physical modes ('i', 'j'); (3, 0) came."),
    (lambda: made(shape=(3.0, 3)), ModeError,
     "shape must be one positive integer for each of the physical modes ('i', 'j'); (3.0, 3) came."),
    (lambda: made(max_rank=0), NetworkError, "max_rank must be an integer of at least 1; 0 came."),
    (lambda: made(max_rank={"r": 2}), NetworkError,
     "max_rank must be an integer of at least 1; {'r': 2} came."),
    (lambda: made(max_rank=True), NetworkError, "max_rank must be an integer of at least 1; True came."),
    (lambda: made(seed=-1), NetworkError, "seed must be an integer of at least 0; -1 came."),
    (lambda: made(seed=0.5), NetworkError, "seed must be an integer of at least 0; 0.5 came."),
    (lambda: made(dtype="int64"), NetworkError,
     "dtype must be one of float32, float64, complex64, complex128; 'int64' came."),
    (lambda: made().add(np.eye(3)), NetworkError,  # type: ignore[arg-type]
     "A Network, NetworkStack or NetworkSum must come; ndarray came."),
    (lambda: made().add([X]), NetworkError,  # type: ignore[arg-type]
     "A Network, NetworkStack or NetworkSum must come; list came."),
    (lambda: made().add(X, [1, 2]), NetworkError,
     "A weight must be a single number; weight 0 is [1, 2]."),
    (lambda: made().add(NetworkStack.from_networks([X]), [1, 2]), NetworkError,
     "There must be one weight per summand: 1 summands and 2 weights came."),
    (lambda: made().add(X, 1j), NetworkError,
     "A complex summand or weight needs a complex accumulator; this one is of dtype float64. Make one "
     "with dtype='complex128'."),
    (lambda: made(dtype="float32").add(X.astype("complex128")), NetworkError,
     "A complex summand or weight needs a complex accumulator; this one is of dtype float32. Make one "
     "with dtype='complex64'."),
    (lambda: after_adding().add(in_strict(X)), NetworkError,
     "All arrays must be of one library: the summand is of array_api_strict, the accumulator of numpy. "
     "Convert one of them; nothing is converted silently."),
    (lambda: made().add(Network.from_einsum("ir,rs,sj->ij", *[np.eye(3)] * 3)), TopologyError,
     "Summands must have isomorphic topologies: the summand has 3 nodes ('node0', 'node1', 'node2'), "
     "the accumulator has 2 ('node0', 'node1'). Rename modes with Network.rename, or build both from "
     "one Topology."),
    (lambda: made().add(Network.from_einsum("ir,rk->ik", *[np.eye(3)] * 2)), ModeError,
     "Physical modes must have all names in common, or none: the summand has ('i', 'k'), the "
     "accumulator has ('i', 'j'); 'k' is only in the former, 'j' only in the latter. Rename modes with "
     "Network.rename."),
    (lambda: made().add(Network.from_einsum("ar,rb->ab", np.eye(3), np.ones((3, 4)))), ModeError,
     "Summands must have the physical sizes of the accumulator: mode 'b' of the summand has size 4, "
     "mode 'j' of the accumulator has 3."),
    (lambda: made().add(BAD), NetworkError, NOT_FINITE),
    (lambda: made().add(X + 0 * BAD), NetworkError, NOT_FINITE),
    (lambda: made().add(X, math.inf), NetworkError, NOT_FINITE),
    (lambda: made().merge(X), NetworkError,  # type: ignore[arg-type]
     "An accumulator is merged with another SumAccumulator; Network came."),
    (lambda: made().merge(made(seed=1)), NetworkError,
     "Accumulators must have one seed to be merged: this one has 0, the other 1."),
    (lambda: made().merge(made(shape=(3, 4))), NetworkError,
     "Accumulators must have one shape to be merged: this one has (3, 3), the other (3, 4)."),
    (lambda: made().merge(made(max_rank=3)), NetworkError,
     "Accumulators must have one max_rank to be merged: this one has 2, the other 3."),
    (lambda: made().merge(made(dtype="float32")), NetworkError,
     "Accumulators must have one dtype to be merged: this one has float64, the other float32."),
    (lambda: made().merge(made(X.rename({"r": "s"}).topology)), NetworkError,
     "Accumulators must have one topology to be merged: this one has Topology({'node0': ('i', 'r'), "
     "'node1': ('r', 'j')}, physical_modes=('i', 'j')), the other Topology({'node0': ('i', 's'), "
     "'node1': ('s', 'j')}, physical_modes=('i', 'j'))."),
    (lambda: after_adding().merge(strictly_accumulated()), NetworkError,
     "All arrays must be of one library: the other is of array_api_strict, this accumulator of numpy. "
     "Convert one of them; nothing is converted silently."),
    (lambda: made().compress(), NetworkError,
     "There must be a summand at least; none has been added yet."),
    (lambda: after_adding().compress(1.5), NetworkError,
     "tolerance must be at least 0 and less than 1; 1.5 came."),
    (lambda: after_adding(dtype="float32").compress(1e-9), NetworkError,
     "tolerance must be at least 4.8e-07, which float32 can hold; 1e-09 came. Use a wider dtype, or "
     "no tolerance: then nothing is lost but rounding."),
    (lambda: with_weight(1e300).compress(), NetworkError,
     "The norm of the sum must be such that 2 nodes of float64 can hold it; it is about 2**2991. Take "
     "other weights."),
    (lambda: with_weight(1e-300, 1e-300).compress(), NetworkError,
     "The norm of the sum must be such that 2 nodes of float64 can hold it; it is about 2**-2989. Take "
     "other weights."),
    (lambda: damaged().compress(), NetworkError,
     "What has been added up must be that of some sum; it is not. The file that it was loaded from is "
     "damaged."),
    (lambda: after_adding().compress(max_rank=3), ModeError,
     "max_rank must be at most 2, which the accumulator was made for; 3 came."),
    (lambda: after_adding().compress(max_rank={"s": 1}), ModeError,
     "max_rank must name contraction modes of ('r',); 's' came."),
    (lambda: after_adding().compress(max_rank=0), ModeError,
     "max_rank must be a positive integer, or a dict of such by mode; 0 came."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    check_message(call, error, message)


def test_what_does_not_fit_into_memory() -> None:
    with pytest.raises(NetworkError) as raised:
        SumAccumulator(Topology(star(8)), (100,) * 8, 50)
    message = (
        r"What is accumulated must fit into memory: it needs .*free\. Take a smaller max_rank\."
    )
    assert re.fullmatch(message, str(raised.value))


def test_every_raise_is_in_the_table() -> None:
    names = "_accumulator", "_accepting", "_two_sided", "_recovery", "_fixed_tests"
    files = [Path(tnsum.compression.__file__).parent / f"{name}.py" for name in names]
    left = unreached(files, [call for call, *_ in ERRORS])
    # That of a dtype which JAX has not switched on is reached by a large test.
    assert [name for name, _ in left] == ["_accumulator.py"]


def test_an_error_leaves_all_as_it_was() -> None:
    rng = np.random.default_rng(11)
    x = decaying(train(4), 3, 2, slow, rng)
    bad = with_arrays(x, {**x.arrays, "n2": np.nan * x.arrays["n2"]})
    a = accumulated(x, 3)
    kept = copy.deepcopy(a)
    for term in (bad, x + bad, tnsum.add(decaying(train(4), 3, 3, slow, rng), bad), 1j * x):
        with pytest.raises(NetworkError):
            a.add(term)
        assert are_same(a, kept)
    with pytest.raises(NetworkError):
        a.merge(accumulated(x, 3, seed=1))
    assert are_same(a, kept)
