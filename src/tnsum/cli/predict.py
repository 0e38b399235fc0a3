"""`tnsum predict`: the classes of images."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from tnsum._replacing import replacing
from tnsum.cli._libraries import libraries_needed
from tnsum.cli._output import print_table, say
from tnsum.errors import NetworkError
from tnsum.storage import faults_named
from tnsum.topology import printable

if TYPE_CHECKING:
    from tnsum.fusion._classifier import ImageClassifier
    from tnsum.fusion._samples import Matrix

_COLUMNS = ("class", "second", "third")


@click.command(
    short_help="Tell the classes of images.",
    epilog="""\b
Examples:
  tnsum predict fruits.safetensors basket.jpg more
  tnsum predict fruits.safetensors more --top 3 --csv more.csv
  tnsum predict fruits.safetensors more --csv - | sort -t, -k2
""",
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("images", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--top",
    default=2,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many classes to show of each image.",
)
@click.option(
    "--csv",
    "csv_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write CSV to a file, or to the output if it is `-`.",
)
def predict(model: str, images: tuple[str, ...], top: int, csv_file: str | None) -> None:
    """Tell the classes of IMAGES, files or folders, by the classifier MODEL that `tnsum fit` made.

    Probabilities are as the fitted images showed them when they were held back; an image of nothing
    that was fitted has some class too. If IMAGES is one folder that holds folders named after classes,
    the accuracy is shown as well; of images that were fitted themselves it says little.
    """
    with libraries_needed("tnsum predict"):
        from tnsum.datasets import load_images
        from tnsum.fusion._classifier_files import check_writable, load_classifier
    if csv_file not in (None, "-"):
        kept = {Path(path).resolve() for path in (model, *images)}
        if Path(str(csv_file)).resolve() in kept:
            raise click.UsageError(f"The CSV must not replace what is read; {csv_file!r} came.")
        check_writable(str(csv_file))
    classifier = load_classifier(model)
    pixels, names = load_images(images, _size_of(classifier, model))
    probabilities = classifier.probabilities(pixels)
    best = _best_first(classifier.margins(pixels).argmax(axis=1), probabilities)[:, :top]
    rows = [
        [name, *(cell for k in line for cell in (str(classifier.classes_[k]), f"{row[k]:.4f}"))]
        for name, line, row in zip(names, best, probabilities, strict=True)
    ]
    accuracy = _accuracy_in_words(images, names, classifier, best[:, 0])
    _show(rows, best.shape[1], csv_file)
    if accuracy and csv_file == "-":
        click.echo(accuracy, err=True)
    elif accuracy:
        say(accuracy if csv_file else f"\n{accuracy}")


def _size_of(classifier: ImageClassifier, model: str) -> int:
    height, width, channels = classifier.image_shape_
    if height != width or channels != 3:
        raise NetworkError(
            f"{model!r} must be for square images in colour, as `tnsum fit` makes it; it is for "
            f"{height} x {width} x {channels}. Use tnsum.fusion.load_classifier in Python."
        )
    return height


def _best_first(predicted: Matrix, probabilities: Matrix) -> Matrix:
    """The numbers of the classes of each image: the predicted one, then the others by probability."""
    order = probabilities.copy()
    order[np.arange(len(order)), predicted] = 2
    return np.argsort(-order, axis=1, kind="stable")


def _show(rows: Sequence[Sequence[str]], n_shown: int, csv_file: str | None) -> None:
    """Print the rows, or write them where they are wanted."""
    if csv_file is None:
        names = [_COLUMNS[k] if k < len(_COLUMNS) else f"class {k + 1}" for k in range(n_shown)]
        columns = ["image", *(column for name in names for column in (name, "#probability"))]
        print_table(columns, rows)
        return
    numbers = ["", *(str(k + 1) for k in range(1, n_shown))]
    header = ["image", *(f"{name}{k}" for k in numbers for name in ("class", "probability"))]
    if csv_file == "-":
        is_shown = sys.stdout.isatty()
        written = [[printable(cell) for cell in row] for row in rows] if is_shown else rows
        say(_as_csv(header, written), end="")
        return
    with faults_named(csv_file, "saved"), replacing(csv_file) as file:
        file.write(_as_csv(header, rows).encode("utf-8"))
    say(f"{printable(csv_file)}: {len(rows)} images")


def _as_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _accuracy_in_words(
    images: Sequence[str],
    names: Sequence[str],
    classifier: ImageClassifier,
    predicted: Matrix,
) -> str:
    """How many images lie in the folder of their class, if all lie in folders of classes."""
    n_before = len(Path(images[0]).parts)
    folders = [(*Path(name).parts[n_before:-1], "")[0] for name in names]
    if len(images) > 1 or not set(folders) <= set(classifier.classes_.tolist()):
        return ""
    pairs = zip(folders, classifier.classes_[predicted], strict=True)
    n_right = sum(folder == found for folder, found in pairs)
    return f"{n_right} of {len(names)} right: accuracy {100 * n_right / len(names):.1f} %"
