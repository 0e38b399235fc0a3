"""The dense oracle: what a network represents, computed with NumPy alone.

Shares no code with ``tnsum``. Networks come as plain dicts, ``nodes`` (node name -> mode names)
and ``arrays`` (node name -> array); everything is computed in float64 or complex128.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Nodes: TypeAlias = Mapping[str, tuple[str, ...]]
Term: TypeAlias = tuple[Array, tuple[str, ...]]

MAX_ENTRIES = 2**24


def dense(nodes: Nodes, physical_modes: Sequence[str], arrays: Mapping[str, Any]) -> Array:
    """Dense array of a network, axes in the order of `physical_modes`.

    Every mode that is not in `physical_modes` is summed over, however often it is held.

    Raises
    ------
    ValueError
        Nodes and arrays do not fit together, or the result has more than 2**24 entries
        (use `probe`).
    """
    sizes = mode_sizes(nodes, arrays)
    missing = [mode for mode in physical_modes if mode not in sizes]
    if missing or len(set(physical_modes)) != len(physical_modes):
        raise ValueError(f"physical modes {physical_modes} must be distinct modes of {nodes}")
    n_entries = prod(sizes[mode] for mode in physical_modes)
    if n_entries > MAX_ENTRIES:
        raise ValueError(f"the dense array has {n_entries} entries, more than {MAX_ENTRIES}: probe")
    return _contract([(_wide(arrays[name]), nodes[name]) for name in nodes], tuple(physical_modes))


def probe(
    nodes: Nodes,
    physical_modes: Sequence[str],
    arrays: Mapping[str, Any],
    keep: Sequence[str],
    seed: int,
) -> Array:
    """Dense array over the modes `keep`, in that order; `vectors` applied to all other modes.

    The vectors depend on `seed` and on the mode's name and size only, so a weighted
    sum of probes is the probe of the weighted sum.
    """
    if not set(keep) <= set(physical_modes):
        raise ValueError(f"modes to keep {keep} must be physical: {physical_modes}")
    probed = [mode for mode in physical_modes if mode not in keep]
    applied = vectors(mode_sizes(nodes, arrays), probed, seed)
    # A vector is one more node that holds the mode; the mode is then summed.
    all_nodes = {**nodes, **{f"vector of {mode}": (mode,) for mode in probed}}
    all_arrays = {**arrays, **{f"vector of {mode}": applied[mode] for mode in probed}}
    return dense(all_nodes, keep, all_arrays)


def dense_sum(
    nodes: Nodes,
    physical_modes: Sequence[str],
    summands: Sequence[Mapping[str, Any]],
    weights: Sequence[complex],
) -> Array:
    """Weighted sum of the dense arrays of `summands`, each a dict of arrays over `nodes`."""
    return _weighted((dense(nodes, physical_modes, arrays) for arrays in summands), weights)


def probe_sum(
    nodes: Nodes,
    physical_modes: Sequence[str],
    summands: Sequence[Mapping[str, Any]],
    weights: Sequence[complex],
    keep: Sequence[str],
    seed: int,
) -> Array:
    """Weighted sum of the probes of `summands`, as `dense_sum` for tensors of high order."""
    probes = (probe(nodes, physical_modes, arrays, keep, seed) for arrays in summands)
    return _weighted(probes, weights)


def vectors(sizes: Mapping[str, int], modes: Iterable[str], seed: int) -> dict[str, Array]:
    """One random vector for each of `modes`; depends on seed, mode name and size only.

    Entries are float64 and positive: many random signs in a row would cancel.
    """
    applied = {}
    for mode in modes:
        rng = np.random.default_rng([seed, *mode.encode()])
        applied[mode] = rng.uniform(0.5, 1.5, sizes[mode]) / sizes[mode]
    return applied


def relative_error(got: Any, expected: Any) -> float:
    """Frobenius norm of ``got - expected`` relative to that of `expected`.

    Raises
    ------
    AssertionError
        Shapes differ, one of the two is not finite, or `expected` is all zeros or empty: against
        such an array nothing is tested.
    """
    got, expected = _wide(got), _wide(expected)
    if got.shape != expected.shape:
        raise AssertionError(f"shapes differ: got {got.shape}, expected {expected.shape}")
    if not np.all(np.isfinite(expected)):
        raise AssertionError("the expected array is not finite")
    if not np.any(expected):
        raise AssertionError(f"the expected array of shape {expected.shape} is all zeros")
    if not np.all(np.isfinite(got)):
        raise AssertionError("the array to test is not finite")
    # Scaled, so that squares neither overflow nor vanish.
    scale = np.max(np.abs(expected))
    difference = np.linalg.norm((got / scale - expected / scale).ravel())
    return float(difference / np.linalg.norm((expected / scale).ravel()))


def mode_sizes(nodes: Nodes, arrays: Mapping[str, Any]) -> dict[str, int]:
    """Size of every mode.

    Raises
    ------
    ValueError
        Names, orders or sizes do not fit together (``np.einsum`` would broadcast a size of 1).
    """
    if set(nodes) != set(arrays):
        raise ValueError(f"nodes {sorted(nodes)} and arrays {sorted(arrays)} must have equal names")
    sizes: dict[str, int] = {}
    for name, modes in nodes.items():
        shape = tuple(arrays[name].shape)
        if len(shape) != len(modes):
            raise ValueError(f"node {name!r} holds modes {modes} but has shape {shape}")
        for mode, size in zip(modes, shape, strict=True):
            if sizes.setdefault(mode, size) != size:
                raise ValueError(f"mode {mode!r} has sizes {sizes[mode]} and {size}")
    return sizes


def _wide(array: Any) -> Array:
    narrow = np.asarray(array)
    wide: Array = narrow.astype(np.result_type(narrow.dtype, np.float64))
    return wide


def _weighted(arrays: Iterable[Array], weights: Sequence[complex]) -> Array:
    # Not sum(): without a start value a sum of no summands fails instead of being 0.
    terms = [weight * array for weight, array in zip(weights, arrays, strict=True)]
    return np.asarray(np.sum(np.stack(terms), axis=0))


def _contract(terms: list[Term], kept: tuple[str, ...]) -> Array:
    """Contract pair by pair, cheapest pair first; a mode is summed once no other term holds it."""
    for k, term in enumerate(terms):
        terms[k] = _merge([term], terms[:k] + terms[k + 1 :], kept)
    while len(terms) > 1:
        j, k = _cheapest_pair(terms, kept)
        rest = [term for n, term in enumerate(terms) if n not in (j, k)]
        terms = [*rest, _merge([terms[j], terms[k]], rest, kept)]
    (array, modes) = terms[0]
    return np.transpose(array, [modes.index(mode) for mode in kept])


def _merge(terms: list[Term], rest: list[Term], kept: tuple[str, ...]) -> Term:
    """One or two terms as one, each mode once, summed over what `rest` and `kept` do not need."""
    needed = {*kept, *(mode for _, modes in rest for mode in modes)}
    # Labels are numbered anew for each merge: np.einsum knows 52 only.
    labels = {mode: k for k, mode in enumerate(dict.fromkeys(m for _, ms in terms for m in ms))}
    result = tuple(mode for mode in labels if mode in needed)
    operands: list[Any] = []
    for array, modes in terms:
        operands += [array, [labels[mode] for mode in modes]]
    return np.asarray(np.einsum(*operands, [labels[mode] for mode in result])), result


def _cheapest_pair(terms: list[Term], kept: tuple[str, ...]) -> tuple[int, int]:
    """Pair whose merging adds the fewest entries; pairs that share a mode go before others."""
    sizes = {m: s for array, modes in terms for m, s in zip(modes, array.shape, strict=True)}
    holders = Counter(mode for _, modes in terms for mode in modes)
    holders.update(kept)

    def cost(pair: tuple[int, int]) -> tuple[bool, int]:
        (a, a_modes), (b, b_modes) = terms[pair[0]], terms[pair[1]]
        shared = set(a_modes) & set(b_modes)
        result = {m for m in {*a_modes, *b_modes} if holders[m] > 1 + (m in shared)}
        return not shared, prod(sizes[mode] for mode in result) - a.size - b.size

    return min(combinations(range(len(terms)), 2), key=cost)
