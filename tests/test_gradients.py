"""Gradients through sums under torch and JAX, sums as JAX pytrees, and what must not be mixed."""

from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tnsum
from libraries import TALL, Library, library, network, tall
from oracle import relative_error
from tnsum import Network, NetworkError, NetworkStack, NetworkSum
from topologies import BY_NAME, EQUAL_RANKS, Case, arrays

pytestmark = pytest.mark.large

Array = NDArray[Any]

SOME = [
    BY_NAME[name]
    for name in (
        "lone_matrix", "two_nodes", "trace", "tensor_train5", "ring4", "star3", "cp3",
        "hyperedge_and_modes", "kept_twice", "shared_kept", "disconnected_chains", "closed_tree",
    )
]  # fmt: skip
SOME += TALL

# Each makes a sum of networks from a list of their arrays and an array of weights.
Form = Callable[[Case, list[Any], Any, Any], NetworkSum]


def _nets(case: Case, terms: list[Any]) -> list[Network]:
    return [
        Network({n: (one[n], modes) for n, modes in case.nodes.items()}, case.physical_modes)
        for one in terms
    ]


def _by_weights_array(case: Case, terms: list[Any], weights: Any, xp: Any) -> NetworkSum:
    return tnsum.add(*_nets(case, terms), weights=weights)


def _by_numbers(case: Case, terms: list[Any], weights: Any, xp: Any) -> NetworkSum:
    x, y, z = _nets(case, terms)
    return x * weights[0] - (-weights[1]) * y + (2 * z) * (weights[2] / 2)


def _by_stack(case: Case, terms: list[Any], weights: Any, xp: Any) -> NetworkSum:
    stacked = {name: xp.stack([one[name] for one in terms]) for name in case.nodes}
    return NetworkStack(_nets(case, terms)[0].topology, stacked).sum(weights)


FORMS: dict[str, tuple[Form, tuple[int, ...]]] = {
    "array of weights": (_by_weights_array, (0, 1, 2)),
    "weights as numbers": (_by_numbers, (0, 1, 2)),
    "stack": (_by_stack, (EQUAL_RANKS[0],) * 3),
}


def observables(
    s: NetworkSum, other: Network, probe: Any, indices: Array, xp: Any
) -> dict[str, Any]:
    """Real numbers that depend on all of a sum."""
    return {
        "contract": xp.sum(probe * s.contract()).real,
        "explicit": xp.sum(probe * s.to_network().contract()).real,
        "entries": xp.sum(s.entries(indices) ** 2).real,
        "inner": (tnsum.inner(other, s) * (1 - 2j)).real,
        "norm": tnsum.norm(s),
        "distance": tnsum.distance(s, other),
        "selected": tnsum.norm(s.select(dict.fromkeys(s.physical_modes[:1], 1))),
    }


def dense_observables(d: Any, other: Any, probe: Any, indices: Array, xp: Any) -> dict[str, Any]:
    """The same of the dense array, by the library's own einsum and gradients."""
    first = d[1] if d.ndim else d
    return {
        "contract": xp.sum(probe * d).real,
        "explicit": xp.sum(probe * d).real,
        "entries": xp.sum(d[tuple(indices.T)] ** 2).real if d.ndim else (d**2).real,
        "inner": (xp.sum(xp.conj(other) * d) * (1 - 2j)).real,
        "norm": xp.sqrt(xp.sum(xp.abs(d) ** 2)),
        "distance": xp.sqrt(xp.sum(xp.abs(d - other) ** 2)),
        "selected": xp.sqrt(xp.sum(xp.abs(first) ** 2)),
    }


def einsum_of(case: Case, one: dict[str, Any], xp: Any) -> Any:
    modes = dict.fromkeys(mode for held in case.nodes.values() for mode in held)
    letter = dict(zip(modes, ascii_letters, strict=False))
    inputs = ",".join("".join(letter[m] for m in held) for held in case.nodes.values())
    output = "".join(letter[m] for m in case.physical_modes)
    return xp.einsum(f"{inputs}->{output}", *(one[name] for name in case.nodes))


Leaves = dict[str, Any]


