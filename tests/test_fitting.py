"""Fitting: errors reported as they are, on every topology; starts, environments; CP to Tucker."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tnsum
from fit_cases import FAMILIES, random_sum
from fit_cases import true_error as extended_error
from libraries import NUMPY, Library, library, network
from oracle import dense, relative_error
from raising import check_message, unreached
from tnsum import (
    Network,
    NetworkError,
    NetworkStack,
    NetworkSum,
    Topology,
    TopologyError,
    compress,
    cp,
)
from tnsum.compression import _environments, _fitting, _recipes
from tnsum.compression._balance import balanced_networks, balanced_nodes
from tnsum.compression._conversion import scaled as scaled_nodes
from tnsum.compression._cp import cp_to_tucker
from tnsum.compression._environments import Overlap, Summands, kets_of_group
from tnsum.compression._fitting import fitted
from tnsum.compression._recipes import multiplied
from tnsum.compression._rounding import sizes_of
from tnsum.compression._starts import _blocks, _cut_between, _cut_hyperedge, _pivots, starts
from tnsum.compression._sweeps import Fit, swept
from tnsum.compression._targets import sizes_within, target_of
from tnsum.compression._walks import tree_of, work_of_sweep
from tnsum.paths import plan_for
from topologies import BY_NAME, CASES, DTYPES, EQUAL_RANKS, Case, any_cases, arrays

Array = NDArray[Any]
EPS = {name: float(np.finfo(name).eps) for name in DTYPES}
# Of order 32: no dense array of it.
DENSE = [case for case in CASES if case.name != "mera"]


@pytest.fixture
def few_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fitting, "MOST_SWEEPS", 5)


def named(cases: Sequence[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def wide(x: Network, to_numpy: Callable[[Any], Array] = np.asarray) -> Array:
    held = {name: to_numpy(array) for name, array in x.arrays.items()}
    kind = np.clongdouble if any(map(np.iscomplexobj, held.values())) else np.longdouble
    held = {name: array.astype(kind) for name, array in held.items()}
    return dense(x.topology.nodes, x.physical_modes, held)


def wide_sum(s: NetworkSum, to_numpy: Callable[[Any], Array] = np.asarray) -> Array:
    pairs = zip(to_numpy(s.weights), s.summands, strict=True)
    return np.asarray(sum(weight * wide(term, to_numpy) for weight, term in pairs))


def true_error(s: NetworkSum, y: Network, of: Library = NUMPY) -> float:
    return relative_error(wide(y, of.to_numpy), wide_sum(s, of.to_numpy))


def caps(s: NetworkSum, rank: int) -> dict[str, int]:
    return dict.fromkeys(s.topology.joined.contraction_modes, rank)


def fit(
    s: NetworkSum, rank: int | Mapping[str, int], tolerance: float = 0.0, seed: int = 0
) -> tuple[Network, float]:
    ranks = caps(s, rank) if isinstance(rank, int) else rank
    return fitted(s.namespace, s, ranks, tolerance, seed)


def assert_honest(s: NetworkSum, y: Network, error: float, of: Library = NUMPY) -> float:
    """What is reported is at least the true error, and not much more."""
    true = true_error(s, y, of)
    precision = EPS[str(of.to_numpy(next(iter(y.arrays.values()))).dtype)]
    assert true <= error * (1 + 1e-6)
    assert error <= 1.1 * true + 60 * math.sqrt(precision)
    assert y.topology == s.topology.joined
    assert (y.dtype, y.shape) == (s.dtype, s.shape)
    return true


def scaled(x: Network, factor: float) -> Network:
    held = {name: array * array.dtype.type(factor) for name, array in x.arrays.items()}
    return Network.from_topology(x.topology, held)


def ring(n: int, size: int, rank: int, rng: np.random.Generator) -> Network:
    return tnsum.tensor_ring([rng.standard_normal((rank, size, rank)) for _ in range(n)])


def grid(height: int, width: int, size: int, rank: int, rng: np.random.Generator) -> Network:
    def node(a: int, b: int) -> Array:
        n_modes = (a > 0) + (a < height - 1) + (b > 0) + (b < width - 1)
        return rng.standard_normal((rank,) * n_modes + (size,))

    return tnsum.grid([[node(a, b) for b in range(width)] for a in range(height)])


def perturbed(x: Network, part: float, rng: np.random.Generator) -> Network:
    held = {}
    for name, array in x.arrays.items():
        noise = rng.standard_normal(array.shape)
        held[name] = array + part * noise * np.linalg.norm(array) / np.linalg.norm(noise)
    return Network.from_topology(x.topology, held)


def in_another_gauge(x: Network, rng: np.random.Generator) -> Network:
    held = dict(x.arrays)
    for mode in x.topology.contraction_modes:
        rank = x.ranks[mode]
        matrix = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
        for name in x.topology.holders(mode):
            k = x.topology.nodes[name].index(mode)
            held[name] = np.moveaxis(np.tensordot(held[name], matrix, (k, 0)), -1, k)
    return Network.from_topology(x.topology, held)


# every topology, dtype and library


def check(case: Case, dtype: str, rank: int) -> None:
    x, y, z = (network(case, arrays(case, k, k, dtype)) for k in range(3))
    s = x - 2.5 * y + 0 * y + 0.5 * z
    found, error = fit(s, rank)
    assert_honest(s, found, error)
    assert all(r <= rank for r in found.ranks.values())


@named([case for case in DENSE if case.name not in ("honeycomb", "complete5")])
@pytest.mark.usefixtures("few_sweeps")
def test_the_reported_error_is_the_true_one(case: Case) -> None:
    check(case, "complex128" if len(case.name) % 2 else "float32", 2)


@pytest.mark.large
@named(DENSE)
@pytest.mark.parametrize(("dtype", "rank"), [*zip(DTYPES, (4, 1, 3, 3), strict=True)])
@pytest.mark.usefixtures("few_sweeps")
def test_the_reported_error_is_the_true_one_in_every_dtype(
    case: Case, dtype: str, rank: int
) -> None:
    check(case, dtype, min(rank, 2) if case.name == "complete5" else rank)


@pytest.mark.usefixtures("few_sweeps")
def test_rounding_inside_an_overlap_is_seen() -> None:
    """A sweep may lead to nodes whose overlap cancels only where several of them were multiplied."""
    case = BY_NAME["honeycomb"]
    x, y, z = (network(case, arrays(case, k, 787 + k, "float64")) for k in range(3))
    s = x - 0.9819647028688459 * y + 0.9642546776 * z
    found, error = fit(s, 2)
    assert assert_honest(s, found, error) < 0.1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_rounding_in_summands_is_seen(dtype: str, seed: int) -> None:
    """Entries of the summands' nodes may be large and cancel between neighbours."""
    rng = np.random.default_rng(seed)

    def in_a_bad_gauge() -> Network:
        x = ring(4, 4, 3, rng)
        held = {name: array.astype(dtype) for name, array in x.arrays.items()}
        for mode in x.topology.contraction_modes:
            turns = [np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2)]
            matrix = (turns[0] * np.logspace(0, 3, 3)) @ turns[1]
            names = x.topology.holders(mode)
            for name, each in zip(names, (matrix, np.linalg.inv(matrix).T), strict=True):
                k = x.topology.nodes[name].index(mode)
                moved = np.tensordot(held[name], each.astype(dtype), (k, 0))
                held[name] = np.moveaxis(moved, -1, k)
        return Network.from_topology(x.topology, held)

    s = in_a_bad_gauge() + 1e-6 * in_a_bad_gauge()
    found, error = fit(s, 3)
    assert true_error(s, found) <= error * (1 + 1e-6)


