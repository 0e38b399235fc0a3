"""Sums made small again: ours and other libraries, side by side.

    python benchmarks/compression.py [--quick] [--write FILE]

All sums have a result that is known, so that the true error of everything is printed; a result of ours
that misses its tolerance ends the run. See trains.py for sums of tensor trains and the routes of other
libraries to them, star_and_tree.py for Tucker networks and binary trees.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import measure  # isort: skip - threads are set before NumPy is imported

import numpy as np

import tnsum
from measure import ROOT, Report, Work, gemm_rate, in_seconds, interleaved, slope, with_peak_memory
from star_and_tree import binary_trees, small_stars, stars
from tnsum.compression import _products, _test_tensors
from trains import Route, dictionary_sum, of_quimb, of_teneva, of_torch, ours, relative_error

PACKAGES = ("tnsum", "numpy", "quimb", "teneva", "torchTT", "tntorch", "torch", "tensorly")
LOW_RANK, DECAYING = (20, 1.0, "low rank"), (60, 0.7, "decaying")
LIBRARIES = ("teneva", "torchTT", "tntorch", "quimb")


def best_routes(times: dict[str, float], met: set[str]) -> dict[str, str]:
    """The fastest route of each library, if possible one that meets the tolerance."""
    found = {}
    for library in LIBRARIES:
        names = [name for name in times if name.split(",")[0] == library]
        if names:
            found[library] = min(names, key=lambda name: (name not in met, times[name]))
    return found


def timed(work: Work) -> tuple[Any, float]:
    """What comes of a single run, and how long it takes."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


# Routes that take less than so many seconds are run more than once.
_QUICK = 5.0


def compared(
    routes: dict[str, Route], exact: Any, tolerance: float, once: bool
) -> tuple[dict[str, float], dict[str, str], set[str]]:
    """Times, what came out, and who met the tolerance.

    With `once`, long routes are run a single time, quick ones three times; ours after each of them.
    """
    times, notes, met = {}, {}, set()
    ours_each = []
    for name, (work, cores_of) in routes.items():
        result, times[name] = timed(work)
        ours_each.append(timed(routes["tnsum"][0])[1])
        cores = cores_of(result)
        error = relative_error(cores, exact)
        if error <= tolerance:
            met.add(name)
        elif name == "tnsum":
            raise SystemExit(f"ours misses its tolerance {tolerance}: {error}")
        missed = "" if name in met else ", missed"
        notes[name] = f"{error:.0e}{missed}, rank {max(c.shape[-1] for c in cores)}"
    works: dict[str, Work] = {name: work for name, (work, _) in routes.items()}
    if once:
        for name in [name for name in times if name != "tnsum" and times[name] < _QUICK]:
            turns = [times[name]]
            for _ in range(2):
                turns.append(timed(works[name])[1])
                ours_each.append(timed(works["tnsum"])[1])
            times[name] = statistics.median(turns)
        times["tnsum"] = statistics.median(ours_each)
    else:
        times = interleaved(works, 1.0, at_most=200)
    return times, notes, met


HEADER = ("M", "order", "sum", "tolerance", "tnsum", "error, rank", *LIBRARIES)


def row(
    case: tuple[Any, ...], times: dict[str, float], notes: dict[str, str], best: dict[str, str]
) -> tuple[Any, ...]:
    cells = []
    for library in LIBRARIES:
        name = best.get(library)
        how = name.partition(", ")[2] if name else ""
        ratio = f"{times[name] / times['tnsum']:.2g}x ({notes[name]})" if name else "-"
        cells.append(f"{how}: {ratio}" if how else ratio)
    return (*case, in_seconds(times["tnsum"]), notes["tnsum"], *cells)


