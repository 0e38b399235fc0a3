"""ETH-80 itself, where it is there: the numbers that were measured when the experiment was designed."""

import os
from pathlib import Path

import numpy as np
import pytest

from tnsum.datasets import load_eth80
from tnsum.experiments._claims import weakest_classes
from tnsum.experiments._methods import Prepared, prepared
from tnsum.experiments._outcomes import outcome_of
from tnsum.experiments._points import Point, points_of
from tnsum.experiments._splits import Split

ROOT = Path(__file__).parent.parent
ETH80 = Path(os.environ.get("TNSUM_ETH80", ROOT.parent / "shared" / "eth80"))

pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(not ETH80.exists(), reason="ETH-80 is not there; set TNSUM_ETH80"),
]

# Mean and standard deviation of 20 splits of other seeds, where both were written down. At 10 % ours are
# higher than these by 2.7 standard errors, and so they are with another seed.
MEASURED = {
    0.1: {"SUM": (79.7, 0.9)},
    0.2: {"SUM": (85.3, 0.8)},
    0.8: {"SUM": (92.1, 1.3), "TKD-CONCAT": (91.7, 1.2), "SVM on pixels": (77.6, 2.3)},
}


@pytest.fixture(scope="module")
def known() -> Prepared:
    return prepared(load_eth80(ETH80), with_factors=True)


def point(known: Prepared, protocol: str, fraction: float, n_splits: int) -> Point:
    splits = [Split(protocol, fraction, k) for k in range(n_splits)]
    (found,) = points_of(outcome_of(split, known, seed=0) for split in splits)
    return found


# All 20 splits at 80 % take a minute.
@pytest.mark.parametrize(("fraction", "n_splits"), [(0.1, 20), (0.2, 20), (0.8, 6)])
def test_the_paper_within_three_standard_errors(
    known: Prepared, fraction: float, n_splits: int
) -> None:
    found = point(known, "paper", fraction, n_splits)
    for method, (mean, std) in MEASURED[fraction].items():
        ours = found.accuracy(method)
        assert abs(ours.mean - mean) < 3 * np.hypot(ours.error, std / np.sqrt(20))
    assert found.difference("SUM", "SVM on pixels").sign == 1
    assert found.accuracy("SUM").mean > found.accuracy("TKD-CONCAT").mean
    confusion = found.confusion("SUM", known.data.labels)
    rates = np.diag(confusion) / confusion.sum(axis=1)
    weakest = {known.data.classes[k] for k in np.argsort(rates)[:3]}
    assert weakest == {"cow", "dog", "horse"}
    words = weakest_classes(found, "SUM", known.data.labels, known.data.classes, beside_paper=True)
    assert words.endswith("In the paper: cow, dog and horse.")


@pytest.mark.parametrize("fraction", [0.02, 0.1])
def test_factor_fusion_is_above_all_others_when_kernels_are_chosen(
    known: Prepared, fraction: float
) -> None:
    found = point(known, "tuned", fraction, 6)
    for other in ("SUM", "TKD-CONCAT", "SVM on pixels"):
        assert found.difference("FactorFusion", other).mean > 1
    assert found.difference("SUM", "SVM on pixels").sign < 1
