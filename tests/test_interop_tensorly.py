"""Networks from and to TensorLy: the same arrays, and the tensor that TensorLy itself reconstructs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oracle
import tnsum
from libraries import library, network, rounding
from raising import check_message, check_missing, unreached
from test_peers import peer
from tnsum import ModeError, Network, NetworkError, TopologyError
from tnsum.interop import tensorly as module
from tnsum.interop.tensorly import from_tensorly, to_tensorly
from topologies import CASES, DTYPES, Case, arrays

pytestmark = pytest.mark.large

KINDS = "tucker", "cp", "tensor_train", "operator_train", "tensor_ring"
CLASSES = {
    "tucker": ("tucker_tensor", "TuckerTensor", "tucker_to_tensor"),
    "cp": ("cp_tensor", "CPTensor", "cp_to_tensor"),
    "tensor_train": ("tt_tensor", "TTTensor", "tt_to_tensor"),
    "operator_train": ("tt_matrix", "TTMatrix", "tt_matrix_to_tensor"),
    "tensor_ring": ("tr_tensor", "TRTensor", "tr_to_tensor"),
}


def tensorly_class(kind: str) -> Any:
    file, name, _ = CLASSES[kind]
    return getattr(peer(f"tensorly.{file}"), name)


def dense(kind: str, theirs: Any) -> Any:
    """What TensorLy makes of its tensor."""
    file, _, function = CLASSES[kind]
    return getattr(peer(f"tensorly.{file}"), function)(theirs)


def random(seed: int, *shape: int, dtype: str = "float64") -> Any:
    rng = np.random.default_rng([seed, *shape])
    phases = rng.uniform(-0.5, 0.5, shape) * 1j if dtype.startswith("complex") else 0
    return (rng.uniform(0.5, 1.5, shape) * np.exp(phases)).astype(dtype)


def parts(kind: str, order: int = 3, dtype: str = "float64") -> Any:
    """What TensorLy's class is made of; sizes and ranks differ."""
    sizes = [3 + k % 3 for k in range(order)]
    ranks = [2 + k % 2 for k in range(order)]
    if kind == "tucker":
        factors = [random(k, sizes[k], ranks[k], dtype=dtype) for k in range(order)]
        return random(9, *ranks, dtype=dtype), factors
    if kind == "cp":
        return None, [random(k, n, 3, dtype=dtype) for k, n in enumerate(sizes)]
    left = ranks if kind == "tensor_ring" else [1, *ranks[1:]]
    right = [*left[1:], left[0]]
    between = [(n, n - 1) if kind == "operator_train" else (n,) for n in sizes]
    return [random(k, left[k], *between[k], right[k], dtype=dtype) for k in range(order)]


def held(theirs: Any) -> list[Any]:
    """The arrays of a tensor of TensorLy, but for weights."""
    core = [theirs.core] if hasattr(theirs, "core") else []
    return [*core, *theirs.factors]


# TensorLy has no Tucker tensors and no rings of order one.
ORDERS = [(kind, k) for kind in KINDS for k in (1, 2, 3, 5)
          if k > 1 or kind not in ("tucker", "tensor_ring")]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "order"), ORDERS)
def test_round_trips_are_exact_and_copy_nothing(kind: str, order: int, dtype: str) -> None:
    made = tensorly_class(kind)
    theirs = made(parts(kind, order, dtype))
    x = from_tensorly(theirs)
    assert x.dtype == dtype
    assert oracle.relative_error(x.contract(), dense(kind, theirs)) < rounding(dtype)
    for array, ours in zip(held(theirs), x.arrays.values(), strict=True):
        assert np.shares_memory(array, ours)
    back = to_tensorly(x, kind)
    assert type(back) is made
    assert back.shape == theirs.shape
    assert back.rank == theirs.rank
    for array, again in zip(held(theirs), held(back), strict=True):
        np.testing.assert_array_equal(array, again)
        assert np.shares_memory(array, again)
    again = from_tensorly(back)
    assert again.topology == x.topology
    if kind == "cp":
        np.testing.assert_array_equal(back.weights, np.ones(3))
        assert back.weights.dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_those_of_the_builders(kind: str) -> None:
    x = from_tensorly(tensorly_class(kind)(parts(kind)))
    expected = {
        "tucker": tnsum.tucker,
        "cp": lambda _, factors: tnsum.cp(factors),
        "tensor_train": lambda *cores: tnsum.tensor_train(cores),
        "operator_train": lambda *cores: tnsum.tensor_train(cores),
        "tensor_ring": lambda *cores: tnsum.tensor_ring(cores),
    }[kind](*parts(kind))
    assert x.topology == expected.topology
    assert oracle.relative_error((x + expected).contract(), 2 * expected.contract()) < 1e-14