def few_trains(report: Report, quick: bool) -> None:
    report.text(
        "## Sums of few tensor trains\n\nOrder 10, size 10, rank 8. Of each library the fastest route "
        "that meets the tolerance; quimb's `src` is told a rank that suffices."
    )
    rows = []
    for n in (2, 4, 10):
        for (n_words, decay, kind), tolerance in (
            (LOW_RANK, 1e-6), (DECAYING, 1e-6), (DECAYING, 1e-10)
        ):  # fmt: skip
            terms, exact = dictionary_sum(n, 10, n_words, decay)
            routes = {"tnsum": ours(terms, tolerance)}
            rank = max(routes["tnsum"][0]().ranks.values())
            routes |= of_teneva(terms, tolerance) | of_torch(terms, tolerance)
            routes |= of_quimb(terms, tolerance, rank)
            del routes["quimb, fit"]
            times, notes, met = compared(routes, exact, tolerance, once=False)
            case = n, 10, kind, f"{tolerance:.0e}"
            rows.append(row(case, times, notes, best_routes(times, met)))
            report.step(" | ".join(map(str, rows[-1])))
    report.table(HEADER, rows)


def many_trains(report: Report, quick: bool) -> None:
    report.text(
        "## Sums of many tensor trains\n\nSize 10, rank 8. Others add and compress every 15 terms; of "
        "each library the fastest route that meets the tolerance with 100 terms, which is also run "
        "with 1000, once, unless it took 50 times as long as ours or missed. quimb's `src` and `fit` "
        "are told a rank that suffices. teneva without `is_eigh` leaves its singular values on the "
        "wrong side when it truncates, so that ranks grow with every batch; it is left out here."
    )
    report.table(HEADER, rows_of_many(report, 10, (100,) if quick else (100, 1000)))


def long_trains(report: Report, quick: bool) -> None:
    if not quick:
        report.text(
            "## Sums of many long tensor trains\n\nThe same for order 50; other routes that take less "
            "than 5 s three times, longer ones once, ours after each of them."
        )
        report.table(HEADER, rows_of_many(report, 50, (100, 1000)))