def gradients(
    of: Library, function: Callable[[Leaves], dict[str, Any]], leaves: Leaves
) -> dict[str, list[Array]]:
    """For each number that the function returns its gradient with respect to all leaves."""
    if of.name == "jax":
        import jax

        found = jax.jit(jax.jacrev(function))(_mapped(of.convert, leaves))
        return {key: list(map(np.asarray, jax.tree.leaves(value))) for key, value in found.items()}
    import torch

    tensors = _mapped(lambda array: of.convert(array).requires_grad_(), leaves)
    flat = [*(array for one in tensors["terms"] for array in one.values()), tensors["weights"]]
    numbers = function(tensors)
    return {
        key: [
            g.resolve_conj().numpy() for g in torch.autograd.grad(number, flat, retain_graph=True)
        ]
        for key, number in numbers.items()
    }


def _mapped(convert: Callable[[Any], Any], leaves: Leaves) -> Leaves:
    terms = [{name: convert(array) for name, array in one.items()} for one in leaves["terms"]]
    return {"terms": terms, "weights": convert(leaves["weights"])}


def module_of(of: Library) -> Any:
    if of.name == "jax":
        import jax.numpy

        return jax.numpy
    return pytest.importorskip("torch")


def weights_of(dtype: str) -> Array:
    return np.array([1.5, -0.5, 0.75] if dtype.startswith("float") else [1.5, -0.5j, 0.5 + 0.25j])


def check_gradients(
    name: str,
    case: Case,
    dtype: str,
    form: Form,
    ranks: Sequence[int],
    used: Sequence[int] = (0, 1, 2),
) -> None:
    of = library(name)
    xp = module_of(of)
    terms = [arrays(case, which, seed=k, dtype=dtype) for k, which in enumerate(ranks)]
    other = arrays(case, 1, seed=9, dtype=dtype)
    rng = np.random.default_rng(0)
    probe = of.convert(rng.uniform(0.5, 1.5, case.shape))
    shape = (4, case.order)
    indices = rng.integers(0, case.shape, shape) if case.order else np.zeros((1, 0), int)
    y = network(case, other, of)
    Y = einsum_of(case, {n: of.convert(a) for n, a in other.items()}, xp)

    def ours(leaves: Leaves) -> dict[str, Any]:
        chosen = [leaves["terms"][k] for k in used]
        return observables(form(case, chosen, leaves["weights"], xp), y, probe, indices, xp)

    def theirs(leaves: Leaves) -> dict[str, Any]:
        dense = [einsum_of(case, leaves["terms"][k], xp) for k in used]
        d = sum(leaves["weights"][m] * array for m, array in enumerate(dense))
        return dense_observables(d, Y, probe, indices, xp)

    leaves = {"terms": terms, "weights": weights_of(dtype)}
    found, right = gradients(of, ours, leaves), gradients(of, theirs, leaves)
    for key, expected in right.items():
        for k, (got, wanted) in enumerate(zip(found[key], expected, strict=True)):
            assert relative_error(got, wanted) < 1e-10, (key, k)


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("form", FORMS)
def test_torch_gradients_are_those_of_the_dense_arrays(case: Case, dtype: str, form: str) -> None:
    check_gradients("torch", case, dtype, *FORMS[form])


@pytest.mark.parametrize(
    ("name", "dtype", "form"),
    [
        ("tensor_train5", "float64", "array of weights"),
        ("cp3", "complex128", "array of weights"),
        ("tensor_train5", "float64", "stack"),
        ("disconnected_chains", "complex128", "stack"),
        ("star3", "complex128", "weights as numbers"),
        ("disconnected_chains", "float64", "weights as numbers"),
    ],
)
def test_jax_gradients_are_those_of_the_dense_arrays(name: str, dtype: str, form: str) -> None:
    check_gradients("jax", BY_NAME[name], dtype, *FORMS[form])


# x + 2x + y and the like: what the summands span has fewer dimensions than they have ranks.
@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("used", [(0, 0, 0), (0, 1, 0)], ids=["all equal", "two equal"])
def test_torch_gradients_are_right_where_summands_repeat(
    case: Case, dtype: str, used: tuple[int, ...]
) -> None:
    ranks = tuple(range(1 + max(used)))
    check_gradients("torch", case, dtype, _by_weights_array, ranks, used)


def test_jax_gradients_are_right_where_summands_repeat() -> None:
    case = tall("star3", 12)
    check_gradients("jax", case, "complex128", _by_weights_array, (0, 1), (0, 1, 0))


