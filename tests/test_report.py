"""The report: one whole page that asks for nothing, harmless whatever the names are; the figures."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

import tnsum.experiments._reproduce as module
from browser import CHROMIUM, TELEPHONE, browser_page
from experiment_data import small_images
from tnsum.experiments import Reproduction, Settings, reproduce
from tnsum.experiments._figures import as_inline, as_png, as_svg, confusion_figure
from tnsum.experiments._report import Picture, _taken, figures_of, report

SETTINGS = Settings(("paper", "tuned", "objects"), (0.2, 0.8), n_splits=3)
HOSTILE = '<script>alert("x")</script>\x1b[31m\udcff'
VOID = {"meta", "link", "img", "br", "use", "path", "rect", "image"}


def hostile_images() -> Any:
    data = small_images(n_objects=3, n_views=4)
    return replace(
        data, names=(HOSTILE,) * len(data), classes=(HOSTILE, "dog", "cow"), source=HOSTILE
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "figures_of", lambda run: [])
        return reproduce(small_images(n_objects=3, n_views=4), folder, SETTINGS)


@pytest.fixture(scope="module")
def figures(run: Reproduction) -> list[Picture]:
    return figures_of(run)


@pytest.fixture(scope="module")
def page(run: Reproduction, figures: list[Picture]) -> str:
    return report(run, figures, {"numpy": "1.2.3"})


class Page(HTMLParser):
    """Reads a page, and holds that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


def check_asks_for_nothing(text: str) -> None:
    """Assert that a page names no address but data and parts of itself, and has no script."""
    read = Page(text)
    assert not {tag for tag, _ in read.tags} & {
        "script",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
    }
    for _, attributes in read.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href"):
                assert (value or "").startswith(("data:", "#"))
    assert "//" not in re.sub(r"base64,[^\"]*", "", text).replace("</", "")
    assert "@import" not in text
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = re.findall(r"(?:url\(|href=\")#([\w-]+)", text)
    assert used
    assert set(used) <= set(ids)


def test_the_page_is_whole_and_asks_for_nothing(page: str) -> None:
    check_asks_for_nothing(page)
    assert page.startswith("<!doctype html>")
    tags = [tag for tag, _ in Page(page).tags]
    assert tags.count("h1") == 1
    assert tags.count("table") == 6
    assert tags.count("svg") == 11
    metas = {str(a.get("http-equiv") or a.get("name")): a["content"] for t, a in Page(page).tags
             if t == "meta" and "content" in a}  # fmt: skip
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    assert "default-src 'none'" in str(metas["Content-Security-Policy"])


def test_the_page_says_what_was_run_on_what(page: str, run: Reproduction) -> None:
    text = Page(page).text
    assert "36 images of 6 x 6, 3 classes: patterns & noise. These images are not ETH-80" in text
    assert "92.3" not in text
    assert "paper, SUM" not in text
    assert "seed 0; split k: default_rng((0, k)) of NumPy" in text.replace("seed0", "seed 0")
    assert "1.2.3" in text
    for point in run.points("tuned"):
        for method in point.methods:
            found = point.accuracy(method)
            assert f"{found.mean:.1f} ± {found.std:.1f}" in text
        gap = point.difference("FactorFusion", "SVM on pixels")
        mean = f"{gap.mean:+.1f}".replace("-", "\N{MINUS SIGN}")
        assert f"{mean} ± {gap.error:.1f}" in text


def test_every_figure_has_a_caption_and_a_label(page: str, figures: list[Picture]) -> None:
    labels = [attributes["aria-label"] for tag, attributes in Page(page).tags if tag == "svg"]
    assert labels == [one.caption for one in figures]
    assert all(label in Page(page).text for label in labels if label)


def test_figures_have_the_ground_of_the_page(page: str) -> None:
    drawn = re.findall(r"<svg role.*?</svg>", page, re.DOTALL)
    for svg in drawn:
        shapes = re.sub(r"<text.*?</text>", "", svg, flags=re.DOTALL)
        assert "fill: #ffffff" not in shapes
        assert "fill: white" not in shapes


def test_misclassified_images_are_shown_with_their_names(page: str, run: Reproduction) -> None:
    images = [attributes for tag, attributes in Page(page).tags if tag == "img"]
    last = [run.points(name)[-1] for name in run.settings.protocols]
    mistaken = [
        point.mistaken("SUM" if point.protocol == "paper" else "FactorFusion") for point in last
    ]
    names = [run.data.names[k] for one in mistaken for k in list(one)[:24]]
    assert [image["alt"] for image in images] == names
    assert names


