"""How honest the errors of fits are: random sums with loops in random gauges, against their true errors.

    python benchmarks/calibration_fits.py [--quick] [--write FILE]

Rings, grids, honeycombs, CP networks, parallel modes and traces, of one to five summands that are
unrelated, alike, of different sizes, or cancel, in four dtypes: the cases of the tests. On every
contraction mode a random matrix of the condition stated stands on one side and its inverse on the other,
so that the entries of neighbouring nodes are large and cancel. True errors are those of dense arrays in
extended precision.
"""

from measure import Report, run  # isort: skip - threads

import warnings
from functools import partial

import numpy as np

import tnsum
from fit_cases import FAMILIES, random_sum, true_error
from tnsum.compression import _fitting

CONDITIONS = 1.0, 1e1, 1e2, 1e3, 1e4, 1e6


def outcome(family: str, condition: float, seed: int) -> tuple[float, float]:
    """The true error of a fit, and the one that is reported."""
    s, rank, n_sweeps = random_sum(family, condition, seed)
    before = _fitting.MOST_SWEEPS
    try:
        _fitting.MOST_SWEEPS = n_sweeps
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            c = tnsum.compress(s, max_rank=rank, method="fit", seed=seed)
    finally:
        _fitting.MOST_SWEEPS = before
    return true_error(s, c.network), c.error


def fits(report: Report, quick: bool) -> dict[float, list[tuple[float, float]]]:
    """How often a true error exceeds the reported one, and how much larger that is; and all errors, by
    the condition of the gauges.
    """
    points: dict[float, list[tuple[float, float]]] = {condition: [] for condition in CONDITIONS}
    n = 3 if quick else 30
    rows = []
    for family in FAMILIES:
        for condition in CONDITIONS:
            pairs = list(map(partial(outcome, family, condition), range(50_000, 50_000 + n)))
            points[condition] += pairs
            true, reported = np.array(pairs).T
            exceeded = int(np.sum(true > reported * (1 + 1e-6)))
            ratios = np.quantile(reported / np.maximum(true, 1e-15), [0.5, 0.95])
            useless = int(np.sum(reported >= 1))
            numbers = (f"{r:.3g}" for r in ratios)
            rows.append((family, f"{condition:.0e}", n, exceeded, *numbers, useless))
            report.step(" | ".join(map(str, rows[-1])))
    report.text(
        "## Fits in random gauges\n\nHow often the true error exceeds the reported one, reported / true "
        "(median and 95 %), and how often zero is returned, with error 1: rounding leaves nothing of "
        "the sum, or no network of these ranks came nearer."
    )
    header = "network", "condition", "fits", "exceeded", "median", "95 %", "error 1"
    report.table(header, rows)
    return points


if __name__ == "__main__":
    run((fits,), "Errors of fits", ("tnsum", "numpy"), __doc__)