@pytest.mark.parametrize("case", [BY_NAME["two_nodes"], BY_NAME["cp3"]], ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("measure", ["contract", "entries", "norm", "inner", "distance"])
def test_torch_gradients_agree_with_finite_differences(
    case: Case, dtype: str, measure: str
) -> None:
    torch = pytest.importorskip("torch")
    of = library("torch")
    terms = [arrays(case, k, seed=k, dtype=dtype) for k in range(3)]
    y = network(case, arrays(case, 1, seed=9, dtype=dtype), of)
    flat = [of.convert(array) for one in terms for array in one.values()]
    flat.append(of.convert(weights_of(dtype)))
    n = len(case.nodes)
    functions: dict[str, Callable[[NetworkSum], Any]] = {
        "contract": NetworkSum.contract,
        "entries": lambda s: s.entries([[1] * case.order, [0] * case.order]),
        "norm": tnsum.norm,
        "inner": lambda s: tnsum.inner(s, y),
        "distance": lambda s: tnsum.distance(s, y),
    }

    def function(*leaves: Any) -> Any:
        parts = [dict(zip(case.nodes, leaves[k : k + n], strict=True)) for k in (0, n, 2 * n)]
        return functions[measure](tnsum.add(*_nets(case, parts), weights=leaves[-1]))

    assert torch.autograd.gradcheck(function, [leaf.requires_grad_() for leaf in flat])


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_torch_keeps_single_precision_through_weights_measures_and_gradients(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    of = library("torch")
    case = BY_NAME["star3"]
    x, y = (network(case, arrays(case, k, seed=k, dtype=dtype), of) for k in range(2))
    kind = getattr(torch, dtype)
    weights = torch.tensor([0.1, -2.0], dtype=torch.float64, requires_grad=True)
    leaf = x.arrays["A"].requires_grad_()
    for s in (tnsum.add(x, y, weights=weights), 0.1 * x - 2 * y, x * weights[0] + y):
        assert s.dtype == s.contract().dtype == s.to_network().dtype == kind
        assert tnsum.inner(s, x).dtype == kind
        assert tnsum.norm(s).dtype == tnsum.distance(s, x).dtype == torch.float32
        (gradient,) = torch.autograd.grad(tnsum.norm(s), leaf)
        assert gradient.dtype == kind
        assert float(gradient.abs().max()) > 0


def test_contract_has_second_derivatives() -> None:
    """With respect to its two nodes, of which a tensor is a product."""
    torch = pytest.importorskip("torch")
    case = BY_NAME["two_nodes"]
    leaves = torch_leaves(case, "float64")
    assert torch.autograd.gradgradcheck(lambda *each: repeated(case, each).contract(), leaves)
    jax, (x, y, _) = jax_networks(case)
    square = jax.jit(jax.hessian(lambda w: ((w * x + y).contract() ** 2).sum()))
    wanted = 2 * np.linalg.norm(np.asarray(x.contract())) ** 2
    assert float(square(jax.numpy.asarray(3.0))) == pytest.approx(wanted, rel=1e-12)


# compress


TREES = ("lone_vector", "two_nodes", "chain5", "tensor_train5", "star3", "comb", "operator_train6")


def repeated(case: Case, leaves: Sequence[Any]) -> NetworkSum:
    """w x + v y + 2 w x of the arrays of x and y and the weights w and v."""
    n = len(case.nodes)
    parts = [dict(zip(case.nodes, leaves[k : k + n], strict=True)) for k in (0, n)]
    x, y = _nets(case, parts)
    w = leaves[-1]
    return w[0] * x + w[1] * y + (2 * w[0]) * x


def torch_leaves(case: Case, dtype: str, seed: int = 0) -> list[Any]:
    of = library("torch")
    terms = [arrays(case, k % 2, seed=seed + k, dtype=dtype) for k in range(2)]
    flat = [array for one in terms for array in one.values()]
    weights = np.array([1.5, -0.5]).astype(dtype)
    return [of.convert(array).requires_grad_() for array in (*flat, weights)]


def gradients_of(number: Any, leaves: Sequence[Any]) -> list[Array]:
    import torch

    found = torch.autograd.grad(number, leaves, retain_graph=True)
    return [gradient.resolve_conj().numpy() for gradient in found]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("method", ["direct", "sketch"])
def test_torch_gradients_flow_through_compress(name: str, dtype: str, method: str) -> None:
    """Where nothing is dropped they are those of the sum, though its terms repeat."""
    of, case = library("torch"), BY_NAME[name]
    leaves = torch_leaves(case, dtype)
    y = network(case, arrays(case, 1, seed=9, dtype=dtype), of)
    probe = of.convert(np.random.default_rng(0).uniform(0.5, 1.5, case.shape).astype(dtype))

    def numbers(x: Any) -> list[Any]:
        dense = (probe * x.contract()).sum()
        return [tnsum.norm(x), abs(tnsum.inner(y, x)), abs(dense), tnsum.distance(x, y)]

    s = repeated(case, leaves)
    c = tnsum.compress(s, method=method)
    single = dtype in ("float32", "complex64")
    assert c.error < (1e-4 if single else 1e-12)
    for got, wanted in zip(numbers(c.network), numbers(s), strict=True):
        pairs = zip(gradients_of(got, leaves), gradients_of(wanted, leaves), strict=True)
        assert max(relative_error(a, b) for a, b in pairs) < (1e-3 if single else 1e-11)


@pytest.mark.parametrize("name", ["two_nodes", "tensor_train5", "star3"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_torch_gradients_through_compress_agree_with_finite_differences(
    name: str, dtype: str
) -> None:
    torch = pytest.importorskip("torch")
    case = BY_NAME[name]
    y = network(case, arrays(case, 1, seed=9, dtype=dtype), library("torch"))

    def function(*leaves: Any) -> Any:
        x = tnsum.compress(repeated(case, leaves)).network
        return x.contract(), tnsum.norm(x), tnsum.inner(y, x), tnsum.distance(x, y)

    assert torch.autograd.gradcheck(function, torch_leaves(case, dtype), fast_mode=True)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_torch_gradients_through_a_truncation_are_those_of_the_projection(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    case = tall("two_nodes", 6)
    leaves = torch_leaves(case, dtype)
    s = repeated(case, leaves)
    c = tnsum.compress(s, max_rank=1)
    assert c.error > 1e-3
    d = s.contract()
    u, _, v = np.linalg.svd(d.detach().resolve_conj().numpy())
    left, right = (
        torch.from_numpy(p) for p in (u[:, :1] @ u[:, :1].conj().T, v[:1].conj().T @ v[:1])
    )
    projected = left @ d + d @ right - left @ d @ right
    probe = torch.from_numpy(np.random.default_rng(0).uniform(0.5, 1.5, case.shape).astype(dtype))
    pairs = [((probe * x).sum().real, leaves) for x in (c.network.contract(), projected)]
    got, wanted = (gradients_of(*pair) for pair in pairs)
    assert max(relative_error(a, b) for a, b in zip(got, wanted, strict=True)) < 1e-10
    # That of the norm is exact, whatever is dropped.
    exact = torch.linalg.matrix_norm(d, ord=2)
    pairs = [(number, leaves) for number in (tnsum.norm(c.network), exact)]
    got, wanted = (gradients_of(*pair) for pair in pairs)
    assert max(relative_error(a, b) for a, b in zip(got, wanted, strict=True)) < 1e-10


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_gradients_through_compress_of_extreme_scales(dtype: str) -> None:
    case = BY_NAME["tensor_train5"]
    leaves = torch_leaves(case, dtype)
    size = 2.0**-80 if dtype == "float32" else 2.0**-600
    s = repeated(case, leaves)
    got = gradients_of(tnsum.norm((1 / size) * tnsum.compress(size * s).network), leaves)
    wanted = gradients_of(tnsum.norm(s), leaves)
    near = 1e-3 if dtype == "float32" else 1e-11
    assert max(relative_error(a, b) for a, b in zip(got, wanted, strict=True)) < near


def test_compress_of_torch_tensors_with_gradients_is_that_of_those_without() -> None:
    case = BY_NAME["tensor_train5"]
    leaves = torch_leaves(case, "float64")
    s = repeated(case, leaves)
    plain = repeated(case, [leaf.detach() for leaf in leaves])
    for options in (
        {"max_rank": 2},
        {"tolerance": 0.1},
        {"max_rank": 1, "method": "sketch"},
    ):
        found, other = (tnsum.compress(x, **options) for x in (s, plain))
        assert found.ranks == other.ranks
        assert found.error == other.error
        assert tnsum.distance(found.network, other.network, relative=True) < 1e-14
        assert not any(array.requires_grad for array in other.network.arrays.values())


def test_no_gradient_flows_through_fits_zeros_and_accumulators() -> None:
    for name in ("ring4", "tensor_train5"):
        leaves = torch_leaves(BY_NAME[name], "float64")
        s = repeated(BY_NAME[name], leaves)
        x = s if name == "ring4" else s - s
        found = tnsum.compress(x, max_rank=2).network
        assert not any(array.requires_grad for array in found.arrays.values())
    accumulator = tnsum.SumAccumulator(s.topology, s.shape, max_rank=4)
    accumulator.add(s)
    found = accumulator.compress().network
    assert not any(array.requires_grad for array in found.arrays.values())


def _decomposed(array: Any) -> Any:
    return tnsum.decompose(array, "tucker", ranks=2).contract()


def _decomposed_stack(array: Any) -> Any:
    return tnsum.decompose_stack(array, "tensor_train", ranks=1).contract()


def _compressed(array: Any) -> Any:
    x = tnsum.chain([array, array])
    return tnsum.norm(tnsum.compress(x + x, max_rank=2).network)


def _compressed_by_weight(array: Any) -> Any:
    x = tnsum.chain([np.ones((2, 2)), np.ones((2, 2))])
    x = tnsum.interop.to_library(x, "jax")
    return tnsum.norm(tnsum.compress(array[0, 0] * x, max_rank=2).network)


def _accumulated(array: Any) -> Any:
    x = tnsum.chain([array, array])
    accumulator = tnsum.SumAccumulator(x.topology, x.shape, max_rank=2)
    accumulator.add(x, weight=2.0)
    return tnsum.norm(accumulator.compress().network)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (_compressed, "compress"),
        (_compressed_by_weight, "compress"),
        (_accumulated, "SumAccumulator.add"),
        (_decomposed, "decompose"),
        (_decomposed_stack, "decompose_stack"),
    ],
)
@pytest.mark.parametrize("transformation", ["grad", "jit", "vmap"])
def test_what_looks_at_values_says_so_where_jax_traces(
    function: Callable[[Any], Any], what: str, transformation: str
) -> None:
    of = library("jax")
    import jax

    array = of.convert(np.ones((3, 2, 2) if transformation == "vmap" else (2, 2)))
    with pytest.raises(NetworkError) as raised:
        getattr(jax, transformation)(function)(array)
    assert str(raised.value) == (
        f"{what} needs arrays with values, on which its decisions depend; JAX is tracing these. "
        f"Call it outside of functions that jax.jit, jax.grad or jax.vmap transforms: inside, "
        f"contract, entries, norm, distance and inner take the lazy sum itself."
    )


def jax_networks(case: Case, n: int = 3) -> tuple[Any, list[Network]]:
    of = library("jax")
    import jax

    return jax, [network(case, arrays(case, 0, seed=k), of) for k in range(n)]


def test_networks_stacks_and_sums_are_pytrees_of_their_arrays_and_weights() -> None:
    case = BY_NAME["two_nodes"]
    jax, (x, y, _) = jax_networks(case)
    stack = NetworkStack.from_networks([x, y])
    weight = jax.numpy.asarray(3.0)
    for value, n_arrays in ((x, 2), (stack, 2), (x + y, 4), (x + weight * stack.sum(), 5)):
        leaves, structure = jax.tree.flatten(value)
        assert sum(hasattr(leaf, "shape") for leaf in leaves) == n_arrays
        doubled = jax.tree.map(lambda leaf: 2 * leaf, value)
        assert type(doubled) is type(value)
        assert doubled.topology == value.topology
        again = jax.tree.unflatten(structure, leaves)
        np.testing.assert_array_equal(again.contract(), value.contract())
        # JAX puts stand-ins where arrays were: nothing may look at them.
        empty = jax.tree.unflatten(structure, [object()] * len(leaves))
        assert empty.topology == value.topology
    assert jax.tree.structure(x) == jax.tree.structure(y)
    assert jax.tree.structure(x) != jax.tree.structure(x.rename(modes={"i": "row"}))
    np.testing.assert_allclose(jax.tree.map(lambda a: 2 * a, x).contract(), 4 * x.contract())


def test_jit_takes_and_returns_networks_and_sums() -> None:
    case = BY_NAME["tensor_train5"]
    jax, (x, y, z) = jax_networks(case)
    expected = np.asarray(x.contract() - 2 * y.contract() + 0.5 * z.contract())
    s = jax.jit(lambda x, y, w: x - 2 * y + w * z)(x, y, 0.5)
    assert isinstance(s, NetworkSum)
    assert s.n_summands == 3
    assert relative_error(jax.jit(NetworkSum.contract)(s), expected) < 1e-12
    assert relative_error(jax.jit(NetworkSum.to_network)(s).contract(), expected) < 1e-12
    assert relative_error(jax.jit(tnsum.norm)(s), np.linalg.norm(expected)) < 1e-12


def test_grad_with_respect_to_a_network_is_a_network_of_gradients() -> None:
    case = BY_NAME["two_nodes"]
    jax, (x, y, _) = jax_networks(case)
    gradient = jax.jit(jax.grad(lambda x: tnsum.norm(x - 2 * y) ** 2))(x)
    assert isinstance(gradient, Network)
    assert gradient.topology == x.topology
    A, B = (np.asarray(x.arrays[name]) for name in "AB")
    difference = A @ B - 2 * np.asarray(y.contract())
    assert relative_error(gradient.arrays["A"], 2 * difference @ B.T) < 1e-12
    assert relative_error(gradient.arrays["B"], 2 * A.T @ difference) < 1e-12
    of_sum = jax.jit(jax.grad(tnsum.norm))(x * jax.numpy.asarray(1.0) + jax.numpy.asarray(0.5) * y)
    d = np.asarray(x.contract() + 0.5 * y.contract())
    expected = [np.vdot(d, t.contract()) / np.linalg.norm(d) for t in (x, y)]
    assert relative_error(np.asarray(of_sum.weights), expected) < 1e-12


def test_vmap_runs_over_networks_stacks_and_sums() -> None:
    case = BY_NAME["two_nodes"]
    jax, nets = jax_networks(case, 4)
    dense = np.stack([np.asarray(x.contract()) for x in nets])
    many = jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *nets)
    norms = jax.jit(jax.vmap(tnsum.norm))(many)
    assert relative_error(norms, np.linalg.norm(dense, axis=(1, 2))) < 1e-12
    weights = jax.numpy.asarray([[1.0, -1.0, 2.0, 0.0], [0.5, 0.0, 0.0, -3.0]])
    stack = NetworkStack.from_networks(nets)
    sums = jax.jit(jax.vmap(lambda w: stack.sum(w).contract()))(weights)
    assert relative_error(sums, np.einsum("wn,nij->wij", weights, dense)) < 1e-12
    pairs = jax.jit(jax.vmap(lambda x, w: (w * x + nets[0]).contract()))(many, weights[0])
    expected = np.asarray(weights[0])[:, None, None] * dense + dense[0]
    assert relative_error(pairs, expected) < 1e-12
    lazy = jax.jit(jax.vmap(lambda x, w: w * x + nets[0]))(many, weights[0])
    assert isinstance(lazy, NetworkSum)


MIXED = [
    (a, b) for a in ("numpy", "array_api_strict", "torch", "jax") for b in ("numpy", "torch", "jax")
]


@pytest.mark.parametrize(("first", "second"), [pair for pair in MIXED if pair[0] != pair[1]])
def test_mixed_libraries_are_an_error_that_names_both(first: str, second: str) -> None:
    case = BY_NAME["two_nodes"]
    held = arrays(case, 0)
    one, other = library(first), library(second)
    x, y = network(case, held, one), network(case, held, other)
    message = rf"one library: .* of {second}, .* of {first}"
    with pytest.raises(NetworkError, match=message):
        x + y
    with pytest.raises(NetworkError, match=message):
        tnsum.add(x, x, weights=other.convert(np.ones(2)))
    with pytest.raises(NetworkError, match=message):
        x * other.convert(np.asarray(2.0))
    for measure in (tnsum.inner, tnsum.distance):
        with pytest.raises(NetworkError, match=message):
            measure(x, y)
    with pytest.raises(NetworkError, match=rf"node 'B' is of {second}, node 'A' of {first}"):
        Network({"A": (x.arrays["A"], ("i", "r")), "B": (y.arrays["B"], ("r", "j"))})


def test_mixed_devices_are_an_error_that_names_both() -> None:
    torch = pytest.importorskip("torch")
    of = library("torch")
    case = BY_NAME["two_nodes"]
    x = network(case, arrays(case, 0), of)
    y = x.to_device("meta")
    assert y.device == torch.device("meta")
    message = "one device: .* is on meta, .* on cpu.* to_device"
    with pytest.raises(NetworkError, match=message):
        x + y
    with pytest.raises(NetworkError, match=message):
        tnsum.inner(x, y)
    with pytest.raises(NetworkError, match=message):
        tnsum.add(x, x, weights=torch.ones(2, device="meta"))
    with pytest.raises(NetworkError, match="node 'B' is on meta, node 'A' on cpu"):
        Network({"A": (x.arrays["A"], ("i", "r")), "B": (y.arrays["B"], ("r", "j"))})
