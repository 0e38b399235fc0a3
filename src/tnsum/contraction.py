"""Contracting networks: the order of pairwise products, dense arrays, single entries.

A network is contracted pair by pair. The order of the pairs is found once per topology and sizes and
then kept: by opt_einsum, by cotengra (if installed) for large graphs with loops, and from the leaves
inwards where a tree is to be contracted to something small.

A stack needs nothing else: its leading axis is one more mode that every node holds, and the weights
are one more node. Summed over, that mode gives the sum of the networks; kept, each of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tnsum import _arrays
from tnsum._memory import check_memory
from tnsum._products import product, simplified, transposed
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.errors import ModeError
from tnsum.network import Network, NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import Topology

STACK: Label = ("stack",)
ENTRY: Label = ("entry",)

# Stacks are worked on in pieces whose largest array has about this many numbers: few enough to stay
# in cache, enough that the time goes into arithmetic.
PIECE = 2**20

Path = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Plan:
    """The order of the products, and what they cost.

    Attributes
    ----------
    path : tuple of pairs
        Which two operands are multiplied; the result of step k counts as operand n + k.
    keep : tuple
        For each operand and then each step, the modes that are needed afterwards.
    n_multiplications, largest : int
        The multiplications of all products; the entries of the largest array.
    """

    path: Path
    keep: tuple[frozenset[int], ...]
    n_multiplications: int
    largest: int


def evaluate(
    xp: Namespace,
    operands: Sequence[Operand],
    output: Sequence[Label],
    path: Path | None = None,
) -> Array:
    """The product of all operands, summed over every mode that is not in `output`."""
    array, _ = _evaluated(xp, operands, output, path, scaled=False)
    return array


def evaluate_scaled(
    xp: Namespace,
    operands: Sequence[Operand],
    output: Sequence[Label],
    path: Path | None = None,
) -> tuple[Array, Array]:
    """The same as an array and a power of two, so that nothing on the way overflows."""
    return _evaluated(xp, operands, output, path, scaled=True)


def _evaluated(
    xp: Namespace,
    operands: Sequence[Operand],
    output: Sequence[Label],
    path: Path | None,
    scaled: bool,
) -> tuple[Array, Array]:
    operands = without_trivial_modes(xp, operands, output)
    plan, numbers = plan_for(operands, output, path)
    check_memory(plan.largest, operands[0][0].dtype, "The largest array on the way", _ADVICE)
    live: dict[int, Operand] = {}
    dtype = _arrays.real_dtype(xp, operands[0][0].dtype)
    exponent = xp.zeros((), dtype=dtype, device=_arrays.device_of(operands[0][0]))
    for k, (array, modes) in enumerate(operands):
        live[k] = simplified(xp, (array, tuple(numbers[m] for m in modes)), plan.keep[k])
    for k, (i, j) in enumerate(plan.path, len(operands)):
        array, modes = product(xp, live.pop(i), live.pop(j), plan.keep[k])
        if scaled:
            array, taken = _arrays.rescaled(xp, array)
            exponent = exponent + taken
        live[k] = array, modes
    (result,) = live.values()
    return transposed(xp, result, [numbers[m] for m in output]), exponent


_ADVICE = (
    "Smaller ranks need less; entries(...) and select(...) avoid the dense array, and cotengra, if "
    "installed, finds better orders for large graphs with loops."
)


def without_trivial_modes(
    xp: Namespace, operands: Sequence[Operand], output: Sequence[Label]
) -> list[Operand]:
    """The operands without the summed modes of size one, which only cost axes."""
    found = []
    for array, modes in operands:
        if 1 in array.shape:
            pairs = zip(modes, array.shape, strict=True)
            kept = [(m, n) for m, n in pairs if n > 1 or m in output]
            array = xp.reshape(array, tuple(n for _, n in kept))
            modes = tuple(m for m, _ in kept)
        found.append((array, modes))
    return found


def plan_for(
    operands: Sequence[Operand], output: Sequence[Label], path: Path | None = None
) -> tuple[Plan, dict[Label, int]]:
    """The plan of a contraction, and the numbers that stand in it for the modes.

    Summed modes of size one are passed over, as `without_trivial_modes` does.
    """
    numbers: dict[Label, int] = {}
    sizes: list[int] = []
    inputs = []
    for array, modes in operands:
        held = []
        for mode, size in zip(modes, array.shape, strict=True):
            if size > 1 or mode in output:
                if mode not in numbers:
                    numbers[mode] = len(numbers)
                    sizes.append(size)
                held.append(numbers[mode])
        inputs.append(tuple(held))
    return _plan(tuple(inputs), tuple(numbers[m] for m in output), tuple(sizes), path), numbers


@lru_cache(maxsize=2048)
def _plan(
    inputs: tuple[tuple[int, ...], ...],
    output: tuple[int, ...],
    sizes: tuple[int, ...],
    path: Path | None,
) -> Plan:
    if path is None:
        path = found_path(inputs, output, sizes)
    live = [set(modes) for modes in inputs]
    holders = Counter(mode for modes in live for mode in modes)
    holders.update(output)
    keep = [frozenset(m for m in modes if holders[m] > 1) for modes in live]
    held = list(keep)
    # A mode that only one operand holds is summed at once, before any product.
    n_multiplications = 0
    largest = max((_extent(modes, sizes) for modes in live), default=1)
    for i, j in path:
        union = held[i] | held[j]
        n_multiplications += _extent(union, sizes)
        holders.subtract(held[i])
        holders.subtract(held[j])
        kept = frozenset(mode for mode in union if holders[mode] > 0)
        holders.update(kept)
        held.append(kept)
        keep.append(kept)
        largest = max(largest, _extent(kept, sizes))
    return Plan(path, tuple(keep), n_multiplications, largest)


def _extent(modes: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[mode] for mode in modes)


def found_path(
    inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...], sizes: tuple[int, ...]
) -> Path:
    """A good order of products, as pairs of operands numbered in the order in which they are made."""
    if len(inputs) <= 2:
        return ((0, 1),) if len(inputs) == 2 else ()
    from opt_einsum import paths

    size_of = dict(enumerate(sizes))
    path = _numbered(
        paths.auto(list(map(frozenset, inputs)), frozenset(output), size_of), len(inputs)
    )
    # opt_einsum searches all orders of few operands; among many it is greedy, and a longer search
    # pays where that order is dear.
    work = _plan(inputs, output, sizes, path).n_multiplications
    if len(inputs) > _FEW and work > _DEAR:
        linear = _cotengra_path(inputs, output, size_of)
        if linear is not None:
            other = _numbered(linear, len(inputs))
            if _plan(inputs, output, sizes, other).n_multiplications < work:
                return other
    return path


_FEW, _DEAR = 14, 10**8


def _numbered(linear: Iterable[Sequence[int]], n: int) -> Path:
    """A path of positions in a shrinking list, as pairs of numbers that stay."""
    ids = list(range(n))
    path: list[tuple[int, int]] = []
    for step in linear:
        chosen = [ids.pop(k) for k in sorted(step, reverse=True)]
        # A step of several operands multiplies them one after the other.
        while len(chosen) > 1:
            path.append((chosen.pop(), chosen.pop()))
            chosen.append(n + len(path) - 1)
        ids.append(chosen[0])
    return tuple(path)


def _cotengra_path(
    inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...], size_of: dict[int, int]
) -> Any:
    """The path of cotengra's search, or None where it is not installed."""
    try:
        import cotengra
    except ImportError:
        return None
    search = cotengra.HyperOptimizer(
        methods=["greedy", "labels"], max_repeats=16, optlib="random", parallel=False, progbar=False,
        seed=0,
    )  # fmt: skip
    return cotengra.array_contract_path(inputs, output, size_dict=size_of, optimize=search)