def test_it_is_said_how_mistaken_images_are_chosen(run: Reproduction, page: str) -> None:
    n = len(run.points("paper")[-1].mistaken("SUM"))
    order = "the most clearly mistaken first: how clearly the wrong class won its closest duel."
    assert (
        f"{n} images were mistaken in some split; all of them, the most often mistaken first, and of "
        f"those as often {order}"
    ) in Page(page).text
    alone = replace(run, outcomes=tuple(one for one in run.outcomes if one.split.number == 0))
    text = Page(report(alone, [], {})).text
    mistaken = alone.outcomes[-1].methods["FactorFusion"].mistakes
    assert mistaken
    assert f"images were mistaken; all of them, {order}" in text
    image, label = mistaken[0]
    assert f"{run.data.names[image]}: taken for {run.data.classes[label]}" in text
    assert " of 1 times" not in text
    assert _taken({2: 1, 0: 2}, 4, ("cow", "dog", "cat")) == "cow 2, cat 1 of 4 times"


def test_the_paper_stands_only_beside_eth80(run: Reproduction) -> None:
    eth80 = Page(report(replace(run, is_eth80=True), [], {})).text
    assert "paper, SUM" in eth80
    assert "The paper reports 92.3 % at 80 %" in eth80
    assert "not ETH-80" not in eth80
    assert eth80.count("In the paper:") == 1
    others = tuple(one for one in run.outcomes if one.split.fraction != 0.8)
    small = Page(report(replace(run, is_eth80=True, outcomes=others), [], {})).text
    assert "paper, SUM" not in small
    assert "The paper reports" not in small


def test_names_from_files_are_harmless(run: Reproduction) -> None:
    data = hostile_images()
    hostile = replace(run, data=data)
    drawn = [one for one in figures_of(replace(hostile, settings=Settings("paper", (0.2, 0.8), 3)))  # type: ignore[arg-type]
             if one.name.startswith("confusion")]  # fmt: skip
    text = report(hostile, drawn, {"<b>": "<i>"})
    check_asks_for_nothing(text)
    text.encode("utf-8")
    assert "\x1b" not in text
    assert "\\x1b[31m\\udcff" in text


def test_one_split_has_no_spread(tmp_path: Path) -> None:
    run = reproduce(small_images(n_objects=2), tmp_path, Settings("paper", (0.5,), 1))  # type: ignore[arg-type]
    text = (tmp_path / "report.html").read_text()
    check_asks_for_nothing(text)
    assert "nan" not in Page(text).text
    assert "Fewer than three splits do not tell methods apart." in Page(text).text
    assert '"std": null' in (tmp_path / "results.json").read_text()
    assert run.points("paper")[0].accuracy("SUM").sign == 0


def test_figures_are_the_same_each_time_and_say_no_date() -> None:
    before = dict(mpl.rcParams)
    a, b = (confusion_figure(np.array([[8, 2], [1, 9]]), ["cow", "dog"]) for _ in range(2))
    svg = as_svg(a)
    assert svg == as_svg(b)
    assert as_png(a) == as_png(b)
    assert dict(mpl.rcParams) == before
    assert b"date" not in svg
    assert Image.open(io.BytesIO(as_png(a))).width == 704


def test_inline_figures_take_the_colour_of_the_page() -> None:
    svg = as_svg(confusion_figure(np.array([[8, 2], [0, 0]]), ["a class of a long name", "b"]))
    text = as_inline(svg, "some", "label")
    assert "#1f2933" not in text
    assert "#ffffff" not in text.split("patch_2")[0]
    assert "currentColor" in text
    assert "80.0" in text
    assert "20.0" in text
    assert "a class of …" in text


@pytest.mark.large
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to open the report in")
def test_a_browser_shows_it_on_a_telephone_without_a_word(page: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page)
    scrolled = (
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
    )
    with browser_page(tmp_path) as opened:
        opened.open(file.as_uri(), TELEPHONE)
        assert opened.evaluate("document.documentElement.scrollWidth") <= TELEPHONE[0]
        assert opened.evaluate(f"{scrolled}.length") == 0
        assert opened.messages == []
        assert [url for url in opened.requests if not url.startswith("data:")] == [file.as_uri()]
