"""Contracting networks: pair by pair, to dense arrays and to single entries.

A network is contracted pair by pair, in an order that `paths` finds.

A stack needs nothing else: its leading axis is one more mode that every node holds, and the weights
are one more node. Summed over, that mode gives the sum of the networks; kept, each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tnsum import _arrays, _scale
from tnsum._memory import check_memory
from tnsum._products import product, simplified, transposed
from tnsum._typing import Array, Label, Namespace, Operand
from tnsum.errors import ModeError, NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.paths import Path, Plan, plan_for, zipped_path
from tnsum.summation import NetworkSum
from tnsum.topology import short

STACK: Label = ("stack",)
OTHER_STACK: Label = ("other", STACK)
ENTRY: Label = ("entry",)


def piece_size(array: Array) -> int:
    """The numbers of the largest array of a piece, when a stack is worked on in pieces.

    Few enough to stay in cache, enough that the time goes into arithmetic: more on an accelerator.
    """
    return 2**26 if _arrays.is_on_accelerator(array) else 2**20


def evaluate(
    xp: Namespace,
    operands: Sequence[Operand],
    output: Sequence[Label],
    path: Path | None = None,
) -> Array:
    """The product of all operands, summed over every mode that is not in `output`."""
    live, plan, numbers = _planned(xp, operands, output, path)
    for k, operand in enumerate(operands := list(live.values())):
        live[k] = simplified(xp, operand, plan.keep[k])
    for k, (i, j) in enumerate(plan.path, len(operands)):
        live[k] = product(xp, live.pop(i), live.pop(j), plan.keep[k])
    (result,) = live.values()
    return transposed(xp, result, [numbers[m] for m in output])


def _planned(
    xp: Namespace, operands: Sequence[Operand], output: Sequence[Label], path: Path | None
) -> tuple[dict[int, Operand], Plan, dict[Label, int]]:
    """The operands by number, with numbers for modes; the order of products; the modes' numbers."""
    operands = without_trivial_modes(xp, operands, output)
    plan, numbers = plan_for(operands, output, path)
    check_memory(plan.largest, operands[0][0].dtype, "The largest array on the way", ADVICE)
    live: dict[int, Operand] = {}
    for k, (array, modes) in enumerate(operands):
        live[k] = array, tuple(numbers[m] for m in modes)
    return live, plan, numbers


def evaluate_scaled(
    xp: Namespace,
    operands: Sequence[Operand],
    output: Sequence[Label],
    path: Path | None = None,
    exponents: Sequence[Operand] = (),
) -> tuple[Array, Array]:
    """The same as an array and powers of two, so that nothing on the way leaves the range.

    Every network of a stack has a power of its own, so that small ones are not lost beside large ones
    that something small is yet to be multiplied with: along STACK and OTHER_STACK, as far as these
    are in `output`, in that order. `exponents` are powers beside the operands, with these modes too.
    """
    live, plan, numbers = _planned(xp, operands, output, path)
    stacks = [numbers[m] for m in (STACK, OTHER_STACK) if m in numbers]
    powers: dict[int, Operand | None] = dict.fromkeys(live)
    for array, modes in without_trivial_modes(xp, exponents, output):
        if not (_arrays.is_on_host(array) and not array.any()):
            own = array, tuple(numbers[m] for m in modes)
            holder = max(k for k, (_, held) in live.items() if set(own[1]) <= set(held))
            powers[holder] = _scale.together(xp, powers[holder], own)
    for k, operand in enumerate(started := list(live.values())):
        operand, powers[k] = _scale.multiplied_in(xp, operand, powers[k], plan.keep[k])
        live[k] = simplified(xp, operand, plan.keep[k])
    for k, (i, j) in enumerate(plan.path, len(started)):
        a, b, keep = live.pop(i), live.pop(j), plan.keep[k]
        own_powers = _scale.together(xp, powers.pop(i), powers.pop(j))
        if own_powers is not None:
            # What is summed is held by both, so that one of them has all the stacks.
            if set(own_powers[1]) <= set(a[1]):
                a, own_powers = _scale.multiplied_in(xp, a, own_powers, keep)
            else:
                b, own_powers = _scale.multiplied_in(xp, b, own_powers, keep)
        live[k], taken = _rescaled(xp, product(xp, a, b, keep), stacks)
        powers[k] = _scale.together(xp, own_powers, taken)
    (result,), (left,) = live.values(), powers.values()
    array = transposed(xp, result, [numbers[m] for m in output])
    kept = tuple(numbers[m] for m in output if m in (STACK, OTHER_STACK))
    shape = tuple(n for n, m in zip(array.shape, output, strict=True) if numbers[m] in kept)
    return array, _scale.spread(xp, left, kept, shape, array)