FORMATS = {
    "lone_vector": "tensor_train", "lone_matrix": "operator_train", "lone_summed_once": "cp",
    "two_nodes": "cp", "cp3": "cp", "cp4": "cp", "tensor_train5": "tensor_train",
    "ring4": "tensor_ring", "ring2": "tensor_ring", "parallel_modes": "tensor_ring",
    "permuted": "tensor_ring", "star2": "tucker", "star3": "tucker", "star4": "tucker",
    "star5": "tucker",
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_topologies_of_a_format_are_recognised_and_all_others_refused(
    case: Case, dtype: str
) -> None:
    peer("tensorly")
    given_arrays = arrays(case, 1, dtype=dtype)
    x = network(case, given_arrays)
    if case.name not in FORMATS:
        with pytest.raises(TopologyError, match="to_tensorly needs a Tucker network or CP network"):
            to_tensorly(x)
        return
    theirs = to_tensorly(x)
    kind = FORMATS[case.name]
    assert type(theirs) is tensorly_class(kind)
    expected = oracle.dense(case.nodes, case.physical_modes, given_arrays)
    assert oracle.relative_error(dense(kind, theirs), expected) < rounding(dtype)
    ours = list(x.arrays.values())
    for array in held(theirs):
        assert any(np.shares_memory(array, own) for own in ours)
    assert oracle.relative_error(from_tensorly(theirs).contract(), expected) < rounding(dtype)


def test_operators_are_recognised_with_rows_before_columns() -> None:
    case = next(case for case in CASES if case.name == "operator_train6")
    x = network(case, arrays(case, 0))
    with pytest.raises(TopologyError, match=r"x\.transpose"):
        to_tensorly(x)
    theirs = to_tensorly(x.transpose(0, 2, 4, 1, 3, 5))
    assert type(theirs) is tensorly_class("operator_train")
    expected = x.contract().transpose(0, 2, 4, 1, 3, 5)
    assert oracle.relative_error(dense("operator_train", theirs), expected) < 1e-14
    matrix = theirs.to_matrix()
    assert oracle.relative_error(matrix, expected.reshape(matrix.shape)) < 1e-14


def test_kind_chooses_between_two_formats() -> None:
    peer("tensorly")
    both = {"cp": tnsum.cp(parts("cp", 2)[1]),
            "tensor_train": tnsum.tensor_train(parts("tensor_train", 2))}  # fmt: skip
    for own, x in both.items():
        for kind in ("cp", "tensor_train"):
            theirs = to_tensorly(x, kind)
            assert type(theirs) is tensorly_class(kind)
            assert oracle.relative_error(dense(kind, theirs), x.contract()) < 1e-14
        assert type(to_tensorly(x)) is tensorly_class(own)
        assert type(to_tensorly(x.rename(nodes={next(iter(x.arrays)): "A"}))) is tensorly_class(
            "cp"
        )


def test_a_contraction_mode_may_have_the_name_of_a_physical_one_elsewhere() -> None:
    core, factors = parts("tucker")
    x = tnsum.tucker(core, factors).rename(modes={"i0": "a", "r1": "i0", "i1": "r1"})
    theirs = to_tensorly(x)
    np.testing.assert_array_equal(theirs.core, core)
    for ours, factor in zip(theirs.factors, factors, strict=True):
        np.testing.assert_array_equal(ours, factor)


def test_names_and_orders_of_axes_do_not_matter() -> None:
    core, factors = parts("tucker")
    nodes = {f"f{n}": (f.T, (f"s{n}", f"x{n}")) for n, f in enumerate(factors)}
    x = Network(nodes | {"g": (core.transpose(2, 0, 1), ("s2", "s0", "s1"))}, ("x0", "x1", "x2"))
    theirs = to_tensorly(x)
    np.testing.assert_array_equal(theirs.core, core)
    for ours, factor in zip(theirs.factors, factors, strict=True):
        np.testing.assert_array_equal(ours, factor)
    turned = to_tensorly(x.transpose("x2", "x0", "x1"))
    assert turned.shape == (5, 3, 4)
    assert oracle.relative_error(dense("tucker", turned), x.contract().transpose(2, 0, 1)) < 1e-14


def test_long_trains_are_recognised() -> None:
    peer("tensorly")
    theirs = tensorly_class("tensor_train")(parts("tensor_train", 100))
    back = to_tensorly(from_tensorly(theirs))
    assert type(back) is type(theirs)
    assert back.rank == theirs.rank


# Weights of CP


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_are_multiplied_into_the_first_factor(dtype: str) -> None:
    weights, (_, factors) = random(5, 3, dtype=dtype), parts("cp", dtype=dtype)
    theirs = tensorly_class("cp")((weights, factors))
    x = from_tensorly(theirs)
    assert x.dtype == dtype
    np.testing.assert_array_equal(x.arrays["factor0"], factors[0] * weights)
    assert x.arrays["factor1"] is factors[1]
    assert oracle.relative_error(x.contract(), dense("cp", theirs)) < rounding(dtype)
    back = to_tensorly(x)
    assert oracle.relative_error(dense("cp", back), dense("cp", theirs)) < rounding(dtype)


def test_weights_that_are_one_copy_nothing() -> None:
    _, factors = parts("cp")
    made = tensorly_class("cp")
    without = made((None, factors))
    without.weights = None
    for theirs in (
        made((None, factors)),
        made((np.ones(3), factors)),
        made((np.ones(3, int), factors)),
        without,
    ):
        x = from_tensorly(theirs)
        assert x.arrays["factor0"] is factors[0]
    x = from_tensorly(made((np.array([1, 1, 2]), factors)))
    np.testing.assert_array_equal(x.arrays["factor0"], factors[0] * [1, 1, 2])


def test_weights_that_a_gradient_flows_through_are_multiplied_though_one() -> None:
    torch = pytest.importorskip("torch")
    tl = peer("tensorly")
    with tl.backend_context("pytorch"):
        factors = [torch.asarray(f) for f in parts("cp")[1]]
        made = tensorly_class("cp")
        assert from_tensorly(made((torch.ones(3), factors))).arrays["factor0"] is factors[0]
        weights = torch.ones(3, dtype=torch.float64, requires_grad=True)
        from_tensorly(made((weights, factors))).contract().sum().backward()
    expected = np.prod([np.sum(f, axis=0) for f in parts("cp")[1]], axis=0)
    np.testing.assert_allclose(weights.grad, expected)


def test_weights_are_traced_by_jax() -> None:
    of = library("jax")
    jax = pytest.importorskip("jax")
    made = tensorly_class("cp")
    factors = [of.convert(f) for f in parts("cp")[1]]

    @jax.jit
    def total(weights: Any) -> Any:
        return from_tensorly(made((weights, factors))).contract()

    expected = np.einsum("r,ar,br,cr->abc", [1.0, 2, 3], *factors)
    assert oracle.relative_error(total(of.convert(np.array([1.0, 2, 3]))), expected) < 1e-14


# What TensorLy's decompositions return, and its backends


def test_decompositions_of_tensorly_are_taken() -> None:
    tl = peer("tensorly")
    decomposition = peer("tensorly.decomposition")
    tensor = random(0, 6, 4, 5)
    found = {
        "tucker": decomposition.tucker(tensor, [2, 3, 2]),
        "cp": decomposition.parafac(tensor, 2, random_state=0),
        "tensor_train": decomposition.tensor_train(tensor, [1, 2, 2, 1]),
        "tensor_ring": decomposition.tensor_ring(tensor, [2, 2, 2, 2]),
        "operator_train": decomposition.tensor_train_matrix(random(0, 2, 3, 4, 2), [1, 3, 1]),
    }
    for kind, theirs in found.items():
        x = from_tensorly(theirs)
        assert oracle.relative_error(x.contract(), dense(kind, theirs)) < 1e-13, kind
    normalised = decomposition.parafac(tensor, 2, random_state=0, normalize_factors=True)
    assert not np.allclose(normalised.weights, 1)
    expected = tl.cp_to_tensor(normalised)
    assert oracle.relative_error(from_tensorly(normalised).contract(), expected) < 1e-13


@pytest.mark.parametrize("name", ["torch", "jax", "array_api_strict"])
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_library_are_passed_on(kind: str, name: str) -> None:
    of = library(name)
    tl = peer("tensorly")
    tensorly_class(kind)
    plain = from_tensorly(tensorly_class(kind)(parts(kind)))
    nodes = {k: (of.convert(plain.arrays[k]), m) for k, m in plain.topology.nodes.items()}
    x = Network(nodes, plain.physical_modes)
    # TensorLy's backend is not asked when one of its tensors is made.
    theirs = to_tensorly(x)
    assert all(type(array) is type(nodes[next(iter(nodes))][0]) for array in held(theirs))
    back = from_tensorly(theirs)
    assert back.topology == x.topology
    for k, array in x.arrays.items():
        np.testing.assert_array_equal(of.to_numpy(back.arrays[k]), of.to_numpy(array))
    if name == "torch":
        for array in held(theirs):
            pointers = [ours.untyped_storage().data_ptr() for ours in x.arrays.values()]
            assert array.untyped_storage().data_ptr() in pointers
        with tl.backend_context("pytorch"):
            found = of.to_numpy(dense(kind, theirs))
        assert oracle.relative_error(found, plain.contract()) < 1e-13


# Errors

A, B = np.ones((2, 3)), np.ones((3, 4))
pair = Network({"A": (A, ("i", "r")), "B": (B, ("r", "j"))})
star1 = tnsum.tucker(np.ones(2), [np.ones((3, 2))])
ring1 = tnsum.tensor_ring([np.ones((2, 3, 2))])
TAKES = "from_tensorly takes a TuckerTensor, CPTensor, TTTensor, TTMatrix or TRTensor of TensorLy; "
SAY = (" came. Say what plain arrays are by TuckerTensor((core, factors)), CPTensor((weights, "
       "factors)), TTTensor(factors), TTMatrix(factors) or TRTensor(factors).")  # fmt: skip
KIND = "kind must be one of tucker, cp, tensor_train, operator_train, tensor_ring or None; "
VECTOR = (" of TensorLy must be of order 2 at least; a network of order 1 came. Hand over the vector "
          "x.contract() itself.")  # fmt: skip
NEEDS = ("physical modes in the order of its nodes; a network of order 2 with nodes ('A', 'B') came. If "
         "only the order is wrong, mend it with x.transpose(...).")  # fmt: skip


def changed(kind: str, **attributes: Any) -> Any:
    """A tensor of TensorLy whose attributes have been set since it was made."""
    made = tensorly_class(kind)(parts(kind))
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def with_torch_backend() -> None:
    """Convert NumPy arrays while TensorLy takes all arrays for PyTorch's."""
    peer("torch")
    tensorly = peer("tensorly")
    tensorly.set_backend("pytorch")
    try:
        to_tensorly(pair)
    finally:
        tensorly.set_backend("numpy")


Row = tuple[Callable[[], Any], type[Exception], str]

ERRORS: list[Row] = [
    (lambda: from_tensorly(A), NetworkError, TAKES + "ndarray" + SAY),
    (lambda: from_tensorly((None, [A, A])), NetworkError, TAKES + "tuple" + SAY),
    (lambda: from_tensorly([A, B]), NetworkError, TAKES + "list" + SAY),
    (lambda: from_tensorly(pair), NetworkError, TAKES + "Network" + SAY),
    (lambda: from_tensorly(changed("tucker", core=np.ones((2, 3, 2), int))), NetworkError,
     "Node 'core' must be of dtype float32, float64, complex64 or complex128; int64 came. Convert it "
     "first, for instance with astype('float64')."),
    (lambda: from_tensorly(changed("tucker", core=np.ones((2, 3, 3)))), ModeError,
     "Mode 'r2' must have one size: 2 at axis 1 of node 'factor2' with shape (5, 2), 3 at axis 2 of "
     "node 'core' with shape (2, 3, 3)."),
    (lambda: from_tensorly(changed("cp", weights=[1.0, 2.0, 3.0])), NetworkError,
     "Weights must be an array of NumPy, PyTorch, JAX or another library of the array API standard; "
     "list came. Convert it first, for instance with numpy.asarray."),
    (lambda: from_tensorly(changed("cp", weights=np.ones(2))), NetworkError,
     "There must be one weight per component: factor 0 has 3 columns, weights of shape (2,) came."),
    (lambda: from_tensorly(tensorly_class("cp")((None, [np.ones(3), np.ones(4)]))), NetworkError,
     "Factor 0 of a CP network must have 2 axes; shape (3,) came."),
    (lambda: to_tensorly(A), NetworkError,  # type: ignore[arg-type]
     "to_tensorly takes a Network; ndarray came."),
    (lambda: to_tensorly(pair + pair), NetworkError,  # type: ignore[arg-type]
     "to_tensorly takes a Network; NetworkSum came. Say x.to_network() first, for the explicit "
     "blocks."),
    (lambda: to_tensorly(pair, "tt"), NetworkError, KIND + "'tt' came."),
    (lambda: to_tensorly(pair, ["cp"]), NetworkError,  # type: ignore[arg-type]
     KIND + "['cp'] came."),
    (lambda: to_tensorly(star1), NetworkError, "A TuckerTensor" + VECTOR),
    (lambda: to_tensorly(ring1), NetworkError, "A TRTensor" + VECTOR),
    (with_torch_backend, NetworkError,
     "The backend of TensorLy must be that of the arrays, which are of numpy ('numpy.ndarray' object "
     "has no attribute 'dim'). Say tensorly.set_backend first."),
    (lambda: to_tensorly(pair, "tucker"), TopologyError,
     "to_tensorly needs a Tucker network, " + NEEDS),
    (lambda: to_tensorly(pair, "tensor_ring"), TopologyError,
     "to_tensorly needs a tensor ring, " + NEEDS),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    peer("tensorly")
    check_message(call, error, message)


def test_every_raise_is_in_the_table() -> None:
    assert not unreached([Path(module.__file__)], [call for call, *_ in ERRORS])


@pytest.mark.parametrize("call", [lambda: from_tensorly(A), lambda: to_tensorly(pair)])
def test_without_tensorly_the_error_says_how_to_install_it(call: Callable[[], Any]) -> None:
    check_missing("tensorly", "tensorly.tucker_tensor", call)
