"""Exact sums: ours, quimb's and teneva's in one run.

    python benchmarks/sums.py [--quick] [--write FILE]

Every result that is timed is first compared with an oracle that shares no code with tnsum: single
entries by plain loops over the summands' arrays, or dense arrays added by NumPy.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import util
from pathlib import Path
from typing import Any

from measure import Report, Work, in_bytes, in_seconds, interleaved, run, slope, with_peak_memory

import numpy as np  # isort: skip - measure asks for one thread first

import tnsum

ORDER, SIZE, RANK = 10, 10, 8
PACKAGES = ("tnsum", "numpy", "quimb", "teneva")
ALLOWED = 1e-10

Cores = list[Any]


def stacked_cores(n: int, seed: int = 0) -> Cores:
    """The cores of n trains, each an array (n, rank, size, rank)."""
    rng = np.random.default_rng(seed)
    ranks = [1, *[RANK] * (ORDER - 1), 1]
    scale = 1 / np.sqrt(RANK)
    return [scale * rng.standard_normal((n, ranks[k], SIZE, ranks[k + 1])) for k in range(ORDER)]


def some_indices(shape: Sequence[int], n: int = 40) -> Any:
    return np.random.default_rng(1).integers(0, shape, (n, len(shape)))


def entries_of_cores(cores: Cores, indices: Any) -> Any:
    """Entries of one train, by plain products of matrices."""
    return np.array(
        [
            reduce(np.matmul, [core[:, i, :] for core, i in zip(cores, index, strict=True)])[0, 0]
            for index in indices
        ]
    )


def check(what: str, found: Any, expected: Any) -> float:
    """The relative error; the run ends if it is not a rounding error."""
    found, expected = np.asarray(found), np.asarray(expected)
    error = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    if not (found.shape == expected.shape and error < ALLOWED):
        raise SystemExit(f"{what}: relative error {error}, shapes {found.shape}, {expected.shape}")
    return error


# Tensor trains: the routes to a sum


def pairwise(add: Callable[[Any, Any], Any], terms: Sequence[Any]) -> Any:
    """The sum by halves: far less is copied than by adding one summand after the other."""
    while len(terms) > 1:
        halves = [add(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = halves + list(terms[len(halves) * 2 :])
    return terms[0]


@dataclass(frozen=True)
class Route:
    """A way to the explicit sum, all arrays of its result, and these as cores (rank, size, rank)."""

    work: Work
    arrays: Callable[[Any], Cores]
    cores: Callable[[Any], Cores]


def peer_routes(cores: list[Cores]) -> dict[str, Route]:
    """The peers' sums of all trains: one after the other, as one writes it, and by halves."""
    routes = {}
    if util.find_spec("quimb"):
        import quimb.tensor as qtn

        states = [
            qtn.MatrixProductState([x[0][0], *x[1:-1], x[-1][..., 0]], shape="lpr") for x in cores
        ]

        def ordered(state: Any) -> Cores:
            state.permute_arrays("lpr")
            arrays = list(state.arrays)
            return [arrays[0][None], *arrays[1:-1], arrays[-1][..., None]]

        def route(add: Callable[[Any, Any], Any], fold: Callable[..., Any]) -> Route:
            return Route(lambda: fold(add, states), lambda state: list(state.arrays), ordered)

        add = qtn.MatrixProductState.__add__
        routes["quimb, a + b in a loop"] = route(add, reduce)
        routes["quimb, a + b by halves"] = route(add, pairwise)
        routes["quimb, ag_sum by halves"] = route(qtn.tensor_network_ag_sum, pairwise)
    if util.find_spec("teneva"):
        import teneva

        routes["teneva, add in a loop"] = Route(lambda: reduce(teneva.add, cores), list, list)
        routes["teneva, add by halves"] = Route(lambda: pairwise(teneva.add, cores), list, list)
    return routes


def our_routes(arrays: Cores) -> dict[str, Work]:
    """The lazy sum of all trains, from separate networks and from a stack."""
    networks = separate_networks(arrays)
    stack = tnsum.NetworkStack.from_networks(networks)
    return {
        "tnsum.add(*networks)": lambda: tnsum.add(*networks),
        "sum(networks)": lambda: sum(networks),
        "stack.sum()": lambda: stack.sum(),
    }


