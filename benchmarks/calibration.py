"""How honest reported errors are: thousands of random sums, compressed, against their true errors.

    python benchmarks/calibration.py [--quick] [--only PART] [--write FILE]

- `tolerances`: chains to order 50, operators, matrix chains, Tucker networks, trees; fast and slow
  decay; to a tolerance or to a largest rank.
- `gauges`: small trees of all these kinds whose nodes are multiplied by matrices of bad condition and
  their inverses, in four dtypes.
- `cancelling`: small trees whose summands cancel by 1e2 to 1e8.
- `ranks`: 8 to 60 small trees, asked for a rank that is too small; and the part of the energy held by
  `direct` that `sketch` holds.
- `accumulators`: small trees in such gauges, added up by a SumAccumulator.
- `fits`: rings, grids, honeycombs, CP networks, parallel modes and traces in random gauges
  (calibration_fits.py).

The cases are those of the tests, and so is the oracle, which shares no code with tnsum; where terms or
gauges cancel it computes in extended precision. Draws docs/calibration.svg, if all parts are run.
"""

from measure import ROOT, Report, run  # isort: skip - threads

import os
import warnings
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

import calibration_fits
import tnsum
from compression_cases import (
    FAMILIES,
    extended_error,
    extended_sum,
    hard_sum,
    random_sum,
    sum_by_rank,
    true_error,
)

# Below, the oracle itself rounds.
SMALLEST = 1e-11
DTYPES = "float32", "float64", "complex64", "complex128"
KINDS = {"direct": "bound", "sketch": "estimate"}
# True and reported errors, by the panel of the picture and what they are of.
POINTS: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))

HEADER = "error", "sums", "number", "exceeded", "median", "90 %", "99 %", "largest"
EXPLAINED = (
    "How often the true error exceeds the reported one, and reported / true: median, 90 %, 99 % and "
    "largest. True errors below machine precision count as that."
)


def kernel() -> str:
    return os.environ.get("OPENBLAS_CORETYPE", "default")


def row(
    kind: str, name: str, pairs: Iterable[tuple[float, float]], least: float
) -> tuple[object, ...]:
    true, reported = np.array(list(pairs)).T
    # Where the oracle itself rounds as much as what it is to judge, ratios tell nothing.
    seen = true > SMALLEST if least == SMALLEST else true >= 0
    ratios = np.quantile((reported / np.maximum(true, least))[seen], [0.5, 0.9, 0.99, 1])
    exceeded = int(np.sum(true > reported * (1 + 1e-6)))
    return kind, name, len(true), exceeded, *(f"{ratio:.3g}" for ratio in ratios)


def compressed(x: tnsum.NetworkSum, **how: object) -> tnsum.Compression:
    with warnings.catch_warnings():
        # That rounding misses a tolerance is what the error says, too.
        warnings.simplefilter("ignore", RuntimeWarning)
        return tnsum.compress(x, **how)


def tolerances(report: Report, quick: bool) -> None:
    n = 20 if quick else 170
    rows = []
    for method, kind in KINDS.items():
        for family in FAMILIES:
            pairs = []
            for seed in range(30_000, 30_000 + n):
                x, how, _ = random_sum(family, seed)
                c = compressed(x, method=method, **how)
                pairs.append((true_error(x, c.network), c.error))
            POINTS[kind][family] = pairs
            rows.append(row(kind, family, pairs, SMALLEST))
            report.step(" | ".join(map(str, rows[-1])))
    explained = EXPLAINED.replace(
        "below machine precision count as that", "below 1e-11 do not count"
    )
    report.text(f"## Tolerances and ranks ({kernel()} kernel)\n\n{explained}")
    report.table(HEADER, rows)


def of_hard_sums(
    report: Report, panel: str, n: int, conditions: Iterable[float], is_cancelling: bool
) -> list[tuple[object, ...]]:
    rows = []
    for condition in conditions:
        for method, kind in KINDS.items():
            pairs = []
            for seed in range(40_000, 40_000 + n):
                x, _, _, dtype = hard_sum(seed, (condition,), is_cancelling, DTYPES)
                tolerance = None if seed % 3 else 10.0 ** -(1 + seed % 9)
                least = 8 * float(np.finfo(dtype).eps)
                if tolerance is not None and tolerance < least:
                    tolerance = None
                exact = extended_sum(x)
                c = compressed(x, method=method, tolerance=tolerance, seed=seed)
                pairs.append((max(extended_error(exact, c.network), 1e-17), c.error))
            name = f"condition {condition:.0e}"
            POINTS[panel][f"{kind}, {name}" if panel == "gauges" else kind] += pairs
            rows.append(row(kind, name, pairs, 1e-16))
            report.step(" | ".join(map(str, rows[-1])))
    return rows


