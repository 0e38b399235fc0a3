"""Trees of many kinds to be compressed, and norms of their sums and differences, with NumPy alone.

Shares no code with ``tnsum`` but the class Network. The norm of a sum of trees of any order comes out
of orthogonalising its branches: nothing is squared, so a difference of 1e-10 is seen as such.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tnsum import Network, NetworkStack, NetworkSum, add

Array: TypeAlias = NDArray[Any]
Nodes: TypeAlias = dict[str, tuple[str, ...]]
Arrays: TypeAlias = Mapping[str, Any]


def log2_norm(
    nodes: Nodes, physical: Sequence[str], summands: Sequence[Arrays], weights: Sequence[complex]
) -> float:
    """The log2 of the norm of a weighted sum of trees."""
    root = next(iter(nodes))
    columns, exponent = _columns(nodes, set(physical), summands, root, None)
    total = np.asarray(sum(w * c.ravel() for w, c in zip(weights, columns, strict=True)))
    scale = float(np.max(np.abs(total)))
    return exponent + float(np.log2(scale * np.linalg.norm(total / scale))) if scale else -np.inf


def _columns(
    nodes: Nodes, physical: set[str], summands: Sequence[Arrays], name: str, up: str | None
) -> tuple[list[Array], float]:
    """Each summand's branch at a node as (rows, rank up), the rows in one orthonormal basis."""
    modes = nodes[name]
    found = [np.asarray(arrays[name]) for arrays in summands]
    found = [a.astype(np.result_type(a.dtype, np.float64)) for a in found]
    exponent = 0.0
    for k, mode in enumerate(modes):
        if mode in physical or mode == up:
            continue
        child = next(n for n in nodes if n != name and mode in nodes[n])
        below, taken = _columns(nodes, physical, summands, child, mode)
        exponent += taken
        found = [
            np.moveaxis(np.tensordot(a, b, (k, 1)), -1, k)
            for a, b in zip(found, below, strict=True)
        ]
    if up is None:
        return found, exponent
    axis = modes.index(up)
    flat = [np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis]) for a in found]
    joined = np.concatenate(flat, axis=1)
    if joined.shape[0] > joined.shape[1]:
        joined = np.linalg.qr(joined, mode="r")
    scale = np.max(np.abs(joined))
    if scale > 0 and np.isfinite(scale):
        exponent += np.log2(scale)
        joined = joined / scale
    return np.split(joined, np.cumsum([f.shape[1] for f in flat])[:-1], axis=1), exponent


def true_error(x: Network | NetworkSum, y: Network) -> float:
    """The distance of a network to a sum of its topology, relative to the norm of the sum."""
    networks = (x,) if isinstance(x, Network) else x.summands
    weights = [1] if isinstance(x, Network) else [complex(w) for w in np.asarray(x.weights)]
    nodes = dict(x.topology.nodes)
    terms = [term.arrays for term in networks]
    whole = log2_norm(nodes, x.physical_modes, terms, weights)
    rest = log2_norm(nodes, x.physical_modes, [*terms, y.arrays], [*weights, -1])
    return float(2.0 ** (rest - whole))


# trees


def train(order: int) -> Nodes:
    """A tensor train."""
    return {
        f"n{k}": (*((f"r{k - 1}",) if k else ()), f"i{k}", *((f"r{k}",) if k < order - 1 else ()))
        for k in range(order)
    }


def operator_train(order: int) -> Nodes:
    """A train whose nodes have two physical modes."""
    return {name: (*modes, f"j{name[1:]}") for name, modes in train(order).items()}


def matrix_chain(length: int) -> Nodes:
    """A product of matrices."""
    ends = "n0", f"n{length - 1}"
    return {
        name: tuple(m for m in modes if m[0] == "r" or name in ends)
        for name, modes in train(length).items()
    }


def star(order: int) -> Nodes:
    """A Tucker network."""
    factors = {f"n{k}": (f"i{k}", f"r{k}") for k in range(order)}
    return {"core": tuple(f"r{k}" for k in range(order)), **factors}