def _rescaled(
    xp: Namespace, operand: Operand, stacks: Sequence[Label]
) -> tuple[Operand, Operand | None]:
    """An operand with the part of every network of a stack near one, and the powers taken out."""
    array, modes = operand
    limit = _scale.extreme(array.dtype)
    held = [mode for mode in modes if mode in stacks]
    if not held:
        array, taken = _scale.rescaled_if_extreme(xp, array, None, limit)
        return (array, modes), None if taken is None else (taken, ())
    powers: Operand | None = None
    for mode in held:
        array, taken = _scale.rescaled_if_extreme(xp, array, modes.index(mode), limit)
        if taken is not None:
            powers = _scale.together(xp, powers, (taken, (mode,)))
    return (array, modes), powers


ADVICE = (
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


def operands_of(x: Network | NetworkStack) -> list[Operand]:
    """The nodes as operands; a stack's leading axis is the mode STACK."""
    leading = (STACK,) * x._n_leading
    return [(x.arrays[name], (*leading, *modes)) for name, modes in x.topology.nodes.items()]


def sliced(operands: Sequence[Operand], mode: Label, where: slice) -> list[Operand]:
    """The operands with a part of one mode."""
    sizes = [a.shape[modes.index(mode)] for a, modes in operands if mode in modes]
    if not sizes or (not where.start and where.stop >= sizes[0]):
        return list(operands)
    where = slice(where.start, min(where.stop, sizes[0]))
    return [
        (array[tuple(where if m == mode else slice(None) for m in modes)], modes)
        if mode in modes
        else (array, modes)
        for array, modes in operands
    ]


def pieces(operands: Sequence[Operand], n: int, output: Sequence[Label]) -> Iterator[list[Operand]]:
    """The operands of n networks, cut along STACK so that what holds this mode stays small."""
    return (sliced(operands, STACK, part) for part in parts_of_stack(operands, n, output))


def parts_of_stack(operands: Sequence[Operand], n: int, output: Sequence[Label]) -> Iterator[slice]:
    """Where to cut the operands of n networks along STACK."""
    few = min(n, 64)
    trial = sliced(operands, STACK, slice(0, few))
    plan, numbers = plan_for(trial, output)
    if few == 1:
        yield slice(0, 1)
        return
    sizes = {
        numbers[m]: k
        for a, modes in trial
        for m, k in zip(modes, a.shape, strict=True)
        if m in numbers
    }
    holding = [math.prod(sizes[m] for m in kept) for kept in plan.keep if numbers[STACK] in kept]
    step = max(1, piece_size(trial[0][0]) * few // max(holding))
    for start in range(0, n, step):
        yield slice(start, start + step)


def contract(x: Network | NetworkStack | NetworkSum) -> Array:
    """The dense array of a network, a stack or a sum (see their methods of this name)."""
    xp, modes = x.namespace, x.physical_modes
    shape = (len(x), *x.shape) if isinstance(x, NetworkStack) else x.shape
    if len(shape) > 64:
        raise NetworkError(
            f"A dense array must have at most 64 axes; this tensor has order {x.order}. "
            f"Take entries(...) or select(...) of it, or tnsum.norm and tnsum.inner."
        )
    check_memory(math.prod(shape), x.dtype, f"The dense array of shape {short(shape)}", ADVICE)
    if isinstance(x, Network):
        array = _arrays.as_array(evaluate(xp, operands_of(x), modes))
        return _arrays.copied(xp, array) if len(x.topology.nodes) == 1 else array
    if isinstance(x, NetworkStack):
        output = (STACK, *modes)
        parts = [evaluate(xp, piece, output) for piece in pieces(operands_of(x), len(x), output)]
        return parts[0] if len(parts) == 1 else xp.concat(parts)
    total = None
    for stack, weights in x._grouped():
        operands = [*operands_of(stack), (weights, (STACK,))]
        for piece in pieces(operands, len(stack), modes):
            array = evaluate(xp, piece, modes)
            total = array if total is None else total + array
    return _arrays.as_array(total)


def entries(x: Network | NetworkStack | NetworkSum, indices: Any) -> Array:
    """Single entries of a network, a stack or a sum (see `Network.entries`)."""
    xp = x.namespace
    checked = _checked_indices(xp, indices, x)
    shape = tuple(checked.shape[:-1])
    n_entries = math.prod(shape)
    flat = xp.reshape(checked, (n_entries, x.order))
    if isinstance(x, NetworkSum):
        groups: list[tuple[NetworkStack | Network, Array | None]] = [*x._grouped()]
    else:
        groups = [(x, None)]
    step = max(1, piece_size(x._some_array) // max(_n_gathered(stack) for stack, _ in groups))
    parts = [
        _entries(xp, groups, flat[start : min(start + step, n_entries), :], x.physical_modes)
        for start in range(0, max(1, n_entries), step)
    ]
    found = parts[0] if len(parts) == 1 else xp.concat(parts, axis=-1)
    return _arrays.scalar(xp.reshape(found, (*found.shape[:-1], *shape)))


def _n_gathered(x: Network | NetworkStack) -> int:
    """The numbers that one entry of one network gathers from its largest node."""
    ranks = x.ranks
    nodes = x.topology.nodes.values()
    return max(math.prod(ranks[m] for m in held if m in ranks) for held in nodes)


def _entries(
    xp: Namespace,
    groups: Sequence[tuple[NetworkStack | Network, Array | None]],
    indices: Array,
    modes: Sequence[str],
) -> Array:
    """The entries at a list of indices: of a network or stack, or summed over stacks with weights."""
    columns = {mode: indices[:, k] for k, mode in enumerate(modes)}
    total = None
    for x, weights in groups:
        # The mode that counts the entries takes the place of the physical modes.
        ones = xp.ones((indices.shape[0],), dtype=x.dtype, device=x.device)
        operands = [*operands_of(x), (ones, (ENTRY,))]
        others = [(weights, (STACK,))] if weights is not None else []
        output = (STACK, ENTRY) if isinstance(x, NetworkStack) and weights is None else (ENTRY,)
        path = zipped_path(x.topology, 1, 1 + len(others))
        n = len(x) if isinstance(x, NetworkStack) else 1
        step = max(1, piece_size(ones) // max(1, _n_gathered(x) * indices.shape[0]))
        parts = []
        for start in range(0, n, step):
            piece = sliced([*operands, *others], STACK, slice(start, start + step))
            part = evaluate(xp, [_gathered(xp, a, columns) for a in piece], output, path)
            total = part if total is None or STACK in output else total + part
            parts.append(part)
        if STACK in output:
            return parts[0] if len(parts) == 1 else xp.concat(parts)
    return total


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
    numbers = indices if own else _as_numpy(indices)
    if numbers.shape[-1:] != (x.order,):
        raise ModeError(
            f"indices must have one index per physical mode {x.physical_modes} along the last axis; "
            f"shape {tuple(numbers.shape)} came."
        )
    kind = _arrays.dtype_name(numbers.dtype)
    if not kind.startswith(("int", "uint")) and math.prod(numbers.shape):
        raise ModeError(f"indices must be integers; {kind} came.")
    if not _arrays.is_traced(numbers):
        _check_bounds(xp if own else np, numbers, x)
    dtype = _arrays.index_dtype(xp)
    if own:
        numbers = xp.astype(numbers, dtype)
    else:
        numbers = xp.asarray(numbers.astype(_arrays.dtype_name(dtype)), device=x.device)
    shape = xp.asarray(x.shape, dtype=dtype, device=x.device)
    return xp.where(numbers < 0, numbers + shape, numbers)


def _as_numpy(indices: Any) -> Any:
    try:
        return np.asarray(indices)
    except ValueError:
        raise ModeError("indices must form an array of integers; they do not.") from None


def _check_bounds(xp: Namespace, numbers: Array, x: Network | NetworkStack | NetworkSum) -> None:
    if not math.prod(numbers.shape):
        return
    for k, (mode, size) in enumerate(zip(x.physical_modes, x.shape, strict=True)):
        column = numbers[..., k]
        for extreme in (int(xp.max(column)), int(xp.min(column))):
            if not -size <= extreme < size:
                raise ModeError(f"Index {extreme} lies outside mode {mode!r} of size {size}.")
