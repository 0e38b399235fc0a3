"""The parts of a sketch one by one, against what they stand for: norms, products, test tensors."""

import math
from typing import Any

import numpy as np
import pytest

from compression_cases import binary_tree, comb, decaying, star, train, true_error
from tnsum import Network, NetworkStack, add, compress, distance, inner, norm, tensor_train
from tnsum._numpy import NUMPY
from tnsum._scale import are_alike, rescaled_together
from tnsum.compression import _products, _test_tensors
from tnsum.compression._branches import branches_of, group_of
from tnsum.compression._norms import log2_of_products
from tnsum.compression._products import Factor
from tnsum.compression._sketch import _Sketch, sketched_bases


def flat(k: Any) -> Any:
    return np.ones_like(k)


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


# products


@pytest.mark.parametrize("n_children", [0, 1, 2, 3])
@pytest.mark.parametrize("n_summands", [1, 37])
@pytest.mark.parametrize("is_kept", [True, False])
def test_products_are_those_of_each_summand(
    n_children: int, n_summands: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_kept:
        monkeypatch.setattr(_products, "_KEPT", 0)
    rng = np.random.default_rng(n_children)
    ranks, sizes = (2, 3, 1)[:n_children], (3, 6, 2)[:n_children]
    array = numbers(rng, (n_summands, *ranks, 4, 5))
    below = [numbers(rng, (n_summands, *pair)) for pair in zip(ranks, sizes, strict=True)]
    factor, columns = Factor(NUMPY, array, below), numbers(rng, (n_summands, 5, 6))
    letters = "abc"[:n_children], "ijk"[:n_children]
    inputs = ",".join([f"m{letters[0]}nu", *("m" + "".join(p) for p in zip(*letters, strict=True))])
    right = np.einsum(f"{inputs}->mu{letters[1]}n", array, *below).reshape(n_summands, 5, -1)
    assert np.allclose(factor.whole(), right, rtol=1e-12)
    each = np.swapaxes(right, 1, 2) @ columns
    squares = [np.sum(np.abs(a.reshape(n_summands, -1)) ** 2, axis=1) for a in (array, *below)]
    assert np.allclose(factor.squares, np.prod(squares, axis=0), rtol=1e-12)
    assert np.allclose(factor.times(columns), each.sum(axis=0), rtol=1e-12)
    basis = numbers(rng, (right.shape[-1], 7))
    assert np.allclose(factor.projected(basis), right @ basis.conj(), rtol=1e-12)


def test_what_is_kept_is_small_on_the_way_too() -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal((4, 1, 100, 10, 2))
    large, small = rng.standard_normal((4, 1, 200)), rng.standard_normal((4, 100, 2))
    assert Factor(NUMPY, array, [large, small])._turned is None
    kept = rng.standard_normal((4, 1, 100))
    assert Factor(NUMPY, array, [kept, small])._turned is not None
    assert Factor(NUMPY, array, [kept, small], 2)._turned is None


@pytest.mark.parametrize(("n", "up"), [(1, 1), (3, 2), (4, 5)])
def test_products_with_tests_are_mixed_in_any_order(n: int, up: int) -> None:
    rng = np.random.default_rng(n)
    array, above = numbers(rng, (6, 3, n, up)), numbers(rng, (6, up, 16))
    tests = rng.standard_normal((2, n * 8, 8))
    found = _test_tensors._times_and_mixed(NUMPY, array, above, tests)
    blocks = above.reshape(6, up, 2, 8)
    right = np.einsum("mrnu,mukb,knbc->mrck", array, blocks, tests.reshape(2, n, 8, 8))
    assert np.allclose(found, right.reshape(6, 3, 16), rtol=1e-12)
    product = np.einsum("mrnu,muw->mrnw", array, above)
    assert np.allclose(_test_tensors._mixed(NUMPY, product, tests), found, rtol=1e-12)


def test_all_columns_drawn_at_once_see_product_states_alike() -> None:
    order, size = 48, 6
    nodes = np.random.default_rng(0).standard_normal((order, 300, 1, size, 1))
    nodes /= np.linalg.norm(nodes, axis=3, keepdims=True)
    tree = branches_of(tensor_train([np.ones((1, size, 1))] * order).topology)
    group = [nodes[0][:, 0], *nodes[1:]]
    outside = _test_tensors.TestTensors(NUMPY, tree, [group], 0).outside(48)
    first = next(columns[0] for columns in outside if columns)
    # Of some columns as of all: the logarithms of squares have a variance of 2 L / width, not 2 L / 8.
    for some in (first, first[:, :, :16]):
        logs = np.log(np.sum(some**2, axis=(1, 2)))
        assert np.std(logs) < 1.4 * math.sqrt(2 * order / 48)


# noise


def group_with(nodes: Any, size: int, dtype: str, weights: Any) -> Any:
    rng = np.random.default_rng(0)
    terms = [decaying(nodes, size, 2, flat, rng, dtype) for _ in weights]
    tree = branches_of(terms[0].topology)
    stack = NetworkStack.from_networks(terms)
    return tree, group_of(NUMPY, tree, stack, np.asarray(weights, dtype))


@pytest.mark.parametrize("nodes", [train(5), star(3), binary_tree(5)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_sketches_see_how_far_summands_cancel(nodes: Any, dtype: str) -> None:
    tree, group = group_with(nodes, 40, dtype, [1, 1, 1])
    # The same network three times, the last one small: the first two cancel.
    for array in group:
        array[1:] = array[:1]
    group[-1][1] *= -1
    group[-1][2] *= 1e-3
    for seed in range(10):
        found = sketched_bases(NUMPY, tree, [group], 1e-6, None, 2e-16, seed)
        assert found is not None
        assert found.about is not None
        ratio = found.about / float(np.linalg.norm(found.core))
        right = 2.0 ** log2_of_products(NUMPY, tree, [group], 2, -math.inf)
        assert right / 4 < ratio * float(np.linalg.norm(found.core)) < 4 * right
        assert right > math.sqrt(2) / 1e-3 * float(np.linalg.norm(found.core))


def test_products_of_norms_stand_for_what_no_sketch_sees() -> None:
    tree, group = group_with(train(3), 3, "float64", [1, -1])
    found = sketched_bases(NUMPY, tree, [group], 1e-6, None, 2e-16, 0)
    assert found is not None
    assert found.about is not None
    right = log2_of_products(NUMPY, tree, [group], 2, -math.inf)
    assert 2.0**right <= found.about * (1 + 1e-12)


def test_later_test_tensors_have_the_scale_of_the_first_ones() -> None:
    tree, group = group_with(binary_tree(6), 40, "float64", [1, 1])
    for log2 in (-30, 0, 30):
        held = [array * 2.0**log2 for array in group]
        tests = _test_tensors.TestTensors(NUMPY, tree, [held], 0)
        sketch = _Sketch(NUMPY, tests, 16, 8, 1e-6, math.inf, 2e-16)
        for some, more in zip(sketch._outside, tests.outside(640), strict=True):
            for a, b in zip(some, more, strict=True):
                sizes = [np.linalg.norm(each) / math.sqrt(each.shape[-1]) for each in (a, b)]
                assert 0.3 < sizes[0] / sizes[1] < 3


# sizes of numbers


@pytest.mark.parametrize("scale", [1.0, 2.0**-30, 2.0**30])
def test_norms_of_stars_with_many_arms(scale: float) -> None:
    rng = np.random.default_rng(0)
    tree = branches_of(decaying(star(12), 2, 1, flat, rng).topology)
    group = [rng.uniform(0.5, 1, (3, 4000, 1)).astype("float32") for _ in tree[:-1]]
    group += [(scale * rng.uniform(0.5, 1, (3, *(1,) * 14))).astype("float32")]
    right = sum(np.log2(np.linalg.norm(a.astype(float).reshape(3, -1), axis=1)) for a in group)
    right += math.log2(len(tree)) / 2
    found = log2_of_products(NUMPY, tree, [group], 1, -math.inf)
    assert abs(found - math.log2(np.sum(2.0**right))) < 1e-3


@pytest.mark.parametrize("nodes", [train(4), star(3), binary_tree(4), comb(3)])
@pytest.mark.parametrize("power", [1, 2])
def test_rounding_is_measured_by_nodes_times_what_hangs_at_them(nodes: Any, power: int) -> None:
    rng = np.random.default_rng(len(nodes))
    terms = [decaying(nodes, 3, 2, flat, rng, "complex128") for _ in range(3)]
    weights = np.asarray([1.0, -30.0, 0.5])
    tree = branches_of(terms[0].topology)
    group = group_of(NUMPY, tree, NetworkStack.from_networks(terms), weights)
    each = []
    for term, weight in zip(terms, weights, strict=True):
        products = []
        for name, modes in term.topology.nodes.items():
            hanging = [_norm_of_branch(term, name, mode) for mode in modes]
            products.append(np.linalg.norm(term.arrays[name]) * np.prod(hanging))
        each.append(abs(weight) * np.linalg.norm(products))
    right = np.linalg.norm(each, ord=power)
    assert math.isclose(2.0 ** log2_of_products(NUMPY, tree, [group], power, -math.inf), right)
    # Where it may be larger, it is not smaller.
    assert log2_of_products(NUMPY, tree, [group], power, math.inf) >= math.log2(right)


def _norm_of_branch(x: Network, name: str, mode: str) -> float:
    """The norm of all that hangs at a mode of a node, beyond that node."""
    nodes = x.topology.nodes
    beyond = {n for n in nodes if n != name and mode in nodes[n]}
    if not beyond:
        return 1.0
    while True:
        modes = {m for n in beyond for m in nodes[n]} - {mode}
        more = {n for n in nodes if n not in beyond and modes & set(nodes[n])}
        if not more:
            break
        beyond |= more
    number = {m: k for k, m in enumerate(x.topology.modes)}
    operands: list[Any] = []
    for n in beyond:
        operands += [x.arrays[n], [number[m] for m in nodes[n]]]
    kept = [number[m] for n in beyond for m in nodes[n] if m == mode or m in x.physical_modes]
    return float(np.linalg.norm(np.einsum(*operands, kept)))


def test_rounding_in_gauges_that_cancel_is_seen() -> None:
    # Neighbours are multiplied by a badly conditioned matrix and its inverse.
    rng = np.random.default_rng(0)
    x = decaying(binary_tree(4), 4, 3, flat, rng)
    bad = rng.standard_normal((3, 3)) @ np.diag([1.0, 1e-3, 1e-6]) @ rng.standard_normal((3, 3))
    arrays = {name: (np.array(a), x.topology.nodes[name]) for name, a in x.arrays.items()}
    first, second = x.topology.holders("r0")
    for name, matrix in ((first, bad), (second, np.linalg.inv(bad).T)):
        array, modes = arrays[name]
        k = modes.index("r0")
        arrays[name] = np.moveaxis(np.tensordot(array, matrix, (k, 0)), -1, k), modes
    y = Network(arrays, x.physical_modes)
    for method in ("direct", "sketch"):
        assert compress(x, method=method).error < 1e-13
        c = compress(y, method=method)
        assert 1e-13 < c.error < 1e-6
        assert true_error(x, c.network) <= c.error


def test_factors_of_long_products_must_be_nearer_to_one() -> None:
    array = np.full((2, 2), 2.0**12)
    (same,), exponent = rescaled_together(NUMPY, [array])
    assert same is array
    assert exponent == 0
    (near,), exponent = rescaled_together(NUMPY, [array], 2)
    assert np.array_equal(near, np.ones((2, 2)))
    assert exponent == 12


def scaled(*exponents: float) -> Any:
    return np.ones((len(exponents), 1)) * 2.0 ** np.array(exponents)[:, None]


@pytest.mark.parametrize(
    ("stacks", "is_so"),
    [
        ([[scaled(0, 0), scaled(0, 0)]], True),
        # All grow alike, along many nodes.
        ([[scaled(8, 8)] * 50], True),
        ([[scaled(8, 8)] * 50, [scaled(8)] * 50], True),
        # A node is large for all, somewhat and far.
        ([[scaled(0, 0), scaled(11, 11)]], True),
        ([[scaled(0, 0), scaled(31, 31)]], False),
        # One summand is smaller, somewhat and far.
        ([[scaled(0, -29), scaled(0, 0)]], True),
        ([[scaled(0, -29), scaled(0, -2)]], False),
        # Large in one place, small in another.
        ([[scaled(0, -16), scaled(-16, 0)]], False),
        # Groups that drift apart, node by node.
        ([[scaled(5)] * 8, [scaled(-5)] * 8], False),
        ([[scaled(0, -np.inf)]], False),
        ([[scaled(0, np.nan)]], False),
        ([[scaled(0, np.inf)]], False),
        ([[scaled(0)], [scaled(np.nan)]], False),
    ],
)
def test_summands_that_are_alike_need_no_scale_each(stacks: Any, is_so: bool) -> None:
    assert are_alike(stacks, 30) == is_so


def test_what_is_multiplied_at_once_must_be_nearer_to_one() -> None:
    kinds = [scaled(8, 8)] * 10
    assert are_alike([kinds], 30, 1)
    assert not are_alike([kinds], 30, 2)
    assert are_alike([[scaled(8, 8)] * 3], 30, 3)


@pytest.mark.parametrize("exponent", [-9, 6, 9])
@pytest.mark.parametrize("method", ["direct", "sketch"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_stars_of_many_large_or_small_arms(exponent: int, method: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    terms = [decaying(star(10), 2, 2, flat, rng, dtype) for _ in range(3)]
    right = compress(add(*terms), 1e-4, method=method)
    scale = 2.0**exponent
    held = [{n: a * scale if n != "core" else a for n, a in x.arrays.items()} for x in terms]
    large = [Network.from_topology(terms[0].topology, arrays) for arrays in held]
    found = compress(add(*large), 1e-4, method=method)
    assert found.ranks == right.ranks
    assert found.error < 1e-4
    core = {n: a / scale if n != "core" else a for n, a in found.network.arrays.items()}
    back = Network.from_topology(terms[0].topology, core)
    assert distance(back, right.network) < 1e-4 * norm(right.network)


def product_state(vector: Any, order: int, last: float, dtype: str) -> Network:
    """The train of one vector, at all places, times a number."""
    cores = [np.reshape(np.asarray(vector, dtype=dtype), (1, -1, 1))] * order
    return tensor_train([*cores[:-1], (cores[-1] * last).astype(dtype)])


@pytest.mark.parametrize("method", ["direct", "sketch"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_summands_that_are_large_on_the_way_push_nothing_out_of_range(
    method: str, dtype: str
) -> None:
    # All entries are at most one, but the second grows by a factor of 2**200 along its nodes.
    small = product_state([1, 0, 0], 400, 1.0, dtype)
    grown = product_state([1, 1, 0], 400, 2.0**-120, dtype)
    weights = [1.0, 2.0**-120]
    found = compress(add(small, grown, weights=weights), 1e-3, method=method)
    assert set(found.ranks.values()) == {1}
    assert found.error < 1e-3
    assert math.isclose(norm(found.network), 1.0, rel_tol=1e-3)
    assert math.isclose(inner(found.network, small).real, 1.0, rel_tol=1e-3)


@pytest.mark.parametrize("method", ["direct", "sketch"])
@pytest.mark.parametrize("zero", ["node", "weight"])
def test_summands_that_are_zero_set_no_scale(method: str, zero: str) -> None:
    rng = np.random.default_rng(0)
    x = decaying(train(10), 3, 2, flat, rng, "float32")
    small = x.topology, {name: array * 2.0**-15 for name, array in x.arrays.items()}
    other = Network.from_topology(
        x.topology, {n: a * (zero != "node") for n, a in x.arrays.items()}
    )
    weights = [1e-8, 1.0 if zero == "node" else 0.0]
    found = compress(
        add(Network.from_topology(*small), other, weights=weights), 1e-3, method=method
    )
    assert found.error < 1e-3
    # A network of norm 2**-177 is beyond the range of a number of its own precision.
    large = {name: array * 2.0**15 for name, array in found.network.arrays.items()}
    back = Network.from_topology(x.topology, large)
    assert distance(1e8 * back, x) < 1e-3 * norm(x)


@pytest.mark.parametrize("method", ["direct", "sketch"])
def test_sums_of_zero_and_of_huge_nodes_that_are_zero(method: str) -> None:
    x = product_state([0, 0, 0], 5, 1.0, "float64")
    y = product_state([2.0**50, 0, 0], 5, 0.0, "float64")
    found = compress(add(x, y, weights=[1.0, 0.0]), 1e-3, method=method)
    assert norm(found.network) == 0


# NumPy


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray])
def test_quick_functions_are_those_of_numpy(kind: Any) -> None:
    array = kind(numbers(np.random.default_rng(0), (2, 3, 4)))
    for quick, plain in (
        (NUMPY.reshape(array, (6, -1)), np.reshape(array, (6, -1))),
        (NUMPY.permute_dims(array, (2, 0, 1)), np.permute_dims(array, (2, 0, 1))),
        (NUMPY.matrix_transpose(array), np.matrix_transpose(array)),
    ):
        assert np.array_equal(quick, plain)
        assert quick.strides == plain.strides
    others = set(dir(np)) - {"reshape", "permute_dims", "matrix_transpose"}
    assert all(getattr(NUMPY, n) is getattr(np, n) for n in others if not n.startswith("__"))