def binary_tree(n_leaves: int) -> Nodes:
    """A balanced binary tree; only its leaves are physical."""
    nodes: Nodes = {f"n{k}": (f"i{k}", f"r{k}") for k in range(n_leaves)}
    level = list(range(n_leaves))
    while len(level) > 2:
        pairs = [(level[k], level[k + 1]) for k in range(0, len(level) - 1, 2)]
        level = level[2 * len(pairs) :]
        for a, b in pairs:
            level.append(len(nodes))
            nodes[f"n{level[-1]}"] = (f"r{a}", f"r{b}", f"r{level[-1]}")
    nodes["top"] = tuple(f"r{k}" for k in level)
    return nodes


def comb(n_teeth: int) -> Nodes:
    """A train without physical modes, from each node of which hangs a tooth of two nodes."""
    nodes: Nodes = {}
    for name, modes in train(n_teeth).items():
        k = name[1:]
        nodes[name] = tuple(f"s{k}" if m[0] == "i" else m for m in modes)
        nodes[f"t{k}"] = (f"s{k}", f"i{k}", f"t{k}")
        nodes[f"u{k}"] = (f"t{k}", f"j{k}")
    return nodes


def physical_of(nodes: Nodes) -> tuple[str, ...]:
    """The modes seen once, in order of appearance."""
    held = [mode for modes in nodes.values() for mode in modes]
    return tuple(mode for mode in held if held.count(mode) == 1)


def decaying(
    nodes: Nodes,
    size: int,
    rank: int,
    decay: Callable[[Array], Array],
    rng: np.random.Generator,
    dtype: str = "float64",
) -> Network:
    """A random tree whose singular values fall along every contraction mode as `decay` says."""
    physical = physical_of(nodes)
    factors = decay(np.arange(rank, dtype=float))
    scaled: set[str] = set()
    arrays = {}
    for name, modes in nodes.items():
        shape = tuple(size if mode in physical else rank for mode in modes)
        array = rng.standard_normal(shape)
        if dtype.startswith("complex"):
            array = array + 1j * rng.standard_normal(shape)
        for k, mode in enumerate(modes):
            if mode not in physical and mode not in scaled:
                scaled.add(mode)
                array = array * factors.reshape((-1, *(1,) * (len(modes) - k - 1)))
        arrays[name] = np.asarray(array / np.sqrt(size)).astype(dtype)
    return Network({name: (arrays[name], modes) for name, modes in nodes.items()}, physical)


FAMILIES: dict[str, list[tuple[Nodes, int]]] = {
    "train": [(train(6), 6), (train(12), 4), (train(30), 3), (train(50), 2)],
    "operator train": [(operator_train(5), 3), (operator_train(12), 2)],
    "matrix chain": [(matrix_chain(2), 60), (matrix_chain(5), 50)],
    "Tucker": [(star(3), 50), (star(2), 60)],
    "binary tree": [(binary_tree(8), 4), (binary_tree(16), 3)],
    "comb": [(comb(4), 4), (comb(8), 3)],
}
"""Trees of each kind, with the size of their physical modes."""


def random_sum(family: str, seed: int) -> tuple[NetworkSum, dict[str, Any], str]:
    """A sum of random trees, how to compress it, and a word for its decay."""
    rng = np.random.default_rng([seed, *family.encode()])
    nodes, size = FAMILIES[family][rng.integers(len(FAMILIES[family]))]
    is_star = family == "Tucker"
    n_terms, rank = int(rng.integers(1, 9)), int(rng.integers(3, 6 if is_star else 12))
    if rng.random() < 0.5:
        word, base = "fast", rng.uniform(0.1, 0.5)
        decay: Callable[[Array], Array] = lambda k: base**k  # noqa: E731
    else:
        word, power = "slow", rng.uniform(0.5, 3.0)
        decay = lambda k: (k + 1.0) ** -power  # noqa: E731
    dtype = "complex128" if rng.random() < 0.2 else "float64"
    terms = [decaying(nodes, size, rank, decay, rng, dtype) for _ in range(n_terms)]
    weights = rng.standard_normal(n_terms) * 10.0 ** -rng.uniform(0, 4, n_terms)
    total: Any = sum(
        (float(w) * x for w, x in zip(weights, terms, strict=True)), start=0 * terms[0]
    )
    how: dict[str, Any] = {"tolerance": float(10.0 ** -rng.uniform(1, 10))}
    if rng.random() < 0.4:
        how["max_rank"] = int(rng.integers(1, 20))
        if rng.random() < 0.5:
            del how["tolerance"]
    return total, {**how, "seed": int(rng.integers(1000))}, word


