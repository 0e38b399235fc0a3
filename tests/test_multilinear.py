"""The paper's notation against formulas written out with indices, in several array libraries."""

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tnsum
from tnsum.multilinear import (
    contraction_product,
    fold,
    kronecker,
    mode_product,
    outer,
    superdiagonal,
    unfold,
    vec,
)

SHAPES = [(3,), (2, 3), (3, 2, 4), (2, 3, 1, 4), (2, 3, 2, 1, 3)]
MODES = [(shape, mode) for shape in SHAPES for mode in range(len(shape))]


@pytest.fixture(
    params=["numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.large)]
)
def xp(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def numbered(shape: tuple[int, ...], start: float = 1.0) -> NDArray[np.float64]:
    """Array whose entries all differ and are not zero."""
    return start + np.arange(float(prod(shape))).reshape(shape)


def same(got: Any, expected: NDArray[Any], xp: Any = np) -> None:
    """Assert that both have one shape, one dtype and equal entries, and that xp made `got`."""
    assert isinstance(got, type(xp.asarray(expected)))
    found = np.asarray(got)
    assert found.dtype == expected.dtype
    assert expected.size == 0 or np.any(expected)
    np.testing.assert_array_equal(found, expected, strict=True)


def unfolded(x: NDArray[Any], mode: int) -> NDArray[Any]:
    """Kolda and Bader: entry (i_0, i_1, ...) stands in row i_n, column sum over k of i_k J_k."""
    others = [k for k in range(x.ndim) if k != mode]
    result = np.zeros((x.shape[mode], prod(x.shape[k] for k in others)), x.dtype)
    for index in product(*map(range, x.shape)):
        strides = (prod(x.shape[m] for m in others if m < k) for k in others)
        column = sum(index[k] * stride for k, stride in zip(others, strides, strict=True))
        result[index[mode], column] = x[index]
    return result


@pytest.mark.parametrize(("shape", "mode"), MODES)
def test_unfold_orders_columns_as_kolda_and_bader(
    xp: Any, shape: tuple[int, ...], mode: int
) -> None:
    x = numbered(shape)
    for wanted in (mode, mode - len(shape)):
        same(unfold(xp.asarray(x), wanted), unfolded(x, mode), xp)


@pytest.mark.parametrize(("shape", "mode"), MODES)
def test_fold_undoes_unfold(xp: Any, shape: tuple[int, ...], mode: int) -> None:
    x = numbered(shape)
    for wanted in (mode, mode - len(shape)):
        same(fold(xp.asarray(unfolded(x, mode)), wanted, shape), x, xp)


def test_unfold_and_fold_take_empty_arrays(xp: Any) -> None:
    for shape, mode in (((0, 3), 0), ((0, 3), 1), ((2, 0, 3), 0)):
        x = np.zeros(shape)
        same(unfold(xp.asarray(x), mode), unfolded(x, mode), xp)
        same(fold(xp.asarray(unfolded(x, mode)), mode, shape), x, xp)


@pytest.mark.parametrize("shape", [(), *SHAPES])
def test_vec_stacks_the_columns_of_the_first_unfolding(xp: Any, shape: tuple[int, ...]) -> None:
    x = numbered(shape)
    same(vec(xp.asarray(x)), x.ravel(order="F"), xp)
    if shape:
        same(vec(xp.asarray(x)), unfolded(x, 0).ravel(order="F"), xp)


@pytest.mark.parametrize(("shape", "mode"), MODES)
def test_mode_product_multiplies_every_fibre(xp: Any, shape: tuple[int, ...], mode: int) -> None:
    x, matrix = numbered(shape), numbered((5, shape[mode]), 2.0)
    expected = np.apply_along_axis(lambda fibre: matrix @ fibre, mode, x)
    same(mode_product(xp.asarray(x), xp.asarray(matrix), mode), expected, xp)
    same(mode_product(xp.asarray(x), xp.asarray(matrix), mode - len(shape)), expected, xp)


def test_mode_product_is_the_matrix_product_of_the_unfolding(xp: Any) -> None:
    x, matrix = numbered((3, 2, 4)), numbered((5, 2))
    got = mode_product(xp.asarray(x), xp.asarray(matrix), 1)
    same(unfold(got, 1), matrix @ unfolded(x, 1), xp)


@pytest.mark.parametrize(
    ("x_shape", "y_shape", "m", "n", "equation"),
    [
        ((2, 3), (3, 4), 0, 1, "ab,bc->ac"),
        ((2, 3, 4), (5, 3), 1, 1, "abc,db->acd"),
        ((2, 3, 4), (4, 5, 2), 2, 0, "abc,dea->bcde"),
        ((2, 3, 4), (2, 3), -1, -2, "abc,db->acd"),
        ((3,), (3,), 0, 0, "a,a->"),
    ],
)
def test_contraction_product_sums_mode_n_of_x_with_mode_m_of_y(
    xp: Any, x_shape: tuple[int, ...], y_shape: tuple[int, ...], m: int, n: int, equation: str
) -> None:
    x, y = numbered(x_shape), numbered(y_shape, 2.0)
    expected = np.asarray(np.einsum(equation, x, y))
    same(xp.asarray(contraction_product(xp.asarray(x), xp.asarray(y), m=m, n=n)), expected, xp)


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (4, 2)],
        [(2,), (3,), (4,)],
        [(2, 1, 3), (1, 2, 2)],
        [(2, 3), (3, 2), (1, 2)],
        [(2, 3)],
        [(), ()],
    ],
)
def test_kronecker_multiplies_from_left_to_right(xp: Any, shapes: list[tuple[int, ...]]) -> None:
    arrays = [numbered(shape, 1.0 + k) for k, shape in enumerate(shapes)]
    expected = np.asarray(arrays[0])
    for array in arrays[1:]:
        expected = np.kron(expected, array)
    same(xp.asarray(kronecker(*map(xp.asarray, arrays))), np.asarray(expected), xp)


