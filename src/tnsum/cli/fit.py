"""`tnsum fit`: a folder of images to a classifier."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from tnsum.cli._description import classifier_in_one_line, confusion_table, expectation
from tnsum.cli._libraries import libraries_needed
from tnsum.cli._output import print_table, say
from tnsum.topology import listed_sizes, printable


@click.command(
    short_help="Make a classifier of your own images.",
    epilog="""\b
Examples:
  tnsum fit fruits -o fruits.safetensors
  tnsum fit fruits -o fruits.safetensors --size 48 --folds 10
  tnsum predict fruits.safetensors basket.jpg
""",
)
@click.argument("images", type=click.Path(exists=True, file_okay=False))
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write."
)
@click.option(
    "--size",
    default=32,
    show_default=True,
    type=click.IntRange(4, 256),
    help="The height and width that images are brought to.",
)
@click.option(
    "--folds",
    default=5,
    show_default=True,
    type=click.IntRange(2, 1000),
    help="The folds of cross-validation; fewer if a class has fewer images, or objects.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0, 2**32 - 1),
    help="What divides the images into folds at random.",
)
def fit(images: str, output: str, size: int, folds: int, seed: int) -> None:
    """Make a classifier of the folder IMAGES, which holds one folder of images for each class.

    Factor fusion describes the images, a support vector machine tells them apart. Its kernel is chosen
    by cross-validation, which also says how accurate to expect it to be, and what it mistakes for what.
    If the folder of each class holds one folder for each object, that is how accurate on new objects. An
    older OUTPUT is replaced when the new one is complete.
    """
    with libraries_needed("tnsum fit"):
        from tnsum.datasets import load_image_folder
        from tnsum.fusion._classifier import ImageClassifier
        from tnsum.fusion._classifier_files import check_writable
    if Path(output).resolve().is_relative_to(Path(images).resolve()):
        raise click.UsageError(
            f"The classifier must be kept outside of the images in {printable(images)}; {output!r} came."
        )
    check_writable(output)
    data = load_image_folder(images, size)
    counts = {name: int(np.sum(data.labels == k)) for k, name in enumerate(data.classes)}
    say(
        f"{printable(images)}: {len(data)} image{'s' * (len(data) > 1)}, brought to {size} x {size}, of "
        f"{len(counts)} class{'es' * (len(counts) > 1)}: {listed_sizes(counts)}"
    )
    classifier = ImageClassifier(folds, seed, progress=True).fit(data)
    classifier.save(output)
    say(f"\n{expectation(classifier)}\n")
    columns, rows, more = confusion_table(classifier)
    print_table(columns, rows, more)
    say(f"\n{printable(output)}: {classifier_in_one_line(classifier)}")