@lru_cache(maxsize=256)
def inward(topology: Topology) -> tuple[tuple[int, int], ...]:
    """The nodes of a tree, by number, from the leaves inwards, each with the one it hangs on.

    Leaves are taken away layer by layer, so that what is left at the end is a centre of the tree.
    """
    number = {name: k for k, name in enumerate(topology.nodes)}
    neighbours: list[set[int]] = [set() for _ in number]
    for mode in topology.contraction_modes:
        i, j = (number[name] for name in topology.holders(mode))
        neighbours[i].add(j)
        neighbours[j].add(i)
    layer = [k for k, near in enumerate(neighbours) if len(near) == 1]
    steps = []
    while layer:
        following = []
        for leaf in layer:
            if not neighbours[leaf]:
                continue
            (parent,) = neighbours[leaf]
            steps.append((leaf, parent))
            neighbours[leaf].clear()
            neighbours[parent].discard(leaf)
            if len(neighbours[parent]) == 1:
                following.append(parent)
        layer = following
    return tuple(steps)


@lru_cache(maxsize=256)
def zipped_path(topology: Topology, copies: int, n_others: int) -> Path | None:
    """For `copies` networks of a tree, node by node from the leaves inwards, then other operands.

    The operands are the nodes of the first copy, then those of the next; None if there is no tree.
    """
    if not topology.is_tree:
        return None
    n = len(topology.nodes)
    made = copies * n + n_others
    current = list(range(n))
    path: list[tuple[int, int]] = []

    def multiply(i: int, j: int) -> int:
        path.append((i, j))
        return made + len(path) - 1

    steps = inward(topology)
    centre = steps[-1][1] if steps else 0
    for leaf, parent in (*steps, (centre, centre)):
        for copy in range(1, copies):
            current[leaf] = multiply(current[leaf], copy * n + leaf)
        if parent != leaf:
            current[parent] = multiply(current[parent], current[leaf])
    for other in range(copies * n, made):
        current[centre] = multiply(current[centre], other)
    return tuple(path)