def test_kronecker_entry_is_the_product_of_the_entries() -> None:
    a, b = numbered((2, 3, 2)), numbered((3, 1, 2), 5.0)
    got = kronecker(a, b)
    for i, j in product(np.ndindex(a.shape), np.ndindex(b.shape)):
        place = tuple(p * size + q for p, q, size in zip(i, j, b.shape, strict=True))
        assert got[place] == a[i] * b[j]


def test_outer_puts_the_modes_one_after_the_other(xp: Any) -> None:
    a, b, c = numbered((2,)), numbered((3, 4), 2.0), numbered((2,), 3.0)
    arrays = [xp.asarray(array) for array in (a, b, c)]
    same(outer(*arrays), np.einsum("i,jk,l->ijkl", a, b, c), xp)
    same(outer(arrays[1]), b, xp)
    same(vec(outer(*arrays[:1], *arrays[2:])), np.kron(c, a), xp)


def placed(blocks: Iterable[NDArray[Any]], shared: set[int]) -> NDArray[Any]:
    """Every entry of every block at its place, one by one."""
    blocks = list(blocks)
    starts = [[sum(b.shape[k] for b in blocks[:m]) * (k not in shared) for k in range(blocks[0].ndim)]
              for m in range(len(blocks))]  # fmt: skip
    shape = [
        blocks[0].shape[k] if k in shared else sum(block.shape[k] for block in blocks)
        for k in range(blocks[0].ndim)
    ]
    result = np.zeros(shape, np.result_type(*blocks))
    for block, start in zip(blocks, starts, strict=True):
        for index in np.ndindex(block.shape):
            result[tuple(np.add(index, start).astype(int))] += block[index]
    return result


@pytest.mark.parametrize(
    ("shapes", "shared"),
    [
        ([(2, 3), (1, 2), (3, 1)], ()),
        ([(2, 3, 1), (1, 2, 2)], ()),
        ([(2, 3, 1), (2, 1, 2), (2, 2, 2)], (0,)),
        ([(2, 3, 4), (1, 3, 4)], (1, 2)),
        ([(2, 3, 4), (2, 1, 4)], (-1, 0)),
        ([(2, 3), (2, 3), (2, 3)], (0, 1)),
        ([(2, 3), (2, 3)], (1, 0, -1)),
        ([(2,), (3,), (1,)], ()),
        ([(2, 3)], (1,)),
        ([(), ()], ()),
    ],
)
def test_superdiagonal_places_each_entry(
    xp: Any, shapes: list[tuple[int, ...]], shared: tuple[int, ...]
) -> None:
    blocks = [numbered(shape, 10.0**k) for k, shape in enumerate(shapes)]
    expected = placed(blocks, {k % len(shapes[0]) for k in shared})
    same(xp.asarray(superdiagonal(*map(xp.asarray, blocks), shared=shared)), expected, xp)


@pytest.mark.parametrize("shared", [(), (0,), (0, 1)])
@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float32", "float64"), "float64"),
        (("float64", "complex128"), "complex128"),
        (("complex64", "float32"), "complex64"),
        (("float64", "complex64"), "complex128"),
        (("float32", "float32"), "float32"),
    ],
)
def test_superdiagonal_has_the_result_type_of_its_blocks(
    xp: Any, shared: tuple[int, ...], dtypes: tuple[str, ...], expected: str
) -> None:
    blocks = []
    for k, dtype in enumerate(dtypes):
        block = numbered((2, 3), k + 1.0).astype(dtype)
        blocks.append(block + (np.asarray(1j, dtype) if "complex" in dtype else 0))
    got = superdiagonal(*map(xp.asarray, blocks), shared=shared)
    same(got, placed(blocks, set(shared)).astype(expected), xp)