@pytest.mark.parametrize("condition", [1.0, 1e1, 1e2, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_error_is_exceeded_in_any_gauge(
    family: str, condition: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        s, rank, n_sweeps = random_sum(family, condition, seed)
        monkeypatch.setattr(_fitting, "MOST_SWEEPS", min(n_sweeps, 15))
        # Every other one as if the difference were too large to be orthogonalised.
        monkeypatch.setattr(_fitting, "QUICK", 2**33 * (seed % 2))
        found, error = fit(s, rank)
        assert extended_error(s, found) <= error * (1 + 1e-6)


@pytest.mark.parametrize("family", ["rings", "parallel modes", "grids"])
def test_digits_are_saved_where_a_gauge_can_be_mended(family: str) -> None:
    for seed in range(3):
        one = random_sum(family, 30.0, seed, "float64")[0].summands[0]
        assert fit(one + 2 * one, dict(one.ranks))[1] < 1e-6


def test_rounding_that_misses_a_tolerance_is_warned_of() -> None:
    s, _, _ = random_sum("rings", 1e4, 0, "float64")
    one = s.summands[0]
    with pytest.warns(RuntimeWarning, match="Rounding alone makes a relative error of about"):
        c = compress(one + one, 1e-13, max_rank=3)
    assert 1e-13 < c.error < 1
    with pytest.warns(RuntimeWarning, match="Rounding alone makes a relative error of 1 or more"):
        assert compress(one + 1e-13 * one - one, 1e-3, max_rank=1).error == 1
    with pytest.warns(RuntimeWarning, match="Rounding alone makes a relative error of about"):
        compress(one + one, 1e-13, max_rank=6)


@pytest.mark.parametrize("name", ["ring4", "cp4", "parallel_modes", "hyperedge_and_modes", "trace"])
def test_the_sizes_of_terms(name: str) -> None:
    """Against the norms of a network with one node after the other replaced by unit arrays."""
    case = BY_NAME[name]
    x, y = (network(case, arrays(case, k, k, "complex128")) for k in EQUAL_RANKS)
    (group,) = target_of(np, x - 3j * y).originals
    found = sizes_of(np, group)
    stack, weights = group
    for m, weight in enumerate(np.abs(weights)):
        term = stack[m]
        assert math.isclose(2 ** found.norms[m], weight * np.linalg.norm(wide(term)), rel_tol=1e-9)
        largest = 0.0
        for node, array in term.arrays.items():
            square = 0.0
            for k in range(array.size):
                unit = np.zeros(array.size)
                unit[k] = 1
                held = {**term.arrays, node: unit.reshape(array.shape)}
                square += np.linalg.norm(dense(term.topology.nodes, term.physical_modes, held)) ** 2
            own = [len(term.topology.holders(mode)) == 1 for mode in term.topology.nodes[node]]
            repeats = math.prod(n for n, is_own in zip(array.shape, own, strict=True) if is_own)
            # What is left of the network does not depend on the node's own physical indices.
            largest = max(largest, np.linalg.norm(array) * math.sqrt(square / repeats))
        assert 2 ** found.terms[m] >= weight * largest * (1 - 1e-9)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_bad_gauges_are_brought_into_balance(dtype: str) -> None:
    for family in ("rings", "grids", "parallel modes"):
        s, _, _ = random_sum(family, 1e3, 1, dtype)
        stack = NetworkStack.from_networks([s.summands[0]] * 2)
        group = balanced_networks(np, stack), np.ones(2)
        before, after = sizes_of(np, (stack, np.ones(2))), sizes_of(np, group)
        assert np.max(after.terms - after.norms) < 8 < np.max(before.terms - before.norms)
        change = relative_error(wide(group[0][1]), wide(stack[1]))
        assert change < 4 * EPS["float64"] * np.exp2(before.terms - before.norms)[0]
        assert change < 1e-4


@pytest.mark.large
@pytest.mark.usefixtures("few_sweeps")
def test_a_network_of_order_32() -> None:
    case = BY_NAME["mera"]
    x, y = (network(case, arrays(case, k, k)) for k in range(2))
    found, error = fit(x + 0.01 * y, 1)
    distance = tnsum.distance(found, x + 0.01 * y, relative=True)
    assert math.isclose(error, distance, rel_tol=1e-4)
    assert set(found.ranks.values()) == {1}
    assert error < 0.5


OTHER_LIBRARIES = [
    *(("array_api_strict", name, "float32") for name in ("cp3", "trace")),
    *(
        ("array_api_strict", name, "complex128")
        for name in ("ring4", "shared_kept_and_summed", "kept_twice")
    ),
    *(
        pytest.param("torch", name, dtype, marks=pytest.mark.large)
        for name in ("ring4", "cp3", "trace", "shared_kept_and_summed", "kept_twice", "grid3x3")
        for dtype in ("float32", "complex128")
    ),
    pytest.param("jax", "two_nodes", "float32", marks=pytest.mark.large),
]


@pytest.mark.parametrize(("name", "case_name", "dtype"), OTHER_LIBRARIES)
@pytest.mark.usefixtures("few_sweeps")
def test_other_libraries(name: str, case_name: str, dtype: str) -> None:
    of, case = library(name), BY_NAME[case_name]
    x, y, z = (network(case, arrays(case, k, k, dtype), of) for k in range(3))
    s = NetworkStack.from_networks([x, z]).sum([1, 0.5]) - 2.5 * y
    found, error = fit(s, 2)
    assert found.namespace is x.namespace
    assert_honest(s, found, error, of)


NUMBER = Case("number", {"n0": ("r0",)}, (), {}, ({"r0": 1},) * 3)


@given(any_cases(), st.integers(1, 4), st.sampled_from(DTYPES), st.booleans())
@example(case=NUMBER, rank=1, dtype="float32", is_kept=False)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_network(case: Case, rank: int, dtype: str, is_kept: bool) -> None:
    x, y, z = (network(case, arrays(case, k, k, dtype)) for k in range(3))
    s = x - 0.7 * y + 2 * z
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fitting, "MOST_SWEEPS", 4)
        patch.setattr(_environments, "_MOST_KEPT", 2**20 if is_kept else 0)
        found, error = fit(s, rank)
    assert_honest(s, found, error)
    assert all(r <= rank for r in found.ranks.values())


@pytest.mark.large
def test_no_gradient_flows() -> None:
    torch = pytest.importorskip("torch")
    x = tnsum.tensor_ring([torch.ones((2, 3, 2), requires_grad=True)] * 3)
    found, _ = fit(x + x, 2)
    assert not any(array.requires_grad for array in found.arrays.values())


# what is reached


@pytest.mark.parametrize("n_terms", [2, 10])
def test_a_ring_of_similar_terms(n_terms: int) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        base = ring(8, 4, 3, rng)
        s = tnsum.mean(*(perturbed(base, 0.1, rng) for _ in range(n_terms)))
        found, error = fit(s, 4, 0.02)
        assert assert_honest(s, found, error) <= 0.03


@pytest.mark.parametrize(("n_terms", "rank"), [(2, 3), (4, 4)])
def test_a_grid_of_similar_terms(n_terms: int, rank: int) -> None:
    rng = np.random.default_rng(0)
    base = grid(4, 4, 2, 2, rng)
    s = tnsum.mean(*(perturbed(base, 0.1, rng) for _ in range(n_terms)))
    found, error = fit(s, rank, 0.02)
    assert assert_honest(s, found, error) <= 0.02
    assert set(found.ranks.values()) == {rank}


@pytest.mark.large
def test_a_larger_grid() -> None:
    rng = np.random.default_rng(0)
    base = grid(4, 4, 2, 2, rng)
    s = tnsum.mean(*(perturbed(base, 0.1, rng) for _ in range(8)))
    found, error = fit(s, 6, 0.01)
    assert error <= 0.01
    assert math.isclose(error, tnsum.distance(found, s, relative=True), rel_tol=1e-4)


def test_terms_in_other_gauges_and_of_other_kinds() -> None:
    rng = np.random.default_rng(0)
    base = ring(6, 3, 3, rng)
    s = tnsum.add(*(in_another_gauge(perturbed(base, 0.1, rng), rng) for _ in range(4)))
    assert assert_honest(s, *fit(s, 4)) <= 0.01
    independent = tnsum.add(*(ring(6, 3, 2, rng) for _ in range(4)))
    errors = [assert_honest(independent, *fit(independent, rank, 0.05)) for rank in (2, 4, 6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.05


def test_one_network_to_smaller_ranks() -> None:
    rng = np.random.default_rng(0)
    decay = 0.3 ** np.arange(5.0)
    cores = [rng.standard_normal((5, 3, 5)) * decay[:, None, None] for _ in range(6)]
    s = +tnsum.tensor_ring(cores)
    errors = [assert_honest(s, *fit(s, rank)) for rank in (1, 2, 3, 4)]
    assert all(later < 0.5 * earlier for earlier, later in pairwise(errors))
    assert errors[-1] < 0.02


def test_what_is_cancelled_is_seen_through() -> None:
    rng = np.random.default_rng(3)
    a, c = ring(6, 3, 3, rng), ring(6, 3, 3, rng)
    for small in (1e-2, 1e-4):
        s = a - in_another_gauge(a, rng) + small * c
        found, error = fit(s, 3)
        # What is not seen: the root of machine precision times what cancels.
        assert assert_honest(s, found, error) < 10 * math.sqrt(EPS["float64"] / small)


def test_a_tree_is_fitted_as_well_as_it_is_truncated() -> None:
    rng = np.random.default_rng(0)
    cores = [rng.standard_normal(shape) for shape in ((4, 4), (4, 4, 4), (4, 4, 4), (4, 4))]
    s = tnsum.tensor_train(cores) + tnsum.tensor_train([core[::-1] ** 2 for core in cores])
    for rank in (1, 2, 3):
        _, error = fit(s, rank)
        assert error <= 1.02 * compress(s, max_rank=rank).error


# ranks


@pytest.mark.usefixtures("few_sweeps")
def test_ranks_are_at_most_what_is_asked_and_what_the_sum_has() -> None:
    rng = np.random.default_rng(0)
    x, y = ring(4, 3, 2, rng), ring(4, 3, 1, rng)
    s = x + y
    found, error = fit(s, {"r0": 2, "r1": 7})
    assert dict(found.ranks) == {"r0": 2, "r1": 3, "r2": 3, "r3": 3}
    assert_honest(s, found, error)


@pytest.mark.usefixtures("few_sweeps")
def test_no_rank_is_larger_than_sizes_allow() -> None:
    rng = np.random.default_rng(0)
    x = Network.from_einsum(
        "iab,abcd,cdj->ij", *map(rng.standard_normal, ((2, 4, 4), (4,) * 4, (4, 4, 2)))
    )
    s = x + x
    found, error = fit(s, 6)
    # The two modes of an end together see two physical indices.
    assert max(found.ranks.values()) <= 6
    assert_honest(s, found, error)
    chain = tnsum.chain([rng.standard_normal(shape) for shape in ((3, 9), (9, 9), (9, 3))])
    found, error = fit(chain + chain, 9)
    assert dict(found.ranks) == {"r0": 3, "r1": 3}
    assert assert_honest(chain + chain, found, error) < 1e-6


def test_sizes_within() -> None:
    star = Topology({"A": ("i", "a", "h"), "B": ("j", "b", "h"), "C": ("h", "a", "b")})
    ranks = {"a": 50, "b": 5, "h": 9}
    assert sizes_within(star, (2, 3), ranks) == {"i": 2, "j": 3, "a": 18, "b": 5, "h": 9}


@named([BY_NAME[name] for name in ("ring4", "trace", "cp3", "disconnected_chains", "lone_trace")])
def test_the_whole_sum_is_returned_as_blocks(case: Case) -> None:
    x, y = (network(case, arrays(case, k, k)) for k in range(2))
    for s in (x - 2 * y, +x):
        found, error = fitted(np, s, {}, 0.0, 0)
        assert_honest(s, found, error)
        assert error < 1e-13
        ranks = {**dict.fromkeys(found.topology.contraction_modes, s.n_summands), **s.ranks}
        assert dict(found.ranks) == ranks


# small things


@named([BY_NAME[name] for name in ("ring4", "cp3", "grid3x3", "lone_trace", "disconnected_closed")])
def test_a_sum_that_is_zero(case: Case) -> None:
    for dtype in ("float32", "complex128"):
        x, y = (network(case, arrays(case, k, k, dtype)) for k in range(2))
        for zero in (x - x, 0 * x, 0 * x + 0 * y, x + 2.0 * y - x - 2.0 * y):
            for rank in (2, 100):
                found, error = fit(zero, rank)
                assert error == 1
                assert set(found.ranks.values()) <= {1}
                assert (found.dtype, found.shape) == (x.dtype, x.shape)
                assert not any(np.any(array) for array in found.arrays.values())


def test_repeated_terms() -> None:
    rng = np.random.default_rng(0)
    x, y = ring(5, 3, 2, rng), ring(5, 3, 2, rng)
    for s, rank in ((x + x + x, 2), (x + x + x + y, 4), (x + x - 5 * y + x + y, 4)):
        assert assert_honest(s, *fit(s, rank)) < 1e-6


@pytest.mark.usefixtures("few_sweeps")
def test_sizes_of_numbers() -> None:
    rng = np.random.default_rng(1)
    x, y = ring(5, 3, 2, rng), ring(5, 3, 2, rng)
    _, error = fit(x - 3 * y, 3)
    for s in (
        1e200 * x - 3e200 * y,
        1e-200 * x - 3e-200 * y,
        scaled(x, 1e50) - 3 * scaled(y, 1e50),
        scaled(x, 1e-50) - 3 * scaled(y, 1e-50),
    ):
        found, same = fit(s, 3)
        assert_honest(s, found, same)
        assert same <= 1.1 * error
    for s in (1e200 * x + 1e-200 * y, scaled(x, 1e30) + scaled(y, 1e-30)):
        assert assert_honest(s, *fit(s, 2)) < 1e-6
    single = scaled(x, 1e7).astype("float32") - scaled(y, 1e7).astype("float32")
    assert_honest(single, *fit(single, 3))


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.large)])
@pytest.mark.usefixtures("few_sweeps")
def test_a_long_ring(dtype: str) -> None:
    rng = np.random.default_rng(0)
    n = 25 if dtype == "float32" else 100
    x, y = ring(n, 2, 2, rng).astype(dtype), ring(n, 2, 2, rng).astype(dtype)
    s = x + 0.5 * y
    found, error = fit(s, 3)
    distance = tnsum.distance(found.astype("float64"), s.astype("float64"), relative=True)
    assert distance <= error * (1 + 1e-3)
    assert error < 0.9


@pytest.mark.usefixtures("few_sweeps")
def test_a_small_error_of_a_long_ring() -> None:
    x = ring(120, 6, 2, np.random.default_rng(0))
    found, error = fit(3 * x - x, 2)
    assert 0 < error < 1e-10
    assert tnsum.distance(found, 2 * x, relative=True) <= error


@pytest.mark.usefixtures("few_sweeps")
def test_modes_of_size_one() -> None:
    rng = np.random.default_rng(0)
    for sizes in ((1, 1, 1, 1), (1, 3, 1, 2)):
        x, y = (
            tnsum.tensor_ring([rng.standard_normal((2, n, 2)) for n in sizes]) for _ in range(2)
        )
        for rank in (1, 3):
            assert_honest(x + y, *fit(x + y, rank))


@pytest.mark.usefixtures("few_sweeps")
def test_s_is_left_alone_and_seeds_fix_the_bits() -> None:
    rng = np.random.default_rng(0)
    terms = [ring(5, 3, 2, rng) for _ in range(4)]
    before = [{name: array.copy() for name, array in x.arrays.items()} for x in terms]
    s = tnsum.add(*terms, weights=[1, -2, 3, 0.5])
    (one, error), (same, same_error), (other, _) = (fit(s, 3, seed=seed) for seed in (1, 1, 2))
    assert error == same_error
    for name, array in one.arrays.items():
        assert np.array_equal(array, same.arrays[name])
    assert not all(np.array_equal(array, other.arrays[n]) for n, array in one.arrays.items())
    for x, held in zip(terms, before, strict=True):
        assert all(np.array_equal(array, held[name]) for name, array in x.arrays.items())


def test_sweeps_are_reported_and_end_at_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    base = ring(6, 3, 2, rng)
    s = tnsum.add(*(perturbed(base, 0.2, rng) for _ in range(6)))
    counts, tolerance = [], 0.0
    for _ in range(2):
        seen: list[tuple[int, float]] = []
        _, error = fitted(np, s, caps(s, 3), tolerance, 0, lambda *now, o=seen: o.append(now))
        counts.append(len(seen))
        assert [n for n, _ in seen] == list(range(1, len(seen) + 1))
        errors = [e for _, e in seen]
        assert errors == sorted(errors, reverse=True)
        assert math.isclose(errors[-1], error, rel_tol=1e-6)
        assert error <= tolerance or tolerance == 0
        tolerance = 1.1 * error
    assert counts[1] < counts[0] <= _fitting.MOST_SWEEPS


def test_a_fit_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    base = grid(3, 3, 2, 2, rng)
    s = tnsum.add(*(perturbed(base, 0.2, rng) for _ in range(4)))
    counts = []
    for seconds in (1e-9, 50.0, 1e9):
        seen: list[int] = []
        now = iter(range(10**9))
        # Every look at the clock takes a second: 50 of them end in the middle of a sweep.
        monkeypatch.setattr(_fitting.time, "monotonic", lambda o=now: float(next(o)))
        found, error = fitted(np, s, caps(s, 3), 0.0, 0, lambda n, _, o=seen: o.append(n), seconds)
        counts.append(len(seen))
        assert_honest(s, found, error)
    assert counts[0] == 1 < counts[1] < counts[2]


def test_small_errors_are_found_exactly_or_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = ring(5, 3, 2, rng)
    s = x + x
    assert fit(s, 2)[1] < 1e-13
    monkeypatch.setattr(_fitting, "QUICK", 0)
    found, error = fit(s, 2)
    assert 1e-8 < error < 1e-6
    assert true_error(s, found) < 1e-13


# environments


ENVIRONMENTS = [
    *("two_nodes", "parallel_modes", "ring4", "star4", "cp4", "hyperedge_and_modes"),
    *("shared_kept_and_summed", "kept_twice", "trace", "lone_matrix", "permuted"),
]


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("is_kept", [True, False])
def test_environments(name: str, is_kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_environments, "_MOST_KEPT", 2**20 if is_kept else 0)
    monkeypatch.setattr(_environments, "piece_size", lambda _: 1)
    case = BY_NAME[name]
    x, y, z = (network(case, arrays(case, k, k, "complex128")) for k in range(3))
    target = target_of(np, x - 2j * y + 0.5 * z)
    topology, nodes = target.topology, target.topology.nodes
    sizes = sizes_within(topology, x.shape, dict.fromkeys(topology.contraction_modes, 2))
    rng = np.random.default_rng(0)
    shapes = [tuple(sizes[m] for m in held) for held in nodes.values()]
    held = [rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in shapes]
    tree = tree_of(topology, tuple(sizes.items()))
    own = Overlap(np, tree, held, None, (np.ones((), complex), ()))
    summands = Summands(np, tree, held, [kets_of_group(np, g) for g in target.groups])
    exact = dense_terms(target.groups, topology)
    updated = []
    for what, place in tree.steps:
        if what == "update":
            updated.append(place)
            # A change of the node: what comes later must see it.
            held[place] = held[place] * (1 + 0.1j)
            check_environment(topology, held, place, own, summands, exact)
        else:
            for overlap in (own, summands):
                getattr(overlap, f"find_{what}")(place)
    assert sorted(updated) == list(range(len(nodes)))


def dense_terms(groups: Sequence[tuple[NetworkStack, Any]], topology: Topology) -> Array:
    terms = [
        weight * dense(topology.nodes, topology.physical_modes, term.arrays)
        for stack, weights in groups
        for term, weight in zip(stack, weights, strict=True)
    ]
    return np.asarray(sum(terms))


def check_environment(
    topology: Topology,
    held: Sequence[Array],
    place: int,
    own: Overlap,
    summands: Summands,
    exact: Array,
) -> None:
    """N A and b from unit vectors in place of a node: the network is linear in it."""
    names = list(topology.nodes)
    shape = held[place].shape

    def with_node(array: Array) -> Array:
        all_arrays = dict(zip(names, held, strict=True)) | {names[place]: array}
        return dense(topology.nodes, topology.physical_modes, all_arrays).ravel()

    columns = [with_node(unit.reshape(shape)) for unit in np.eye(math.prod(shape), dtype=complex)]
    jacobian = np.stack(columns, axis=1)
    normal, taken = own.normal_matrix(place)
    node = held[place].reshape((*normal.shape[:2], -1))
    product = (normal @ node * 2.0**taken).reshape(-1)
    assert relative_error(product, jacobian.conj().T @ jacobian @ held[place].ravel()) < 1e-11
    right, other = summands.right_side(place)
    assert right.shape == shape
    expected = jacobian.conj().T @ exact.ravel()
    assert relative_error(right.ravel() * 2.0**other, expected) < 1e-11


def test_a_sweep_takes_few_products_whatever_the_number_of_nodes() -> None:
    for n in (5, 30, 200):
        topology = ring(n, 2, 2, np.random.default_rng(0)).topology
        steps = tree_of(topology, tuple(dict.fromkeys(topology.modes, 2).items())).steps
        assert sum(what == "update" for what, _ in steps) == n
        assert len(steps) <= 4 * n


def test_the_order_of_products_of_a_grid_is_a_good_one() -> None:
    topology = grid(4, 4, 2, 2, np.random.default_rng(0)).topology
    sizes = dict.fromkeys(topology.contraction_modes, 6) | dict.fromkeys(topology.physical_modes, 2)
    # Quadrants, then halves: six products of matrices with 6^4 rows and columns.
    assert work_of_sweep(tree_of(topology, tuple(sizes.items())), sizes, []) < 4 * 7 * 6**12


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_compiled_products_are_those_of_einsum(in_order: bool, dtype: str) -> None:
    rng = np.random.default_rng(0)
    size = {"a": 3, "b": 1, "c": 2, "d": 4, "e": 1, "f": 5}
    for _ in range(60):
        names = list(size)
        held = [
            tuple(rng.permutation(names)[: rng.integers(1, 6)]) for _ in range(rng.integers(1, 5))
        ]
        output = [m for m in names if rng.random() < 0.4 and any(m in modes for modes in held)]
        drawn = [rng.standard_normal([size[m] for m in modes]).astype(dtype) for modes in held]
        # Arrays as other products leave them: not all contiguous.
        drawn = [a.T.copy().T if rng.random() < 0.5 else a for a in drawn]
        array, modes = multiplied(np, list(zip(drawn, held, strict=True)), output, in_order)
        equation = ",".join(map("".join, held)) + "->" + "".join(output)
        assert sorted(modes) == sorted(output)
        assert not in_order or list(modes) == output
        found = np.transpose(array, [modes.index(m) for m in output])
        assert np.allclose(found, np.einsum(equation, *drawn), atol=1e-12)


@pytest.mark.parametrize("name", ["grid3x3", "ring4", "cp4", "hyperedge_and_modes"])
def test_layers_that_may_be_exchanged_are_multiplied_apart(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = BY_NAME[name]
    s = network(case, arrays(case, 0)) - 2 * network(case, arrays(case, 1, 1))
    target = target_of(np, s)
    sizes = sizes_within(target.topology, s.shape, caps(s, 3))
    tree = tree_of(target.topology, tuple(sizes.items()))
    kets = [kets_of_group(np, group) for group in target.groups]
    start, n_apart = next(starts(np, target, sizes, 0)), 0

    def counted(*arguments: Any) -> Any:
        nonlocal n_apart
        n_apart += 1
        return apart(*arguments)

    apart = _recipes._product_of_layers
    monkeypatch.setattr(_recipes, "_product_of_layers", counted)
    found = []
    for much in (2**27, -1):
        monkeypatch.setattr(_recipes, "_MUCH", much)
        _recipes._compiled.cache_clear()
        found.append(swept(np, target, tree, kets, start))
        assert bool(n_apart) == (much < 0)
    _recipes._compiled.cache_clear()
    # A sweep solves badly conditioned equations, in which the two ways round differently.
    # The nodes themselves may differ along directions that change the network little.
    assert math.isclose(found[0].square, found[1].square, rel_tol=1e-5, abs_tol=1e-10)


def test_a_sweep_of_cp_networks_costs_what_their_gram_matrices_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works = []

    def counted(xp: Any, operands: Any, output: Any, *more: Any, **named: Any) -> Any:
        works.append(plan_for(operands, output)[0].n_multiplications)
        return multiplied(xp, operands, output, *more, **named)

    multiplied = _environments.multiplied
    monkeypatch.setattr(_environments, "multiplied", counted)
    rng = np.random.default_rng(0)
    n, size, rank, wanted, order = 40, 30, 3, 10, 3
    factors = {f"factor{k}": rng.standard_normal((n, size, rank)) for k in range(order)}
    s = NetworkStack(cp([np.ones((1, 1))] * order).topology, factors).sum()
    target = target_of(np, s)
    sizes = sizes_within(target.topology, s.shape, {"r": wanted})
    tree = tree_of(target.topology, tuple(sizes.items()))
    kets = [kets_of_group(np, group) for group in target.groups]
    swept(np, target, tree, kets, next(starts(np, target, sizes, 0)))
    # Each factor meets its stack at most three times; Hadamard products are small beside that.
    assert sum(works) <= 3 * 1.2 * order * size * wanted * (n * rank + wanted)


def test_a_sweep_lowers_the_error() -> None:
    rng = np.random.default_rng(0)
    s = tnsum.add(*(grid(3, 3, 2, 2, rng) for _ in range(3)))
    target = target_of(np, s)
    sizes = sizes_within(target.topology, s.shape, caps(s, 3))
    tree = tree_of(target.topology, tuple(sizes.items()))
    kets = [kets_of_group(np, group) for group in target.groups]
    arrays = next(starts(np, target, sizes, 0))
    squares = []
    for _ in range(6):
        now = swept(np, target, tree, kets, arrays)
        squares.append(now.square)
        arrays = now.arrays
    assert squares == sorted(squares, reverse=True)
    assert 0 < squares[-1] < 0.9 * squares[0]


def test_rounding_that_hides_the_error_is_known() -> None:
    rng = np.random.default_rng(0)
    x, y = ring(5, 3, 2, rng), ring(5, 3, 2, rng)
    s = x + 1e-4 * y
    target = target_of(np, s)
    sizes = sizes_within(target.topology, s.shape, caps(s, 2))
    tree = tree_of(target.topology, tuple(sizes.items()))
    kets = [kets_of_group(np, group) for group in target.groups]
    # The same tensor, with large entries that cancel.
    shear = np.array([[1.0, 1e4], [0.0, 1.0]])
    held = {}
    for name, array in x.arrays.items():
        held[name] = np.einsum("aib,ac,bd->cdi", array, np.linalg.inv(shear).T, shear)
    for start, doubts in ((list(held.values()), True), (balanced(target.topology, held), False)):
        found = swept(np, target, tree, kets, start)
        nodes = dict(zip(held, scaled_nodes(found.arrays, found.exponent), strict=True))
        true = true_error(s, Network.from_topology(target.topology, nodes))
        assert abs(found.square - true**2) <= found.doubt + 8 * EPS["float64"]
        assert (found.doubt > 1e-10) == doubts


def test_nodes_that_drift_are_brought_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fitting, "MOST_SWEEPS", 20)
    case = BY_NAME["tree8"]
    x, y = (network(case, arrays(case, k, k)) for k in range(2))
    assert fit(x - 2.5 * y, 4)[1] < 1e-6


def balanced(topology: Topology, held: Mapping[str, Array]) -> list[Array]:
    found = list(held.values())
    for _ in range(10):
        found = balanced_nodes(np, topology, found)
    return found


@pytest.mark.parametrize("name", ["ring4", "cp4", "star4", "hyperedge_and_modes"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_nodes_in_balance(name: str, dtype: str) -> None:
    case = BY_NAME[name]
    sizes = dict.fromkeys(network(case, arrays(case, 0)).topology.modes, 3)
    x = tnsum.random_network(Topology(case.nodes, case.physical_modes), sizes, 0, dtype)
    rng = np.random.default_rng(0)
    held = dict(x.arrays)
    for mode in x.topology.contraction_modes:
        # Factors that cancel: the tensor stays, the nodes are far from balance.
        factors = 10.0 ** rng.uniform(-1, 1, x.ranks[mode])
        names = x.topology.holders(mode)
        for name_, factor in zip(names[:2], (factors, 1 / factors), strict=True):
            k = x.topology.nodes[name_].index(mode)
            shape = [-1 if j == k else 1 for j in range(held[name_].ndim)]
            held[name_] = held[name_] * factor.reshape(shape)
    found = list(held.values())
    for _ in range(25):
        found = balanced_nodes(np, x.topology, found)
    y = Network.from_topology(x.topology, dict(zip(held, found, strict=True)))
    assert relative_error(wide(y), wide(x)) < 1e-9
    again = balanced_nodes(np, x.topology, found)
    for a, b in zip(found, again, strict=True):
        assert np.allclose(a / np.linalg.norm(a), b / np.linalg.norm(b), atol=1e-4)
    for mode in x.topology.contraction_modes:
        grams = []
        for name_ in x.topology.holders(mode):
            k = x.topology.nodes[name_].index(mode)
            matrix = np.moveaxis(y.arrays[name_], k, -1).reshape(-1, x.ranks[mode])
            gram = matrix.conj().T @ matrix
            grams.append(gram / np.linalg.norm(gram))
        if len(grams) == 2:
            assert np.allclose(grams[0], grams[1].conj(), atol=1e-3)
        else:
            assert np.allclose(
                [np.diag(g) / np.trace(g) for g in grams],
                np.diag(grams[0]) / np.trace(grams[0]),
                atol=1e-4,
            )


# starts


def test_the_first_start_is_the_mean_of_the_nodes() -> None:
    rng = np.random.default_rng(0)
    base = ring(4, 3, 2, rng)
    weights = [1.0, 2.0, 5.0]
    terms = [perturbed(base, 1e-3, rng) for _ in weights]
    s = tnsum.add(*terms, weights=weights)
    target = target_of(np, s)
    sizes = sizes_within(target.topology, s.shape, caps(s, 2))
    first = next(starts(np, target, sizes, 0))
    nodes = dict(zip(target.topology.nodes, first, strict=True))
    start = Network.from_topology(target.topology, nodes)
    # Right to first order: the error is of second order in what the terms differ by.
    exact = wide_sum(s)
    found = wide(start)
    scale = np.vdot(found, exact) / np.vdot(found, found)
    assert relative_error(scale * found, exact) < 1e-5


def test_a_square_below_zero_is_all_rounding() -> None:
    assert Fit([], 0.0, -0.5, 0.0).most == 0.5


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_blocks_of_all_summands_are_the_sum_but_for_its_length(dtype: str) -> None:
    case = BY_NAME["ring4"]
    x, y = (network(case, arrays(case, k, k, dtype)) for k in range(2))
    s = x - 0.01 * y
    target = target_of(s.namespace, s)
    nodes = _blocks(s.namespace, target.topology, dict(s.ranks), target.groups)
    found = wide(Network.from_topology(target.topology, nodes))
    exact = wide_sum(s)
    length = np.vdot(found, exact) / np.vdot(found, found)
    assert relative_error(length * found, exact) < 1e-12


def test_starts_have_the_sizes_and_no_zeros() -> None:
    rng = np.random.default_rng(0)
    x, y = ring(4, 3, 3, rng), ring(4, 3, 1, rng)
    for s in (x + y, +x, 0 * x + y, NetworkStack.from_networks([x] * 5).sum(np.arange(5.0))):
        for ranks in (caps(s, 2), caps(s, 4) | {"r1": 1}):
            target = target_of(np, s)
            sizes = sizes_within(target.topology, s.shape, ranks)
            found = list(starts(np, target, sizes, 0))
            assert len(found) == 1 + (s.n_summands > 1)
            for start in found:
                for array, held in zip(start, target.topology.nodes.values(), strict=True):
                    assert array.shape == tuple(sizes[m] for m in held)
                    assert np.all(array != 0)
                    assert np.all(np.isfinite(array))


def test_blocks_are_the_summands_farthest_from_those_before() -> None:
    rng = np.random.default_rng(0)
    terms = [
        tnsum.random_network(ring(3, 2, 2, rng).topology, 2, k // 2, "complex128")
        for k in range(12)
    ]
    weights = rng.standard_normal(12) + 1j * rng.standard_normal(12)
    target = target_of(np, tnsum.add(*terms, weights=weights))
    vectors = np.stack([w * wide(x).ravel() for w, x in zip(weights, terms, strict=True)])
    vectors = vectors.astype(complex)
    chosen = _pivots(np, target.groups)
    for _ in range(5):
        g, m = next(chosen)
        left = np.linalg.norm(vectors, axis=1)
        assert g == 0
        assert left[m] >= (1 - 1e-9) * np.max(left)
        direction = vectors[m] / left[m]
        vectors = vectors - np.outer(vectors @ direction.conj(), direction)


def test_ranks_that_are_too_large_are_cut() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((3, 4, 6), (7, 6)))
    product = (a.reshape(12, 6) @ b.T).reshape(3, 4, 7)
    left, right = _cut_between(np, [a, b], 2)
    values = np.linalg.svd(product.reshape(12, 7), compute_uv=False)
    error = np.linalg.norm(np.tensordot(left, right, (2, 1)) - product)
    assert math.isclose(error, np.linalg.norm(values[2:]), rel_tol=1e-9)
    sizes = np.array([3.0, 0.1, 2.0, 1.0, 0.0])
    one, two, three = _cut_hyperedge(
        np, [a[..., :5] / a[..., :5], b[:, :5] / b[:, :5], sizes[None]], 3
    )
    assert three.ravel().tolist() == [3.0, 2.0, 1.0]
    assert (one.shape, two.shape) == ((3, 4, 3), (7, 3))


# CP


def dictionary(
    seed: int,
    n_terms: int,
    sizes: Sequence[int],
    rank: int,
    dtype: str = "float64",
    alike: float = 0,
) -> NetworkSum:
    """A sum of CP networks of rank 2, whose columns are drawn from `rank` for each mode."""
    rng = np.random.default_rng(seed)
    columns = [rng.standard_normal((n, rank)) + alike * rng.standard_normal((n, 1)) for n in sizes]
    if dtype.startswith("complex"):
        columns = [c + 1j * rng.standard_normal(c.shape) for c in columns]
    terms = []
    for _ in range(n_terms):
        chosen = rng.choice(rank, 2, replace=False)
        factors = [(c[:, chosen] * rng.uniform(0.5, 2, 2)).astype(dtype) for c in columns]
        terms.append(cp(factors))
    return tnsum.add(*terms, weights=rng.choice([-1.0, 1.0, 2.0], n_terms))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cp_of_a_known_rank_is_found(dtype: str) -> None:
    for seed, sizes in enumerate([(10, 12, 8), (6, 5, 4, 3), (4, 4, 4)]):
        for alike in (0, 2):
            s = dictionary(seed, 20, sizes, 5, dtype, alike)
            found, error = fit(s, 5)
            assert assert_honest(s, found, error) < (1e-6 if EPS[dtype] < 1e-10 else 1e-3)
            assert dict(found.ranks) == {"r": 5}


def test_cp_whose_columns_are_not_in_the_list() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        columns = [rng.standard_normal((n, 5)) for n in (10, 12, 8)]
        # Each component as a sum of three, in which its first column is split.
        shares = rng.standard_normal((2, 10, 5))
        first = [shares[0], shares[1], columns[0] - shares[0] - shares[1]]
        s = tnsum.add(*(cp([share, *columns[1:]]) for share in first))
        assert assert_honest(s, *fit(s, 5)) < 1e-6


def test_many_cp_terms_and_few_components() -> None:
    rng = np.random.default_rng(0)
    factors = {f"factor{k}": rng.standard_normal((200, 15, 3)) for k in range(3)}
    s = NetworkStack(cp([np.ones((1, 1))] * 3).topology, factors).sum(rng.standard_normal(200))
    errors = [assert_honest(s, *fit(s, rank)) for rank in (1, 5, 20)]
    assert errors == sorted(errors, reverse=True)


# CP to Tucker


@pytest.mark.parametrize("dtype", DTYPES)
def test_cp_to_tucker_is_exact(dtype: str) -> None:
    rng = np.random.default_rng(0)

    def random(sizes: Sequence[int], rank: int) -> Network:
        return cp([rng.standard_normal((n, rank)).astype(dtype) for n in sizes])

    for sizes in ((4,), (4, 3), (4, 3, 5), (2, 3, 2, 3)):
        x, y, z = (random(sizes, rank) for rank in (3, 2, 3))
        stack = NetworkStack.from_networks([x, z])
        for s, n in ((x, 3), (x - 2 * y, 5), (stack.sum([3, -1]) + y, 8), (1j * x + 0 * y, 5)):
            found = cp_to_tucker(s)
            as_sum = s if isinstance(s, NetworkSum) else +s
            assert found.n_summands == n
            assert (found.dtype, found.shape) == (as_sum.dtype, s.shape)
            assert relative_error(wide_sum(found), wide_sum(as_sum)) < 50 * EPS[dtype]
            assert (
                found.topology
                == tnsum.tucker(np.ones((1,) * len(sizes)), [np.ones((1, 1))] * len(sizes)).topology
            )
            # Columns, and a core of ones: nothing of rank to the power of the order.
            assert found.n_parameters == n * (sum(sizes) + 1)


def test_cp_to_tucker_keeps_physical_names_and_finds_others() -> None:
    rng = np.random.default_rng(0)
    x = Network(
        {
            "C": (rng.standard_normal((3, 5)), ("s", "r1")),
            "A": (rng.standard_normal((4, 3)), ("time", "s")),
            "B": (rng.standard_normal((3, 2)), ("s", "core")),
        },
        ("time", "r1", "core"),
    )
    found = cp_to_tucker(x)
    assert found.physical_modes == x.physical_modes
    assert found.topology.nodes == {
        "core": ("r0", "r1_", "r2"),
        "factor0": ("time", "r0"),
        "factor1": ("r1", "r1_"),
        "factor2": ("core", "r2"),
    }
    assert relative_error(wide_sum(found), wide(x)) < 1e-14


def test_cp_to_tucker_then_compress() -> None:
    s = dictionary(0, 50, (20, 15, 10), 5)
    c = compress(cp_to_tucker(s), 1e-8)
    assert dict(c.ranks) == {"r0": 5, "r1": 5, "r2": 5}
    assert c.error_kind == "bound"
    assert relative_error(wide(c.network), wide_sum(s)) <= c.error < 1e-8


@pytest.mark.parametrize(
    "name", ["array_api_strict", pytest.param("torch", marks=pytest.mark.large)]
)
def test_cp_to_tucker_in_other_libraries(name: str) -> None:
    of = library(name)
    x, y = (network(BY_NAME["cp3"], arrays(BY_NAME["cp3"], k, k), of) for k in range(2))
    found = cp_to_tucker(x - 2 * y)
    assert found.namespace is x.namespace
    assert relative_error(wide_sum(found, of.to_numpy), wide_sum(x - 2 * y, of.to_numpy)) < 1e-14


# errors


RING = tnsum.tensor_ring([np.ones((2, 2, 2))] * 3)
NOT_FINITE = "The entries and weights of all summands must be finite; some are not."
NOT_CP = (
    "cp_to_tucker needs a CP network, each of whose nodes holds one physical mode and the one "
    "contraction mode that all of them share, as tnsum.cp makes it; a network with nodes {}, physical "
    "modes {} and contraction modes {} came."
)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: fit(RING + scaled(RING, math.nan), 2), NetworkError, NOT_FINITE),
    (lambda: fit(RING + 0 * scaled(RING, math.inf), 2), NetworkError, NOT_FINITE),
    (lambda: fit(math.inf * RING, 2), NetworkError, NOT_FINITE),
    (lambda: fit(RING + math.nan * RING, 100), NetworkError, NOT_FINITE),
    (lambda: cp_to_tucker(np.ones(3)), NetworkError,  # type: ignore[arg-type]
     "A Network or NetworkSum must come; ndarray came."),
    (lambda: cp_to_tucker(NetworkStack.from_networks([cp([np.eye(2)] * 2)])),  # type: ignore[arg-type]
     NetworkError, "A Network or NetworkSum must come; NetworkStack came. Say stack.sum() first."),
    (lambda: cp_to_tucker(cp([np.ones((1, 1))] * 61)), NetworkError,
     "A node must have at most 60 modes; node 'core' has 61. Split it, or leave out modes of size one."),
    (lambda: cp_to_tucker(RING), TopologyError,
     NOT_CP.format(("node0", "node1", "node2"), ("i0", "i1", "i2"), ("r0", "r1", "r2"))),
    (lambda: cp_to_tucker(RING + RING), TopologyError,
     NOT_CP.format(("node0", "node1", "node2"), ("i0", "i1", "i2"), ("r0", "r1", "r2"))),
]  # fmt: skip
NOT_CP_EQUATIONS = [
    *(
        "ab,ia,jb->ij",
        "ir,ir->i",
        "irr->i",
        "r,ir->i",
        "i,j->ij",
        "irs,jrs->ij",
        "ir,jr->ijr",
        "rs,rs->",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    check_message(call, error, message)


@pytest.mark.parametrize("equation", NOT_CP_EQUATIONS)
def test_what_is_not_cp(equation: str) -> None:
    terms = equation.split("->")[0].split(",")
    x = Network.from_einsum(equation, *(np.ones((2,) * len(term)) for term in terms))
    topology = x.topology
    names = tuple(topology.nodes), topology.physical_modes, topology.contraction_modes
    check_message(lambda: cp_to_tucker(x), TopologyError, NOT_CP.format(*names))


def test_every_raise_is_in_the_table() -> None:
    folder = Path(tnsum.__file__).parent / "compression"
    ours = "_cp", "_environments", "_fitting", "_starts", "_sweeps", "_targets", "_walks"
    files = [folder / f"{name}.py" for name in ours]
    clock = _fitting._Clock(None, -1.0)
    clock.count(1.0, 0)
    # That the time is up ends a sweep, and is caught.
    calls = [*(call for call, *_ in ERRORS), clock.tick]
    assert not unreached(files, calls)