def separate_networks(arrays: Cores) -> list[tnsum.Network]:
    return [tnsum.tensor_train([core[m] for core in arrays]) for m in range(len(arrays[0]))]


def our_cores(explicit: tnsum.Network) -> Cores:
    arrays = list(explicit.arrays.values())
    return [arrays[0][None], *arrays[1:-1], arrays[-1][..., None]]


def lazy_sums(report: Report, quick: bool) -> None:
    report.text(
        f"## Lazy sums\n\nTensor trains of order {ORDER}, size {SIZE}, rank {RANK}. A lazy sum holds "
        "its summands and no zero; peers have none, so theirs is the explicit one, in the next "
        "section. Peak is what is asked for while the sum is formed, beyond the networks."
    )
    rows = []
    for n in (100, 1000):
        arrays = stacked_cores(n)
        indices = some_indices((SIZE,) * ORDER)
        expected = sum(entries_of_cores([c[m] for c in arrays], indices) for m in range(n))
        routes = our_routes(arrays)
        errors = {name: check(name, f().entries(indices), expected) for name, f in routes.items()}
        times = interleaved(routes, 0.3 if quick else 1.0)
        for name, work in routes.items():
            peak = in_bytes(with_peak_memory(work)[1])
            rows.append((n, name, in_seconds(times[name]), peak, f"{errors[name]:.0e}"))
            report.step(f"lazy sum of {n}, {name}: {in_seconds(times[name])}")
    report.table(("M", "route", "time", "peak", "error"), rows)


def memory(report: Report, quick: bool) -> None:
    report.text("Memory is linear in M:")
    rows = []
    for n in (10, 100, 1000) if quick else (10, 100, 1000, 10000):
        arrays = stacked_cores(n)
        networks = separate_networks(arrays)
        without_ends = [arrays[0][:, 0], *arrays[1:-1], arrays[-1][..., 0]]
        stack = tnsum.NetworkStack(
            networks[0].topology, dict(zip(networks[0].arrays, without_ends, strict=True))
        )
        added = with_peak_memory(lambda networks=networks: tnsum.add(*networks))[1]
        of_stack = with_peak_memory(lambda stack=stack: stack.sum())[1]
        sizes = [RANK * n if k else 1 for k in range(ORDER)] + [1]
        explicit = 8 * sum(sizes[k] * SIZE * sizes[k + 1] for k in range(ORDER))
        held = 8 * sum(array.size for array in arrays)
        rows.append((n, *map(in_bytes, (held, added, of_stack, explicit))))
        report.step(f"memory of the lazy sum of {n}: {in_bytes(added)}")
    header = ("M", "the networks", "tnsum.add needs besides", "stack.sum() needs besides")
    report.table((*header, "the explicit sum would take"), rows)


def explicit_sums(report: Report, quick: bool) -> None:
    n = 30 if quick else 100
    report.text(
        f"## Explicit sums of {n}\n\nThe block arrays of the same trains, zeros included: ours by "
        "to_network() of the sum. 'With reading' adds one pass over every entry of the result: zeros "
        "may be pages that the system has not provided yet. Peers add two at a time: in a loop, as "
        "one writes it, or by halves, their best route. teneva.add_many is that loop, and always "
        "truncates besides, so it is not timed; loops are run once. Ratios are to the first line."
    )
    arrays = stacked_cores(n)
    cores = [[np.ascontiguousarray(core[m]) for core in arrays] for m in range(n)]
    indices = some_indices((SIZE,) * ORDER, 10)
    expected = sum(entries_of_cores(x, indices) for x in cores)
    routes = {
        f"tnsum, {name}": Route(
            lambda work=work: work().to_network(), lambda x: list(x.arrays.values()), our_cores
        )
        for name, work in our_routes(arrays).items()
        if not name.startswith("sum(")
    }
    routes |= peer_routes(cores)
    errors, peaks, read = {}, {}, {}
    for name, route in routes.items():
        result, peaks[name] = with_peak_memory(route.work)
        found = route.cores(result)
        ranks = [core.shape[0] for core in found[1:]]
        if ranks != [RANK * n] * (ORDER - 1):
            raise SystemExit(f"{name}: ranks {ranks}")
        errors[name] = check(name, entries_of_cores(found, indices), expected)
        del result, found
        read[name] = lambda route=route: sum(np.sum(x) for x in route.arrays(route.work()))
        report.step(f"explicit sum of {n}, {name}: error {errors[name]:.0e}")
    seconds = 0.5 if quick else 6.0
    alone, with_reading = {}, {}
    for times, works in ((alone, {n: r.work for n, r in routes.items()}), (with_reading, read)):
        slow = {name: work for name, work in works.items() if "loop" in name}
        fast = {name: work for name, work in works.items() if name not in slow}
        times |= interleaved(fast, seconds) | interleaved(slow, 0, at_least=1)
        report.step("timed")
    first = next(iter(routes))
    rows = [
        (
            name,
            in_seconds(alone[name]),
            f"{alone[name] / alone[first]:.3g}",
            in_seconds(with_reading[name]),
            f"{with_reading[name] / with_reading[first]:.3g}",
            in_bytes(peaks[name]),
            f"{errors[name]:.0e}",
        )
        for name in routes
    ]
    report.table(("route", "time", "ratio", "with reading", "ratio", "peak", "error"), rows)
    best = min((seconds for name, seconds in alone.items() if "tnsum" not in name), default=0)
    lazy = interleaved({"": our_routes(arrays)["tnsum.add(*networks)"]}, 0.5)[""]
    report.text(
        f"The lazy sum of the same networks, apart: {in_seconds(lazy)}; the fastest peer takes "
        f"{best / lazy:.3g} times as long for its explicit one."
    )