def operands_of(x: Network | NetworkStack) -> list[Operand]:
    """The nodes as operands; a stack's leading axis is the mode STACK."""
    leading = (STACK,) * x._n_leading
    return [(x.arrays[name], (*leading, *modes)) for name, modes in x.topology.nodes.items()]


def sliced(operands: Sequence[Operand], mode: Label, where: slice) -> list[Operand]:
    """The operands with a part of one mode."""
    return [
        (array[tuple(where if m == mode else slice(None) for m in modes)], modes)
        if mode in modes
        else (array, modes)
        for array, modes in operands
    ]


def pieces(
    operands: Sequence[Operand], mode: Label, n: int, largest: int
) -> Iterator[list[Operand]]:
    """The operands cut along a mode of size n, `largest` being the numbers at each of its indices."""
    step = max(1, PIECE // max(1, largest))
    if step >= n:
        yield list(operands)
        return
    for start in range(0, n, step):
        yield sliced(operands, mode, slice(start, start + step))


def contract(x: Network | NetworkStack | NetworkSum) -> Array:
    """The dense array of a network, a stack or a sum (see their methods of this name)."""
    xp, modes = x.namespace, x.physical_modes
    shape = (len(x), *x.shape) if isinstance(x, NetworkStack) else x.shape
    check_memory(math.prod(shape), x.dtype, f"The dense array of shape {shape}", _ADVICE)
    if isinstance(x, Network):
        return evaluate(xp, operands_of(x), modes)
    if isinstance(x, NetworkStack):
        output = (STACK, *modes)
        parts = [evaluate(xp, p, output) for p in _dense_pieces(operands_of(x), len(x), modes)]
        return parts[0] if len(parts) == 1 else xp.concat(parts)
    total = None
    for stack, weights in x.grouped():
        operands = [*operands_of(stack), (weights, (STACK,))]
        for piece in _dense_pieces(operands, len(stack), modes):
            array = evaluate(xp, piece, modes)
            total = array if total is None else total + array
    return total


def _dense_pieces(
    operands: Sequence[Operand], n: int, modes: Sequence[Label]
) -> Iterator[list[Operand]]:
    """The operands of n networks in pieces that stay small on the way to each one's dense array."""
    plan, _ = plan_for(sliced(operands, STACK, slice(0, 1)), (STACK, *modes))
    return pieces(operands, STACK, n, plan.largest)


def entries(x: Network | NetworkStack | NetworkSum, indices: Any) -> Array:
    """Single entries of a network, a stack or a sum (see `Network.entries`)."""
    xp = x.namespace
    checked = _checked_indices(xp, indices, x)
    flat = xp.reshape(checked, (math.prod(checked.shape[:-1]), x.order))
    columns = {mode: flat[:, k] for k, mode in enumerate(x.physical_modes)}
    # The mode that counts the entries takes the place of the physical modes.
    ones = xp.ones((flat.shape[0],), dtype=_arrays.real_dtype(xp, x.dtype), device=x.device)
    counting: list[Operand] = [(ones, (ENTRY,))]
    if isinstance(x, NetworkSum):
        total = None
        path = zipped_path(x.topology, 1, 2)
        largest = flat.shape[0] * max(x.ranks.values(), default=1)
        for stack, weights in x.grouped():
            operands = [*operands_of(stack), *counting, (weights, (STACK,))]
            for piece in pieces(operands, STACK, len(stack), largest // x.n_summands):
                found = evaluate(xp, [_gathered(xp, a, columns) for a in piece], (ENTRY,), path)
                total = found if total is None else total + found
        return _arrays.scalar(xp.reshape(total, checked.shape[:-1]))
    gathered = [_gathered(xp, operand, columns) for operand in [*operands_of(x), *counting]]
    leading = (STACK,) * x._n_leading
    found = evaluate(xp, gathered, (*leading, ENTRY), zipped_path(x.topology, 1, 1))
    return _arrays.scalar(xp.reshape(found, (*found.shape[: len(leading)], *checked.shape[:-1])))


def _gathered(xp: Namespace, operand: Operand, columns: dict[str, Array]) -> Operand:
    """A node at the given indices: one mode for all entries in place of its physical modes."""
    held = [mode for mode in dict.fromkeys(operand[1]) if mode in columns]
    if not held:
        return operand
    array, modes = simplified(xp, operand, operand[1])
    rest = [mode for mode in modes if mode not in columns]
    array = transposed(xp, (array, modes), [*held, *rest])
    sizes = array.shape[: len(held)]
    array = xp.reshape(array, (math.prod(sizes), *array.shape[len(held) :]))
    position = columns[str(held[0])]
    for mode, size in zip(held[1:], sizes[1:], strict=True):
        position = position * size + columns[str(mode)]
    return xp.take(array, position, axis=0), (ENTRY, *rest)


def _checked_indices(xp: Namespace, indices: Any, x: Network | NetworkStack | NetworkSum) -> Array:
    """Indices of shape (..., order), not negative, in the network's library."""
    own = _arrays.is_array(indices) and _arrays.namespace(indices) is xp
    numbers = indices if own else np.asarray(indices)
    if numbers.shape[-1:] != (x.order,):
        raise ModeError(
            f"indices must have one index per physical mode {x.physical_modes} along the last axis; "
            f"shape {tuple(numbers.shape)} came."
        )
    kind = _arrays.dtype_name(numbers.dtype)
    if not kind.startswith(("int", "uint")) and math.prod(numbers.shape):
        raise ModeError(f"indices must be integers; {kind} came.")
    if not own:
        numbers = numbers.astype(np.int64)
    if not _arrays.is_traced(numbers):
        _check_bounds(numbers, x)
    if not own:
        numbers = xp.asarray(numbers.tolist(), dtype=xp.int64, device=x.device)
        numbers = xp.reshape(numbers, np.shape(indices))
    shape = xp.asarray(x.shape, dtype=numbers.dtype, device=x.device)
    return xp.where(numbers < 0, numbers + shape, numbers)


def _check_bounds(numbers: Array, x: Network | NetworkStack | NetworkSum) -> None:
    for k, (mode, size) in enumerate(zip(x.physical_modes, x.shape, strict=True)):
        column = numbers[..., k]
        outside = (column < -size) | (column >= size)
        if bool(outside.any() if hasattr(outside, "any") else np.any(outside)):
            raise ModeError(
                f"indices must lie inside the shape {x.shape}; mode {mode!r} has size {size}."
            )