def rows_of_many(report: Report, order: int, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    rows = []
    for n_words, decay, kind in (LOW_RANK, DECAYING):
        for tolerance in (1e-6, 1e-10):
            best: dict[str, str] = {}
            for n in numbers:
                terms, exact = dictionary_sum(n, order, n_words, decay)
                routes = {"tnsum": ours(terms, tolerance)}
                rank = max(routes["tnsum"][0]().ranks.values())
                routes |= of_teneva(terms, tolerance) | of_torch(terms, tolerance)
                routes |= of_quimb(terms, tolerance, rank)
                for left_out in ("teneva, SVD", "tntorch", *(["quimb, fit"] if order > 10 else [])):
                    del routes[left_out]
                wanted = {"tnsum", *best.values()} if best else set(routes)
                routes = {name: route for name, route in routes.items() if name in wanted}
                once = n > 100 or order > 10
                times, notes, met = compared(routes, exact, tolerance, once)
                best = best or best_routes(times, met)
                rows.append(row((n, order, kind, f"{tolerance:.0e}"), times, notes, best))
                best = {
                    library: name
                    for library, name in best.items()
                    if name in met and times[name] < 50 * times["tnsum"]
                }
                report.step(" | ".join(map(str, rows[-1])))
    return rows


def single_precision(report: Report, quick: bool) -> None:
    report.text(
        "## In single precision\n\nTolerance 1e-5, size 10, rank 8, ours alone; beside it double "
        "precision with the same tolerance and with those of the tables below, and how many times as "
        "long it takes."
    )
    rows = []
    for n in (100,) if quick else (100, 1000):
        for order in (10,) if quick else (10, 50):
            for n_words, decay, kind in (LOW_RANK, DECAYING):
                terms, exact = dictionary_sum(n, order, n_words, decay)
                single, cores_of = ours(terms, 1e-5, "float32")
                works: dict[str, Work] = {"single": single}
                for tolerance in (1e-5, 1e-6, 1e-10):
                    works[f"{tolerance:.0e}"], of = ours(terms, tolerance)
                    error = relative_error(of(works[f"{tolerance:.0e}"]()), exact)
                    if error > tolerance:
                        raise SystemExit(f"ours misses its tolerance {tolerance}: {error}")
                result = single()
                error = relative_error(cores_of(result), exact)
                # Rounding in single precision comes near the tolerance in long trains; we warn.
                if error > result.error:
                    raise SystemExit(f"ours misses the error that it reports: {error}")
                times = interleaved(works, 1.0)
                rows.append(
                    (
                        n,
                        order,
                        kind,
                        in_seconds(times["single"]),
                        f"{error:.0e}",
                        f"{result.error:.0e}",
                        *(
                            f"{in_seconds(times[name])}: {times[name] / times['single']:.2g}x"
                            for name in list(times)[1:]
                        ),
                    )
                )
                report.step(" | ".join(map(str, rows[-1])))
    doubles = (f"float64 at {tolerance}" for tolerance in ("1e-5", "1e-6", "1e-10"))
    report.table(("M", "order", "sum", "float32", "error", "reported", *doubles), rows)


def growth(report: Report, quick: bool) -> None:
    report.text(
        "## Time and memory against M\n\nOrder 10, decaying, tolerance 1e-6, summands held as a stack."
    )
    rows = []
    for n in (10, 30, 100, 300) if quick else (10, 30, 100, 300, 1000, 3000, 10000):
        terms, _ = dictionary_sum(n, 10, *DECAYING[:2])
        s = tnsum.NetworkStack.from_networks([tnsum.tensor_train(cores) for cores in terms]).sum()
        del terms
        seconds = interleaved({"": lambda s=s: tnsum.compress(s, 1e-6)}, 1.0)[""]  # type: ignore[misc]
        _, peak = with_peak_memory(lambda s=s: tnsum.compress(s, 1e-6))  # type: ignore[misc]
        rows.append((n, seconds, peak, s.n_parameters * 8))
        report.step(f"M = {n}: {in_seconds(seconds)}")
    large = [row for row in rows if row[0] >= 100]
    exponents = [slope([r[0] for r in large], [r[k] for r in large]) for k in (1, 2)]
    report.table(
        ("M", "time", "peak memory / that of the summands"),
        [(n, in_seconds(t), f"{peak / data:.2g}") for n, t, peak, data in rows],
    )
    report.text(
        f"Fitted exponents for M >= 100: time {exponents[0]:.2f}, memory {exponents[1]:.2f}."
    )
    if not quick:
        plot(rows)
        report.text("![time and memory against M](growth.svg)")


def plot(rows: list[Any]) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    numbers = [row[0] for row in rows]
    for axis, values, label in (
        (axes[0], [row[1] for row in rows], "time / s"),
        (axes[1], [row[2] / 1e6 for row in rows], "peak memory / MB"),
    ):
        axis.loglog(numbers, values, "o-", label="compress")
        axis.loglog(numbers, [values[-1] * n / numbers[-1] for n in numbers], "k:", label="linear")
        axis.set_xlabel("summands M")
        axis.set_ylabel(label)
        axis.legend(frameon=False)
    figure.savefig(ROOT / "benchmarks" / "growth.svg", metadata={"Date": None})


def distance_from_peak(report: Report, quick: bool) -> None:
    n, order, size, rank = (100 if quick else 1000), 10, 10, 8
    terms, _ = dictionary_sum(n, order, *DECAYING[:2])
    s = tnsum.NetworkStack.from_networks([tnsum.tensor_train(cores) for cores in terms]).sum()
    found = max(tnsum.compress(s, 1e-6).ranks.values())
    done = arithmetic_of(lambda: tnsum.compress(s, 1e-6))
    # With bases no larger than the ranks found, 8 columns more and 16 to test.
    width = found + 24
    per_node = 2 * n * rank * size * (2 * rank * width + 8 * width + found * width + found * found)
    times = interleaved(
        {"tnsum": lambda: tnsum.compress(s, 1e-6), "GEMM": gemm_rate.work}, 2.0, at_most=9
    )
    rate = gemm_rate.flops / times["GEMM"]
    least = (order - 2) * per_node
    report.text(
        f"## Distance from the machine\n\nM = {n}, order {order}, decaying, tolerance 1e-6: "
        f"{in_seconds(times['tnsum'])}. Its products, {done / 1e9:.1f} GFlop counted as they are done "
        f"(test tensors, sketch, projection), would take {in_seconds(done / rate)} as one matrix "
        f"product at {rate / 1e9:.0f} GFlop/s: a ratio of {times['tnsum'] * rate / done:.2g}. An "
        f"algorithm that knew the ranks beforehand would need {least / 1e9:.1f} GFlop; the ratio to "
        f"those is {times['tnsum'] * rate / least:.2g}."
    )


def arithmetic_of(work: Callable[[], Any]) -> int:
    """The floating point operations of the products over all summands along a path."""
    count = 0

    def counted(owner: Any, name: str, flops: Callable[..., int]) -> Any:
        method = getattr(owner, name)

        def replaced(*args: Any) -> Any:
            nonlocal count
            count += flops(*args)
            return method(*args)

        return mock.patch.object(owner, name, replaced)

    def of_outside(_: Any, array: Any, above: Any, __: Any, tests: Any, *___: Any) -> int:
        if above is None:
            return 2 * array.size * tests.shape[-1]
        width = above.shape[-1]
        return 2 * array.size * width + 2 * array[:, 0].size * tests.shape[-1] * width

    def of_product(factor: Any, columns: Any) -> int:
        width, size = columns.shape[-1], factor.array.size
        if not factor.below:
            return 2 * size * width
        return 2 * size * width + 2 * factor.below[0].size * factor.rows[-1] * width

    with (
        counted(_test_tensors, "outside_of", of_outside),
        counted(_products.Factor, "times", of_product),
        counted(_products.Factor, "projected", of_product),
    ):
        work()
    return count


def operator(report: Report, quick: bool) -> None:
    n = 16 if quick else 40
    z, one = np.diag([1.0, -1.0]), np.eye(2)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    terms = [
        tnsum.tensor_train([(z if k in pair else one)[None, :, :, None] for k in range(n)])
        for pair in pairs
    ]
    works: dict[str, Work] = {
        "tnsum.compress(tnsum.add(*terms), 1e-10)": lambda: tnsum.compress(
            tnsum.add(*terms), 1e-10
        ),
        "quimb, SparseOperatorBuilder.build_mpo()": lambda: builder(n),
    }
    c = tnsum.compress(tnsum.add(*terms), 1e-10)
    if max(c.ranks.values()) != 3:
        raise SystemExit(f"the rank is {max(c.ranks.values())}, not 3")
    times = interleaved(works, seconds=2.0)
    ratio = times["quimb, SparseOperatorBuilder.build_mpo()"] / times[next(iter(times))]
    report.text(f"## The sum of Z_i Z_j over all {len(pairs)} pairs of {n} sites: rank 3")
    report.table(("route", "time"), [(name, in_seconds(t)) for name, t in times.items()])
    report.text(f"Ratio {ratio:.2g}.")


def builder(n: int) -> Any:
    """Quimb's operator builder, with compression."""
    import quimb.operator as qop

    operator = qop.SparseOperatorBuilder()
    for i in range(n):
        for j in range(i):
            operator += 1.0, ("z", i), ("z", j)
    return operator.build_mpo()


PARTS = (
    few_trains, single_precision, growth, distance_from_peak, binary_trees, stars, small_stars,
    operator, many_trains, long_trains,
)  # fmt: skip

if __name__ == "__main__":
    measure.run(PARTS, "Compressed sums, side by side", PACKAGES, __doc__)