# Tucker networks


def tucker_stack(n: int, shape: Sequence[int], ranks: Sequence[int]) -> tnsum.NetworkStack:
    rng = np.random.default_rng(n)
    core = rng.standard_normal((n, *ranks))
    factors = [rng.standard_normal((n, *pair)) for pair in zip(shape, ranks, strict=True)]
    topology = tnsum.tucker(core[0], [factor[0] for factor in factors]).topology
    arrays = {f"factor{k}": factor for k, factor in enumerate(factors)}
    return tnsum.NetworkStack(topology, {"core": core, **arrays})


def dense_tucker_sum(stack: tnsum.NetworkStack) -> Any:
    """The dense sum, one summand after the other, by matrix products."""
    core, first, *others = (
        stack.arrays[name] for name in ("core", "factor0", "factor1", "factor2")
    )
    total = np.zeros(stack.shape)
    for m in range(len(core)):
        small = np.tensordot(np.tensordot(core[m], others[0][m], (1, 1)), others[1][m], (1, 1))
        total += np.tensordot(first[m], small, (1, 0))
    return total


def tucker_sums(report: Report, quick: bool) -> None:
    report.text(
        "## Sums of M Tucker networks\n\nHeld as a stack; x is one network of the same shape. "
        "The slope is the exponent of M fitted over M >= 300: 1 is linear. Errors are checked up to "
        "M = 1000, against the dense sum."
    )
    numbers = (10, 100, 300, 1000) if quick else (10, 30, 100, 300, 1000, 3000, 10000)
    # Beyond 3000 the large ones take seconds for each product.
    plans = [((32, 32, 3), (3, 3, 3), numbers), ((100, 100, 100), (5, 5, 5), numbers[:6])]
    for shape, ranks, some in plans:
        times: dict[str, list[float]] = {}
        worst = 0.0
        for n in some:
            stack = tucker_stack(n, shape, ranks)
            s, x = stack.sum(), tucker_stack(1, shape, ranks)[0]
            works = {
                "contract": lambda s=s: s.contract(),
                "norm": lambda s=s: tnsum.norm(s),
                "inner(s, x)": lambda s=s, x=x: tnsum.inner(s, x),
                "inner(s, s)": lambda s=s: tnsum.inner(s, s),
            }
            if n <= 1000:
                dense = dense_tucker_sum(stack)
                other = dense_tucker_sum(tnsum.NetworkStack.from_networks([x]))
                products = np.vdot(dense, other), np.vdot(dense, dense)
                expected = (dense, np.linalg.norm(dense), *products)
                for (name, work), value in zip(works.items(), expected, strict=True):
                    worst = max(worst, check(f"{name} of {n}", work(), value))
            for name, seconds in interleaved(works, 0.1 if quick else 0.5).items():
                times.setdefault(name, []).append(seconds)
            report.step(f"Tucker {shape}, M = {n}: norm {in_seconds(times['norm'][-1])}")
        large = [k for k, n in enumerate(some) if n >= 300]
        rows = [
            (
                name,
                *map(in_seconds, values),
                f"{slope([some[k] for k in large], [values[k] for k in large]):.2f}",
            )
            for name, values in times.items()
        ]
        sizes = " x ".join(map(str, shape))
        report.text(f"Shape {sizes}, ranks {ranks[0]}; largest error {worst:.0e}:")
        report.table(("", *(f"M = {n}" for n in some), "slope"), rows)


