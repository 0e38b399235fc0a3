"""The protocols: what is compared with what, and under which rules.

A protocol says how images are divided into those for training and those for testing, which methods
take part, and how their support vector machines are set. The paper leaves the pixel range, the kernel
width, the cost and standardisation open; *paper* is the reading that gives its number. There the width
is 1 / (number of features) for every method, which is far too small for thousands of pixels. So *tuned*
and *objects* let each method choose its own, by cross-validation on the training images alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

SUM, CONCAT, PIXELS, FACTORS = "SUM", "TKD-CONCAT", "SVM on pixels", "FactorFusion"

# Kernel widths that are tried: gamma times the mean squared distance of the training samples.
WIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class Protocol:
    """The rules of a comparison.

    Attributes
    ----------
    name : str
    methods : tuple of str
    cost : float
        The parameter C of the support vector machines.
    is_tuned : bool
        Whether the kernel width is chosen by cross-validation, of `WIDTHS`, and the features of SUM and
        TKD-CONCAT are standardised; otherwise gamma is 1 / (number of features), and features are as
        they are.
    by_object : bool
        Whether all images of an object are left out together: one fold for each object number, at no
        fraction. Otherwise single images are drawn at random.
    description : str
        The same in words, for people.
    """

    name: str
    methods: tuple[str, ...]
    cost: float
    is_tuned: bool
    by_object: bool
    description: str


_CHOSEN = (
    "The kernel width is chosen for every method by cross-validation on the training images; the "
    "features of SUM and TKD-CONCAT are standardised."
)

PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "paper",
            (SUM, CONCAT, PIXELS),
            cost=1.0,
            is_tuned=False,
            by_object=False,
            description=(
                "The paper's experiment, in the reading that gives its number: random splits, not "
                "stratified; pixels from 0 to 1; Tucker ranks 3; features as they are; RBF support "
                "vector machine, C = 1, gamma = 1 / number of features."
            ),
        ),
        Protocol(
            "tuned",
            (SUM, CONCAT, PIXELS, FACTORS),
            cost=100.0,
            is_tuned=True,
            by_object=False,
            description=f"A fair comparison: stratified random splits, C = 100. {_CHOSEN}",
        ),
        Protocol(
            "objects",
            (SUM, CONCAT, PIXELS, FACTORS),
            cost=100.0,
            is_tuned=True,
            by_object=True,
            description=(
                "New objects: all images of one object of every class are left out, in turn; C = 100. "
                f"{_CHOSEN} Its folds, too, keep the images of an object together."
            ),
        ),
    )
}


@cache
def paper_numbers() -> dict[str, Any]:
    """What the paper says, from `paper.json`.

    Examples
    --------
    >>> paper_numbers()["accuracy"]
    92.3
    """
    text = files("tnsum.experiments").joinpath("paper.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