def gauges(report: Report, quick: bool) -> None:
    rows = of_hard_sums(report, "gauges", 30 if quick else 250, (1e0, 1e1, 1e3, 1e6), False)
    report.text(f"## Bad gauges ({kernel()} kernel)\n\n{EXPLAINED}")
    report.table(HEADER, rows)


def cancelling(report: Report, quick: bool) -> None:
    rows = of_hard_sums(report, "cancelling", 50 if quick else 500, (1e0,), True)
    report.text(f"## Sums that cancel ({kernel()} kernel)\n\n{EXPLAINED}")
    report.table(HEADER, rows)


def ranks(report: Report, quick: bool) -> None:
    n = 60 if quick else 500
    pairs = defaultdict(list)
    held = []
    for seed in range(50_000, 50_000 + n):
        x, rank, family, dtype = sum_by_rank(seed)
        exact, energy = extended_sum(x), {}
        for method, kind in KINDS.items():
            c = compressed(x, method=method, max_rank=rank, seed=seed)
            true = extended_error(exact, c.network)
            energy[kind] = 1 - true**2
            pairs[kind].append((true, c.error))
            POINTS["asked by rank"][kind].append((true, c.error))
        held.append((energy["estimate"] / energy["bound"], family, dtype))
    report.text(
        f"## Asked by rank ({kernel()} kernel)\n\n{EXPLAINED} Only errors above 1e-2 count "
        f"here. Of {n} sums, `sketch` holds at least {min(held)[0]:.5f} of the "
        f"energy that `direct` holds, {np.median([h for h, *_ in held]):.5f} in the median."
    )
    large = {kind: [p for p in some if p[0] > 1e-2] for kind, some in pairs.items()}
    report.table(HEADER, [row(kind, "all", some, SMALLEST) for kind, some in large.items()])


def accumulators(report: Report, quick: bool) -> None:
    n = 40 if quick else 250
    rows = []
    for condition in (1e0, 1e1, 1e3, 1e6):
        pairs = []
        for seed in range(60_000, 60_000 + n):
            x, _, _, dtype = hard_sum(seed, (condition,), seed % 4 == 0, DTYPES)
            rank = 2 + seed % 12
            a = tnsum.SumAccumulator(x.topology, x.shape, rank, dtype, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                a.add(x)
                c = a.compress()
            pairs.append((max(extended_error(extended_sum(x), c.network), 1e-17), c.error))
        name = f"condition {condition:.0e}"
        POINTS["accumulators"][name] = pairs
        rows.append(row("estimate", name, pairs, 1e-16))
        report.step(" | ".join(map(str, rows[-1])))
    report.text(f"## Accumulators ({kernel()} kernel)\n\n{EXPLAINED}")
    report.table(HEADER, rows)


def fits(report: Report, quick: bool) -> None:
    for condition, pairs in calibration_fits.fits(report, quick).items():
        POINTS["fits"][f"condition {condition:.0e}"] = pairs


def picture(report: Report, quick: bool) -> None:
    panels = (
        *("bound", "estimate", "gauges", "cancelling"),
        *("asked by rank", "accumulators", "fits"),
    )
    if quick or set(panels) - set(POINTS):
        return
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(14, 7), sharey=True, layout="constrained")
    axes[1, 3].set_axis_off()
    for axis, panel in zip(axes.flat, panels, strict=False):
        for name, pairs in POINTS[panel].items():
            true, reported = np.array(pairs).T
            seen = true > (SMALLEST if panel in KINDS.values() else 1e-17)
            axis.loglog(true[seen], reported[seen] / true[seen], ".", markersize=3, label=name)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.axhline(100, color="grey", linewidth=0.8, linestyle=":")
        axis.set_title({"bound": "bounds", "estimate": "estimates"}.get(panel, panel))
        axis.set_ylim(0.3, 1e5)
        axis.legend(frameon=False, fontsize="x-small", loc="upper right")
    for axis in axes[-1, :3]:
        axis.set_xlabel("true relative error")
    for axis in axes[:, 0]:
        axis.set_ylabel("reported / true")
    plt.rcParams["svg.hashsalt"] = "tnsum"
    # Thousands of points are smaller as pixels.
    for axis in axes.flat[:-1]:
        for line in axis.lines[:-2]:
            line.set_rasterized(True)
    figure.savefig(ROOT / "docs" / "calibration.svg", metadata={"Date": None}, dpi=150)


if __name__ == "__main__":
    run(
        (tolerances, gauges, cancelling, ranks, accumulators, fits, picture),
        "Reported and true errors",
        ("tnsum", "numpy"),
        __doc__,
    )