# Matching and importing


def joined_nodes(kind: str) -> tuple[list[list[Any]], list[Any]]:
    """The modes of about 1000 nodes, and the physical modes."""
    if kind == "tensor train":
        nodes = [[("r", k - 1), ("r", k), ("i", k)] for k in range(1000)]
        nodes[0].pop(0)
        nodes[-1].pop(1)
    elif kind == "chain of matrices":
        nodes = [[("r", k), ("r", k + 1)] for k in range(1000)]
    elif kind == "balanced binary tree":
        # The mode above node k is k.
        nodes = [[k, 2 * k + 1, 2 * k + 2] for k in range(511)]
        nodes += [[k, ("i", k)] for k in range(511, 1023)]
        nodes[0].pop(0)
    else:
        side = range(32)
        nodes = [
            [("v", a - 1, b), ("v", a, b), ("h", a, b - 1), ("h", a, b), ("i", a, b)]
            for a in side
            for b in side
        ]
        held = [mode for modes in nodes for mode in modes]
        nodes = [[m for m in modes if m[0] == "i" or held.count(m) == 2] for modes in nodes]
    held = [mode for modes in nodes for mode in modes]
    return nodes, [mode for mode in held if held.count(mode) == 1]


def named(nodes: list[list[Any]], physical: list[Any], seed: int) -> tnsum.Topology:
    """The topology with names of its own, nodes and modes in an order of their own."""
    rng = np.random.default_rng(seed)
    modes = list(dict.fromkeys(mode for held in nodes for mode in held))
    names = dict(zip(modes, (f"m{seed}_{k}" for k in rng.permutation(len(modes))), strict=True))
    shuffled = {}
    for k in rng.permutation(len(nodes)):
        shuffled[f"n{seed}_{k}"] = [names[nodes[k][j]] for j in rng.permutation(len(nodes[k]))]
    return tnsum.Topology(shuffled, [names[mode] for mode in physical])


def check_isomorphism(a: tnsum.Topology, b: tnsum.Topology, found: tnsum.Isomorphism) -> None:
    for name, modes in a.nodes.items():
        if sorted(found.modes[m] for m in modes) != sorted(b.nodes[found.nodes[name]]):
            raise SystemExit(f"node {name} is matched wrongly")
    if tuple(found.modes[m] for m in a.physical_modes) != b.physical_modes:
        raise SystemExit("physical modes are matched wrongly")


def matching(report: Report, quick: bool) -> None:
    report.text(
        "## Matching\n\nTwo topologies with names and orders of their own, all names new each time. "
        "Best of three."
    )
    rows = []
    for kind in ("tensor train", "chain of matrices", "balanced binary tree", "grid"):
        nodes, physical = joined_nodes(kind)
        best = np.inf
        for attempt in range(3):
            a, b = (named(nodes, physical, 2 * attempt + k) for k in range(2))
            start = time.perf_counter()
            found = a.isomorphism(b)
            best = min(best, time.perf_counter() - start)
            check_isomorphism(a, b, found)
        rows.append((kind, len(nodes), len(physical), in_seconds(best)))
        report.step(f"matching, {kind}: {in_seconds(best)}")
    report.table(("topology", "nodes", "order", "time"), rows)


def importing(report: Report, quick: bool) -> None:
    code = (
        "import time, numpy; start = time.process_time(); import tnsum; "
        "print(time.process_time() - start)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    source = str(Path(tnsum.__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
    runs = [
        float(subprocess.check_output([sys.executable, "-c", code], env=environment, text=True))
        for _ in range(8)
    ]
    median = statistics.median(runs[1:])
    report.text(
        f"## Import\n\n`import tnsum` adds {in_seconds(median)} of CPU time to `import numpy` "
        "(median of seven fresh interpreters, bytecode cached)."
    )


if __name__ == "__main__":
    run(
        (lazy_sums, memory, explicit_sums, tucker_sums, matching, importing),
        "Exact sums, side by side",
        PACKAGES,
        __doc__,
    )