# small trees in bad gauges, and cancelling, against extended precision

SMALL_FAMILIES: dict[str, list[tuple[Nodes, int]]] = {
    "train": [(train(2), 40), (train(4), 8), (train(6), 5), (train(8), 3)],
    "operator train": [(operator_train(3), 4), (operator_train(5), 2)],
    "matrix chain": [(matrix_chain(2), 40), (matrix_chain(3), 40), (matrix_chain(5), 30)],
    "Tucker": [(star(2), 40), (star(3), 20), (star(4), 8), (star(5), 6)],
    "binary tree": [(binary_tree(4), 8), (binary_tree(8), 3)],
    "comb": [(comb(2), 8), (comb(4), 3)],
}
"""Trees whose tensors are small enough to be held densely in extended precision."""


def extended(x: Network) -> Array:
    """The tensor of a small tree, in extended precision throughout."""
    nodes, physical = dict(x.topology.nodes), x.physical_modes
    array, modes = _extended_branch(nodes, set(physical), x.arrays, next(iter(nodes)), None)
    return np.transpose(array, [modes.index(mode) for mode in physical])


def _extended_branch(
    nodes: Nodes, physical: set[str], arrays: Arrays, name: str, up: str | None
) -> tuple[Array, list[str]]:
    modes, array = list(nodes[name]), np.asarray(arrays[name])
    array = array.astype(np.clongdouble if np.iscomplexobj(array) else np.longdouble)
    for mode in nodes[name]:
        if mode not in physical and mode != up:
            child = next(n for n in nodes if n != name and mode in nodes[n])
            other, held = _extended_branch(nodes, physical, arrays, child, mode)
            array = np.tensordot(array, other, (modes.index(mode), held.index(mode)))
            modes = [m for m in modes if m != mode] + [m for m in held if m != mode]
    return array, modes


def extended_sum(x: NetworkSum) -> Array:
    """The dense tensor of a sum of small trees, in extended precision."""
    return np.asarray(
        sum(
            (np.clongdouble(w) if np.iscomplexobj(w) else np.longdouble(w)) * extended(term)
            for w, term in zip(np.asarray(x.weights), x.summands, strict=True)
        )
    )


def extended_error(exact: Array, y: Network) -> float:
    """The relative distance of a network to a tensor in extended precision."""
    rest, whole = (np.sqrt(np.sum(np.abs(a) ** 2)) for a in (exact - extended(y), exact))
    return float(rest / whole)


def in_bad_gauge(x: Network, condition: float, rng: np.random.Generator) -> Network:
    """The same tree with matrices of a condition and their inverses between all neighbours."""
    held = {
        name: np.asarray(a).astype(np.clongdouble if np.iscomplexobj(a) else np.longdouble)
        for name, a in x.arrays.items()
    }
    for mode in x.topology.contraction_modes:
        first, second = x.topology.holders(mode)
        rank = x.ranks[mode]
        left, right = (np.linalg.qr(rng.standard_normal((rank, rank)))[0] for _ in range(2))
        scales = np.geomspace(1, condition, rank) / np.sqrt(condition)
        matrices = (left * scales) @ right, (left / scales) @ right
        for name, matrix in zip((first, second), matrices, strict=True):
            k = x.topology.nodes[name].index(mode)
            held[name] = np.moveaxis(np.tensordot(held[name], matrix, (k, 0)), -1, k)
    return Network(
        {name: (a.astype(x.dtype), x.topology.nodes[name]) for name, a in held.items()},
        x.physical_modes,
    )


