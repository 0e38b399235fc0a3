"""Accumulators as named arrays and a description, and back.

The description holds the parameters of the accumulator; the arrays are what it has added up (see
`compression._two_sided`), with the powers of two that belong to them. The test tensors are not stored:
the seed says what they are, by a rule whose number is stored. What is read is checked in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tnsum._packing import KINDS, REAL, VERSION, as_pieces, check_names
from tnsum._tensor_files import Pieces, TensorFile, short_repr
from tnsum._typing import Array
from tnsum._unpacking import checked_tensor, checked_topology, numbers_of
from tnsum.compression._accumulator import SumAccumulator
from tnsum.compression._two_sided import Scaled, Sums
from tnsum.errors import NetworkError
from tnsum.topology import listed, short

# The rule by which the seed says what the test tensors are (docs/format.md).
_RULE = 2
# What `scales` holds for each node.
_PSI, _OMEGA, _ALONE = range(3)


def packed_accumulator(a: SumAccumulator) -> tuple[dict[str, Any], dict[str, Pieces]]:
    """What the header says of an accumulator, and its arrays by name."""
    topology = a.topology
    check_names((*topology.nodes, *topology.modes))
    document = {
        "version": VERSION,
        "kind": KINDS[SumAccumulator],
        "nodes": [{"name": name, "modes": held} for name, held in topology.nodes.items()],
        "physical_modes": topology.physical_modes,
        "shape": a.shape,
        "max_rank": a.max_rank,
        "dtype": a.dtype,
        "seed": a.seed,
        "rule": _RULE,
        "summands": a.n_summands,
    }
    return document, {} if a._sums is None else _packed_sums(a, a._sums)


def _packed_sums(a: SumAccumulator, sums: Sums) -> dict[str, Pieces]:
    arrays: dict[str, Pieces] = {}
    scales = np.zeros((len(a._tree), 3))
    rows = _rows(a)
    for kind, pairs, column in (("psi", sums.psi, _PSI), ("omega", sums.omega, _OMEGA)):
        for v, (array, exponent) in enumerate(pairs):
            shape = tuple(array.shape)
            arrays[f"{kind}/{a._tree[v].name}"] = as_pieces(a.dtype, shape, [array])
            scales[rows[v], column] = exponent
    scales[rows[: len(sums.alone)], _ALONE] = sums.alone
    return {**arrays, "scales": as_pieces("float64", scales.shape, [scales])}


def _rows(a: SumAccumulator) -> list[int]:
    """The place of each branch among the nodes."""
    place = {name: k for k, name in enumerate(a.topology.nodes)}
    return [place[branch.name] for branch in a._tree]


def unpacked_accumulator(
    document: Mapping[str, Any], file: TensorFile, wanted: Sequence[str] | None
) -> SumAccumulator:
    """What a description and the arrays of a file stand for; there is no wanting single nodes of it."""
    if wanted is not None:
        raise NetworkError("it holds an accumulator, of which single nodes cannot be loaded")
    rule, dtype, n_summands = (document.get(key) for key in ("rule", "dtype", "summands"))
    if type(rule) is not int or rule != _RULE:
        raise NetworkError(
            f"its test tensors must follow rule {_RULE}; {short_repr(rule)} came. Take the tnsum that "
            f"wrote it."
        )
    if not isinstance(dtype, str) or dtype not in REAL:
        raise NetworkError(f"its dtype must be of {listed(tuple(REAL))}; {short_repr(dtype)} came")
    if type(n_summands) is not int or n_summands < 0:
        raise NetworkError(f"its summands must be counted; {short_repr(n_summands)} came")
    given: dict[str, Any] = {key: document.get(key) for key in ("shape", "max_rank", "seed")}
    a = SumAccumulator(checked_topology(document), dtype=dtype, **given)
    n_arrays = 2 * len(a._tree) if n_summands else 0
    if len(file.arrays) != n_arrays:
        raise NetworkError(
            f"it has {len(file.arrays)} tensors, but its description needs {n_arrays}"
        )
    if n_summands:
        a._sums, a._n_summands = _unpacked_sums(a, file), n_summands
    return a


def _unpacked_sums(a: SumAccumulator, file: TensorFile) -> Sums:
    n, widths = len(a._tree), a._widths
    scales = _checked_array(file, "scales", "float64", (n, 3))[_rows(a), :]
    # Zero has no logarithm.
    is_zero = (np.arange(3) == _ALONE) & (scales == -np.inf)
    if not np.all(is_zero | (np.abs(scales) <= 2.0**40)):
        raise NetworkError("tensor 'scales' must hold exponents of at most 2**40; some are not")
    shapes = [(rows, widths.wide) for rows in widths.rows[:-1]] + [(widths.rows[-1], 1)]

    def scaled(kind: str, v: int, shape: tuple[int, int], column: int) -> Scaled:
        array = _checked_array(file, f"{kind}/{a._tree[v].name}", a.dtype, shape)
        return array, float(scales[v, column])

    psi = [scaled("psi", v, shape, _PSI) for v, shape in enumerate(shapes)]
    pairs = enumerate(widths.narrow)
    omega = [scaled("omega", v, (width, widths.wide), _OMEGA) for v, width in pairs]
    return Sums(psi, omega, [float(log2) for log2 in scales[: max(1, n - 1), _ALONE]])


def _checked_array(file: TensorFile, key: str, dtype: str, expected: tuple[int, ...]) -> Array:
    """An array of the file, copied: what is computed from it may depend on where it lies."""
    shape = checked_tensor(file, key, dtype)
    if shape != expected:
        raise NetworkError(
            f"tensor {key[:80]!r} must have shape {short(expected)}; {short(shape)} came"
        )
    array = np.array(numbers_of(file, key, dtype))
    # Scales are taken out: even a billion terms do not make larger ones.
    if key != "scales" and not np.all(np.abs(array) <= 2.0**60):
        raise NetworkError(f"tensor {key[:80]!r} must hold numbers of at most 2**60; some are not")
    return array
