"""What the numbers of a run say, in sentences: each is computed, none is known beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tnsum.experiments._points import Point, firm_errors
from tnsum.experiments._protocols import CONCAT, FACTORS, PIXELS, SUM, paper_numbers
from tnsum.experiments._splits import Indices

# Which methods are compared in words, where both take part.
_PAIRS = ((SUM, PIXELS), (SUM, CONCAT), (FACTORS, PIXELS), (FACTORS, SUM), (FACTORS, CONCAT))


def comparisons(points: Sequence[Point]) -> list[str]:
    """A sentence for each pair of methods of one protocol, and what above and below mean in them."""
    if len(points[0].outcomes) < 3:
        return ["Fewer than three splits do not tell methods apart."]
    return [*(_compared(points, a, b) for a, b in pairs_of(points)), _basis(points)]


def pairs_of(points: Sequence[Point]) -> list[tuple[str, str]]:
    """The pairs of methods of which both took part."""
    return [(a, b) for a, b in _PAIRS if {a, b} <= set(points[0].methods)]


def _compared(points: Sequence[Point], method: str, other: str) -> str:
    groups: dict[int, list[str]] = {1: [], -1: [], 0: []}
    for point in points:
        groups[point.difference(method, other).sign].append(point.title)
    found = [
        f"{words} {other} {_where(titles, len(points))}"
        for words, titles in zip(
            ("above", "below", "not told apart from"), groups.values(), strict=True
        )
        if titles
    ]
    return f"{method} is {_listed(found)}."


def _basis(points: Sequence[Point]) -> str:
    n_splits = len(points[0].outcomes)
    return (
        f"Above and below: the mean of the differences, split by split, over {n_splits} splits is more "
        f"than {firm_errors(n_splits):.1f} standard errors from zero."
    )


def _where(titles: Sequence[str], n_points: int) -> str:
    if titles == ["new objects"]:
        return "on new objects"
    if len(titles) == n_points > 1:
        return f"at all {n_points} fractions"
    return f"at {_listed(titles)}"


def _listed(words: Sequence[str]) -> str:
    """Words between commas, and an `and` before the last."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def paper_comparison(points: Sequence[Point]) -> str | None:
    """The paper's accuracy beside that of SUM at the same fraction, if it was run."""
    paper = paper_numbers()
    same = [point for point in points if point.fraction == paper["training_fraction"]]
    if not same:
        return None
    point, found = same[0], same[0].accuracy(SUM)
    n_splits, gap = len(point.outcomes), found.mean - paper["accuracy"]
    where = f"{abs(gap):.1f} {'above' if gap > 0 else 'below'} it"
    spread = "one split"
    if n_splits > 1:
        spread = f"{n_splits} splits, standard deviation {found.std:.1f}"
        where += (
            f", {abs(gap) / found.error:.1f} standard errors of the mean" if found.error else ""
        )
    return (
        f"The paper reports {paper['accuracy']:.1f} % at {point.title} (mean of "
        f"{paper['realisations']} realisations); SUM has {found.mean:.1f} % here ({spread}): {where}."
    )


def weakest_classes(
    point: Point, method: str, labels: Indices, classes: Sequence[str], beside_paper: bool
) -> str:
    """Which classes a method knows least, and what the paper says of them where that is asked for."""
    confusion = point.confusion(method, labels)
    n_tested = np.maximum(confusion.sum(axis=1), 1)
    rates = 100 * np.diag(confusion) / n_tested
    bound = paper_numbers()["class_bound"]
    order = [int(k) for k in np.argsort(rates, kind="stable")]
    is_low = (rates <= bound) & (confusion.sum(axis=1) > 0)
    below = [f"{classes[k]} {rates[k]:.1f} %" for k in order if is_low[k]]
    where = "on new objects" if point.fraction is None else f"at {point.title}"
    sentence = (
        f"Classes of which {method} finds {bound} % or less {where}: {_listed(below or ['none'])}."
    )
    if beside_paper:
        sentence += f" In the paper: {_listed(paper_numbers()['classes_below_bound'])}."
    return sentence


def effect_of_tuning(paper: Sequence[Point], tuned: Sequence[Point]) -> list[str]:
    """What choosing the kernel width changes, at the largest fraction; nothing if it was not tried."""
    if not paper or not tuned:
        return []
    before, after = paper[-1], tuned[-1]
    changes = [
        f"{method} from {before.accuracy(method).mean:.1f} to {after.accuracy(method).mean:.1f} %"
        for method in before.methods
    ]
    leads = before.difference(SUM, PIXELS), after.difference(SUM, PIXELS)
    found = [
        f"At {after.title}, choosing the kernel width (and C, and scaling) takes {_listed(changes)}.",
        f"The lead of {SUM} over {PIXELS} there is {leads[0].mean:+.1f} with the paper's kernel width "
        f"and {leads[1].mean:+.1f} with a chosen one.",
    ]
    if leads[0].sign > 0 and leads[1].mean < leads[0].mean / 2:
        found.append("So most of that lead is owed to a kernel width that does not suit pixels.")
    return found
