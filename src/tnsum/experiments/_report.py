"""The report of a run: one page that needs nothing else, and the figures as files.

Every sentence on the outcome is computed from it (`_claims`); what is written here says what was done
and how to read it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imsave

from tnsum.experiments import _page as html
from tnsum.experiments._claims import (
    comparisons,
    effect_of_tuning,
    pairs_of,
    paper_comparison,
    weakest_classes,
)
from tnsum.experiments._factor_figure import factors_figure
from tnsum.experiments._figures import (
    accuracy_figure,
    as_inline,
    as_png,
    as_svg,
    confusion_figure,
    difference_figure,
    objects_figure,
)
from tnsum.experiments._points import Point, Summary
from tnsum.experiments._protocols import FACTORS, PROTOCOLS, SUM, paper_numbers
from tnsum.experiments._results import Reproduction

_SHOWN_IMAGES = 24

NOT_ETH80 = (
    "These images are not ETH-80, the data set of the paper: the numbers here are not to be compared "
    "with its."
)
_HOW_FIRM = (
    "Splits of one data set share images: standard errors say how firmly an order holds on these "
    "images, not on all images."
)
_METHODS = (
    "Each image is held as a Tucker network; the networks are added; what their sum has in common "
    "describes every image, and a support vector machine classifies by it (SUM). TKD-CONCAT takes the "
    "factors of all images stacked as one tensor; SVM on pixels takes images as they are"
)
_WITH_FACTORS = "; FactorFusion takes the factors of each image as they lie in the common ones."


@dataclass(frozen=True)
class Picture:
    """A figure as files, the name of these, and what it shows, in plain text."""

    name: str
    caption: str
    svg: bytes
    png: bytes


def figures_of(run: Reproduction) -> list[Picture]:
    """All figures of a run."""
    found: list[Picture] = []
    for protocol in run.settings.protocols:
        found += _figures_of_protocol(run.points(protocol), run)
    if run.data.images.ndim == 4 and run.data.images.shape[3] == 3:
        caption = (
            "What the networks of the training images have in common: the common factors of SUM. The "
            "sign of a vector means nothing."
        )
        found.append(_drawn("factors", factors_figure(run.common_factors()), caption))
    return found


def _drawn(name: str, figure: Figure, caption: str) -> Picture:
    return Picture(name, caption, as_svg(figure), as_png(figure))


def _figures_of_protocol(points: list[Point], run: Reproduction) -> Iterator[Picture]:
    last, name = points[-1], points[0].protocol
    n_splits = len(last.outcomes)
    if PROTOCOLS[name].by_object:
        caption = f"Accuracy on each of {n_splits} objects of every class, when it was left out."
        yield _drawn(f"accuracy-{name}", objects_figure(last), caption)
    else:
        spread = "" if n_splits == 1 else f" of {n_splits} splits; bands: one standard deviation"
        caption = f"Accuracy against the part of the images trained on: mean{spread}."
        yield _drawn(f"accuracy-{name}", accuracy_figure(points), caption)
        spread = "" if n_splits == 1 else "; bands: two standard errors"
        caption = (
            f"Difference to the support vector machine on pixels, split by split: mean{spread}."
        )
        yield _drawn(f"difference-{name}", difference_figure(points), caption)
    for method in _looked_at(last):
        confusion = last.confusion(method, run.data.labels)
        caption = f"{method}, {_at(last)}: how many in a hundred of each class were taken for what."
        figure = confusion_figure(confusion, run.data.classes)
        yield _drawn(f"confusion-{name}-{method.lower()}", figure, caption)


def _looked_at(point: Point) -> list[str]:
    """The methods that are looked at closely."""
    return [method for method in (SUM, FACTORS) if method in point.methods]


def _at(point: Point) -> str:
    return point.title if point.fraction is None else f"{point.title} trained on"


def report(run: Reproduction, figures: list[Picture], versions: Mapping[str, str]) -> str:
    """The page."""
    parts = [_opening(run)]
    for name in run.settings.protocols:
        parts += _protocol_section(run, name, figures)
    parts += _factors_section(figures)
    parts += _what_was_run(run, versions)
    return html.page("Sums of tensor networks: classification of images", parts)


def claims_of(run: Reproduction, protocol: str) -> list[str]:
    """What holds under a protocol, in sentences."""
    points, data = run.points(protocol), run.data
    is_paper = protocol == "paper" and run.is_eth80
    beside = paper_comparison(points) if is_paper else None
    weak = [
        weakest_classes(points[-1], method, data.labels, data.classes, is_paper)
        for method in _looked_at(points[-1])
    ]
    return [*([beside] if beside else []), *comparisons(points), *weak]


def tuning_claims(run: Reproduction) -> list[str]:
    """What choosing the kernel changes, if both were run."""
    return effect_of_tuning(run.points("paper"), run.points("tuned"))


def _opening(run: Reproduction) -> str:
    data = run.data
    height, width = data.images.shape[1:3]
    about = f"{len(data)} images of {height} x {width}, {len(data.classes)} classes: {data.source}."
    more = "" if run.is_eth80 else f" <b>{NOT_ETH80}</b>"
    parts = [f'<p class="note">{html.escaped(about)}{more}</p>']
    methods = {name for protocol in run.settings.protocols for name in PROTOCOLS[protocol].methods}
    parts.append(f"<p>{_METHODS}{_WITH_FACTORS if FACTORS in methods else '.'}</p>")
    if sentences := tuning_claims(run):
        parts.append(html.items(sentences))
    return "\n".join(parts)


def _protocol_section(run: Reproduction, name: str, figures: list[Picture]) -> list[str]:
    points = run.points(name)
    titles = {"paper": "As in the paper", "tuned": "Tuned", "objects": "New objects"}
    parts = [
        f'<h2 id="{name}">{titles[name]}</h2>',
        f"<p>{html.escaped(PROTOCOLS[name].description)}</p>",
        html.items(claims_of(run, name)),
        f'<p class="quiet">{_HOW_FIRM}</p>',
        _accuracy_table(points, beside_paper=name == "paper" and run.is_eth80),
        _difference_table(points),
        '<h3>Figures</h3>\n<div class="figures">',
    ]
    own = [one for one in figures if one.name.split("-")[1:2] == [name]]
    parts += [_inline(one) for one in own]
    parts.append("</div>")
    method = _looked_at(points[-1])[-1]
    return [*parts, *_mistaken_images(points[-1], method, run)]


def _inline(one: Picture) -> str:
    caption = html.escaped(one.caption)
    return html.figure(as_inline(one.svg, one.name, caption), caption)


def _accuracy_table(points: list[Point], beside_paper: bool) -> str:
    paper = paper_numbers()
    fractions = [point.fraction for point in points]
    with_paper = beside_paper and paper["training_fraction"] in fractions
    rows = []
    for point in points:
        found = [_spread(point.accuracy(method)) for method in point.methods]
        if with_paper:
            is_same = point.fraction == paper["training_fraction"]
            found.append(f"{paper['accuracy']:.1f}" if is_same else "")
        rows.append([html.prose(point.title), *found])
    n_splits = len(points[0].outcomes)
    spread = "" if n_splits == 1 else f" ± standard deviation of {n_splits} splits"
    head = ["trained on", *points[0].methods, *(["paper, SUM"] if with_paper else [])]
    return html.table(f"Accuracy in per cent: mean{spread}.", head, rows)


def _difference_table(points: list[Point]) -> str:
    pairs = pairs_of(points)
    rows = [
        [html.prose(point.title), *(_difference(point.difference(a, b)) for a, b in pairs)]
        for point in points
    ]
    head = ["trained on", *(f"{a} less {b}" for a, b in pairs)]
    error = "" if len(points[0].outcomes) == 1 else " ± standard error; bold where firm"
    return html.table(f"Paired differences in points: mean{error}.", head, rows)


def _spread(found: Summary) -> str:
    more = "" if math.isnan(found.std) else f" <small>± {found.std:.1f}</small>"
    return f"{found.mean:.1f}{more}"


def _difference(found: Summary) -> str:
    mean = f"{found.mean:+.1f}".replace("-", "\N{MINUS SIGN}")
    mean = f"<b>{mean}</b>" if found.sign else mean
    return mean if math.isnan(found.error) else f"{mean} <small>± {found.error:.1f}</small>"


def _mistaken_images(point: Point, method: str, run: Reproduction) -> list[str]:
    mistaken = point.mistaken(method)
    parts = [f"<h3>{html.prose(f'Images that {method} mistook, {_at(point)}')}</h3>"]
    if not mistaken:
        return [*parts, "<p>None.</p>"]
    shown = list(mistaken.items())[:_SHOWN_IMAGES]
    parts.append(f'<p class="quiet">{_how_chosen(point, len(mistaken), len(shown))}</p>')
    parts.append('<div class="images">')
    tested = run.times_tested(point)
    for image, counts in shown:
        name = html.escaped(run.data.names[image])
        words = html.escaped(f"taken for {_taken(counts, int(tested[image]), run.data.classes)}")
        parts.append(html.image(_thumbnail(run.data.images[image]), name, f"{name}: {words}"))
    return [*parts, "</div>"]


def _taken(counts: Mapping[int, int], n_tested: int, classes: Sequence[str]) -> str:
    """The classes that an image was taken for, and how often if it was tested several times."""
    if n_tested == 1:
        return ", ".join(classes[label] for label in counts)
    often = ", ".join(f"{classes[label]} {n}" for label, n in sorted(counts.items()))
    return f"{often} of {n_tested} times"


def _how_chosen(point: Point, n_mistaken: int, n_shown: int) -> str:
    """Which of the mistaken images are shown, and in which order."""
    some = "all" if n_shown == n_mistaken else f"the first {n_shown}"
    clearly = "the most clearly mistaken first: how clearly the wrong class won its closest duel"
    if len(point.outcomes) == 1:
        return f"{n_mistaken} images were mistaken; {some} of them, {clearly}."
    return (
        f"{n_mistaken} images were mistaken in some split; {some} of them, the most often mistaken "
        f"first, and of those as often {clearly}."
    )


def _thumbnail(image: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    shown = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
    imsave(file, shown, format="png")
    return file.getvalue()


def _factors_section(figures: list[Picture]) -> list[str]:
    return [
        f'<h2 id="factors">Common factors</h2>\n<div class="figures">{_inline(one)}</div>'
        for one in figures
        if one.name == "factors"
    ]


def _what_was_run(run: Reproduction, versions: Mapping[str, str]) -> list[str]:
    settings = run.settings
    by_draw = [name for name in settings.protocols if not PROTOCOLS[name].by_object]
    rows = [("protocols", ", ".join(settings.protocols))]
    if by_draw:
        numbers = f"0 to {settings.n_splits - 1}" if settings.n_splits > 1 else "0"
        rows.append(("splits", f"{settings.n_splits} at each fraction, numbers {numbers}"))
        rows.append(
            ("seed", f"{settings.seed}; split k: default_rng(({settings.seed}, k)) of NumPy")
        )
    rows += list(versions.items())
    lines = [f"<dt>{html.escaped(a)}</dt><dd>{html.escaped(b)}</dd>" for a, b in rows]
    return ['<h2 id="run">What was run</h2>', "<dl>", *lines, "</dl>"]