def test_superdiagonal_leaves_its_blocks_alone() -> None:
    blocks = [numbered((2, 2)), numbered((2, 2), 7.0)]
    for shared in ((), (0,), (0, 1)):
        superdiagonal(*blocks, shared=shared)[...] = 0
        same(blocks[0], numbered((2, 2)))


@pytest.mark.parametrize("bad", [0.5, 1.0, "0", None])
def test_a_mode_is_an_integer(bad: Any) -> None:
    for call in (
        lambda: unfold(numbered((2, 2)), bad),
        lambda: fold(numbered((2, 2)), bad, (2, 2)),
        lambda: mode_product(numbered((2, 2)), numbered((2, 2)), bad),
    ):
        with pytest.raises((TypeError, tnsum.ModeError)):
            call()


def tucker_of_order(order: int, size: int | None = None) -> tuple[Any, Any, list[Any]]:
    """A Tucker network with random core and factors, all sizes different unless given."""
    rng = np.random.default_rng(order)
    core = rng.standard_normal([size or 2 + n % 2 for n in range(order)])
    factors = [rng.standard_normal((size or 4 - n % 3, core.shape[n])) for n in range(order)]
    return tnsum.tucker(core, factors), core, factors


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_unfolding_of_a_tucker_network_holds_for_every_mode(order: int) -> None:
    network, core, factors = tucker_of_order(order)
    for n in range(order):
        others = [factors[k] for k in reversed(range(order)) if k != n]
        expected = factors[n] @ unfold(core, n) @ kronecker(*others).T
        np.testing.assert_allclose(unfold(network.contract(), n), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("order", [3, 4, 5])
def test_equation_3_as_printed_fails_between_the_first_and_the_last_mode(order: int) -> None:
    # Printed: A^(N) x ... x A^(n-1) x A^(n+1) x ... x A^(1), the two next to n exchanged. Equal
    # sizes, so that the shapes fit.
    network, core, factors = tucker_of_order(order, size=2)
    for n in range(order):
        numbers = [k for k in reversed(range(order)) if k != n]
        if 0 < n < order - 1:
            left = numbers.index(n + 1)
            numbers[left : left + 2] = numbers[left + 1], numbers[left]
        printed = factors[n] @ unfold(core, n) @ kronecker(*(factors[k] for k in numbers)).T
        difference = np.linalg.norm(printed - unfold(network.contract(), n))
        holds = difference < 1e-10 * np.linalg.norm(printed)
        assert holds == (n in (0, order - 1))


def test_the_papers_example_gives_the_printed_matrices() -> None:
    g_x, g_y = numbered((2, 2, 2)), numbered((2, 2, 2), 11.0)
    a_x, a_y, b_x, b_y = (numbered((2, 2), 3.0 * k) for k in range(1, 5))
    c_x, c_y = np.array([[1.0, 2.0], [5.0, 6.0]]), np.array([[3.0, 4.0], [7.0, 8.0]])
    x, y = tnsum.tucker(g_x, [a_x, b_x, c_x]), tnsum.tucker(g_y, [a_y, b_y, c_y])
    z = (x + y).to_network()
    o = np.zeros((2, 2))

    g_z = unfold(z.arrays["core"], 0)
    x_1, x_2, y_1, y_2 = g_x[:, :, 0], g_x[:, :, 1], g_y[:, :, 0], g_y[:, :, 1]
    same(g_z, np.block([[x_1, o, x_2, o, o, o, o, o], [o, o, o, o, o, y_1, o, y_2]]))

    a_z, b_z, c_z = (z.arrays[f"factor{n}"] for n in range(3))
    same(a_z, np.block([a_x, a_y]))
    same(c_z, np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]))
    u = kronecker(c_z, b_z)
    row = np.block([b_x, b_y])
    same(u, np.block([[1 * row, 2 * row, 3 * row, 4 * row], [5 * row, 6 * row, 7 * row, 8 * row]]))

    sparse = np.block([[x_1, x_2, o, o], [o, o, y_1, y_2]])
    last = np.block(
        [
            [1 * b_x.T, 5 * b_x.T],
            [2 * b_x.T, 6 * b_x.T],
            [3 * b_y.T, 7 * b_y.T],
            [4 * b_y.T, 8 * b_y.T],
        ]
    )
    z_1 = np.block([a_x, a_y]) @ sparse @ last
    same(a_z @ g_z @ u.T, z_1)
    same(unfold(z.contract(), 0), z_1)
    same(unfold(x.contract() + y.contract(), 0), z_1)

    # In its last lines K_1 and K_2 stand below each other without the printed transposition.
    wide = np.block([[unfold(g_x, 0), np.zeros((2, 4))], [np.zeros((2, 4)), unfold(g_y, 0)]])
    k_1, k_2 = kronecker(c_x, b_x).T, kronecker(c_y, b_y).T
    same(sparse, wide)
    same(last, np.block([[k_1], [k_2]]))
