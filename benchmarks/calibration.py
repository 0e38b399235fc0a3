"""How honest reported errors are: a thousand random sums, compressed, against their true errors.

    python benchmarks/calibration.py [--quick] [--write FILE]

Chains to order 50, operators, matrix chains, Tucker networks, trees; fast and slow decay; to a tolerance
or to a largest rank: the cases of the tests, and their oracle, which shares no code with tnsum. Draws
docs/calibration.svg.
"""

from measure import ROOT, Report, run  # isort: skip - threads

import numpy as np

import tnsum
from compression_cases import FAMILIES, random_sum, true_error

# Below, the oracle itself rounds.
SMALLEST = 1e-11


def calibration(report: Report, quick: bool) -> None:
    n = 20 if quick else 170
    rows, points = [], {}
    for method, kind in (("direct", "bound"), ("sketch", "estimate")):
        for family in FAMILIES:
            found = []
            for seed in range(30_000, 30_000 + n):
                x, how, _ = random_sum(family, seed)
                c = tnsum.compress(x, method=method, **how)
                found.append((true_error(x, c.network), c.error))
            true, reported = np.array(found).T
            points[kind, family] = true, reported
            seen = true > SMALLEST
            ratios = np.quantile(reported[seen] / true[seen], [0.5, 0.95, 1])
            exceeded = int(np.sum(true > reported * (1 + 1e-6)))
            rows.append((kind, family, n, exceeded, *(f"{r:.3g}" for r in ratios)))
            report.step(" | ".join(map(str, rows[-1])))
    report.text(
        "## Reported and true errors\n\nHow often the true error exceeds the reported one, and reported "
        f"/ true, where the true error is above {SMALLEST:.0e}: median, 95 % and largest."
    )
    report.table(("error", "sums", "number", "exceeded", "median", "95 %", "largest"), rows)
    if not quick:
        plot(points)


def plot(points: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained"
    )
    for axis, kind in zip(axes, ("bound", "estimate"), strict=True):
        for (name, family), (true, reported) in points.items():
            if name == kind:
                seen = true > SMALLEST
                axis.loglog(
                    true[seen], reported[seen] / true[seen], ".", markersize=4, label=family
                )
        axis.axhline(1, color="black", linewidth=0.8)
        axis.axhline(4, color="grey", linewidth=0.8, linestyle=":")
        axis.set_title(kind)
        axis.set_xlabel("true relative error")
    axes[0].set_ylabel("reported / true")
    axes[1].legend(frameon=False, fontsize="small")
    plt.rcParams["svg.hashsalt"] = "tnsum"
    figure.savefig(ROOT / "docs" / "calibration.svg", metadata={"Date": None})


if __name__ == "__main__":
    run((calibration,), "Reported and true errors", ("tnsum", "numpy"), __doc__)