def hard_sum(
    seed: int, conditions: Sequence[float], is_cancelling: bool, dtypes: Sequence[str]
) -> tuple[NetworkSum, str, float, str]:
    """A sum of small trees, its family, the condition of its gauges and its dtype.

    Where it cancels, one or two summands that are 1e2 to 1e8 times larger meet their copies, themselves
    in another gauge, or the sum of both.
    """
    rng = np.random.default_rng(seed)
    family = list(SMALL_FAMILIES)[rng.integers(len(SMALL_FAMILIES))]
    nodes, size = SMALL_FAMILIES[family][rng.integers(len(SMALL_FAMILIES[family]))]
    n_terms, rank = int(rng.integers(1, 9)), int(rng.integers(2, 6))
    dtype = dtypes[rng.integers(len(dtypes))]
    condition = conditions[rng.integers(len(conditions))]
    base, power = rng.uniform(0.1, 0.9), rng.uniform(0.0, 3.0)
    decay: Callable[[Array], Array]
    decay = (lambda k: base**k) if rng.random() < 0.5 else (lambda k: (k + 1.0) ** -power)

    def one() -> Network:
        return decaying(nodes, size, rank, decay, rng, dtype)

    terms = [one() for _ in range(n_terms)]
    weights = list(rng.standard_normal(n_terms) * 10.0 ** -rng.uniform(0, 2, n_terms))
    if is_cancelling:
        eps = 10.0 ** -rng.uniform(2, 3.5 if dtype in ("float32", "complex64") else 8)
        weights = [eps * weight for weight in weights]
        for _ in range(int(rng.integers(1, 3))):
            large, weight, kind = one(), rng.uniform(0.5, 2), rng.integers(3)
            if kind == 2:
                other = one()
                both: Any = large + other
                terms += [large, other, both.to_network()]
                weights += [weight, weight, -weight]
            else:
                terms += [large, large if kind == 0 else in_bad_gauge(large, 1.0, rng)]
                weights += [weight, -weight]
    if condition > 1:
        terms = [in_bad_gauge(term, condition, rng) for term in terms]
    order = rng.permutation(len(terms))
    total = add(*(terms[k] for k in order), weights=[float(weights[k]) for k in order])
    return total, family, condition, dtype


RANKED_FAMILIES: dict[str, list[tuple[Nodes, int]]] = {
    "train": [(train(3), 16), (train(4), 9), (train(6), 5)],
    "operator train": [(operator_train(3), 5)],
    "matrix chain": [(matrix_chain(2), 60), (matrix_chain(2), 110), (matrix_chain(3), 50)],
    "Tucker": [(star(3), 20), (star(4), 9)],
    "binary tree": [(binary_tree(4), 8)],
    "comb": [(comb(2), 8)],
}


def sum_by_rank(seed: int) -> tuple[NetworkSum, int, str, str]:
    """A sum of 8 to 60 trees of any decay, a rank that is too small, its family and its dtype."""
    rng = np.random.default_rng([7, seed])
    family = list(RANKED_FAMILIES)[seed % len(RANKED_FAMILIES)]
    nodes, size = RANKED_FAMILIES[family][rng.integers(len(RANKED_FAMILIES[family]))]
    dtype = ("float64", "float32", "complex128", "complex64")[rng.integers(4)]
    n_terms, rank = int(rng.integers(8, 60)), int(rng.integers(2, 5 if family == "Tucker" else 9))
    base, power = rng.uniform(0.3, 1), rng.uniform(0, 2)
    decay: Callable[[Array], Array]
    decay = (lambda k: base**k) if rng.random() < 0.5 else (lambda k: (k + 1.0) ** -power)
    terms = [decaying(nodes, size, rank, decay, rng, dtype) for _ in range(n_terms)]
    total = NetworkStack.from_networks(terms).sum(rng.uniform(0.8, 1) ** np.arange(n_terms))
    return total, int(rng.integers(2, 16)), family, dtype
