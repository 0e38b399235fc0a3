"""reproduce: the paper's experiment, from images to a report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from tnsum._checks import checked_integer
from tnsum.datasets import ImageSet, load_eth80, make_objects
from tnsum.errors import NetworkError
from tnsum.experiments._folder import RunFolder, as_json
from tnsum.experiments._methods import on_disk, prepared
from tnsum.experiments._outcomes import Outcome, outcome_of
from tnsum.experiments._processes import outcome_in_process
from tnsum.experiments._protocols import FACTORS, PROTOCOLS
from tnsum.experiments._report import figures_of, report
from tnsum.experiments._results import Reproduction, as_csv, as_values, described, times
from tnsum.experiments._settings import Settings
from tnsum.experiments._showing import shown_splits
from tnsum.experiments._splits import Split, splits_of
from tnsum.storage import faults_named


def reproduce(
    data: str | os.PathLike[str] | ImageSet | None,
    out: str | os.PathLike[str],
    settings: Settings | None = None,
    jobs: int = 1,
    progress: bool = False,
) -> Reproduction:
    """The paper's classification experiment, run or gone on with; its files are in the folder `out`.

    Each split is kept in `out` as it is done. A second call with the same images and settings does what
    is left, and gives the same files, byte for byte, but for `times.json`; processors of another kind
    may take single images for another class.

    Parameters
    ----------
    data : path, ImageSet or None
        Where ETH-80 is, as for `tnsum.datasets.load_eth80`; or other images, or None for those of
        `tnsum.datasets.make_objects`. Beside these the paper's number is not shown.
    out : path
        A new or empty folder, or one of an earlier run with the same images and settings. There will be
        `results.json`, `results.csv`, `times.json`, `report.html`, `figures` and `splits`.
    settings : Settings, optional
        What is run; by default, the paper's experiment with 20 splits.
    jobs : int
        How many processes share the splits. Results do not depend on it.
    progress : bool
        Show on the standard error stream how far it is.

    Raises
    ------
    NetworkError
        `jobs` or the images are not what they must be, a fraction leaves nothing to train on or to test,
        there are too many images for the distances of all pairs, `out` cannot be written to or belongs
        to something else, or one of its files was changed.

    Examples
    --------
    >>> import tempfile
    >>> from tnsum.datasets import make_objects
    >>> images = make_objects(n_objects=2, n_views=4, size=8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = reproduce(images, folder, Settings(fractions=(0.5,), n_splits=2))
    >>> run.points("paper")[0].methods
    ('SUM', 'TKD-CONCAT', 'SVM on pixels')
    """
    settings = settings or Settings()
    jobs = checked_integer("jobs", jobs, 1)
    is_eth80 = not (data is None or isinstance(data, ImageSet))
    if data is None:
        data = make_objects()
    images = data if isinstance(data, ImageSet) else load_eth80(data)
    _check(images)
    splits = splits_of(settings, images)
    about = described(images, is_eth80, settings)
    folder = RunFolder(out, about)
    done = folder.stored(splits, images)
    left = [split for split in splits if split not in done]
    # Several threads add in another order: the last digits would depend on the machine.
    with threadpool_limits(1), shown_splits(left, len(done), progress) as show:
        for outcome in _outcomes(left, images, settings.seed, jobs, folder):
            folder.store(outcome)
            done[outcome.split] = outcome
            show(outcome)
        run = Reproduction(images, is_eth80, settings, tuple(done[split] for split in splits))
        _write(run, folder, about["versions"])
    return run


def _check(images: ImageSet) -> None:
    n_classes = len(np.unique(images.labels))
    if n_classes < 2:
        raise NetworkError(f"Images must be of two or more classes; they are of {n_classes}.")
    if images.images.ndim != 4 or images.images.shape[3] != 3:
        raise NetworkError(
            f"Images must have the shape (number, height, width, 3); {images.images.shape} came."
        )
    if not np.all(np.isfinite(images.images)):
        raise NetworkError("Images must hold finite numbers; some are infinite or NaN.")


def _outcomes(
    splits: Sequence[Split], images: ImageSet, seed: int, jobs: int, folder: RunFolder
) -> Iterator[Outcome]:
    """The outcomes of splits, each as it is done."""
    if not splits:
        return
    with_factors = any(FACTORS in PROTOCOLS[split.protocol].methods for split in splits)
    known = prepared(images, with_factors)
    n_jobs = min(jobs, len(splits))
    if n_jobs == 1:
        yield from (outcome_of(split, known, seed) for split in splits)
        return
    with folder.shared() as shared:
        with faults_named(shared, "written to"):
            known = on_disk(known, shared)
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        task = partial(delayed(outcome_in_process), os.getpid())
        yield from parallel(task(split, known, seed) for split in splits)


def _write(run: Reproduction, folder: RunFolder, versions: dict[str, str]) -> None:
    """The files that say what came out."""
    folder.write("results.json", as_json(as_values(run)))
    folder.write("results.csv", as_csv(run.outcomes))
    folder.write("times.json", as_json(times(run.outcomes)))
    figures = figures_of(run)
    for one in figures:
        folder.write(f"figures/{one.name}.svg", one.svg)
        folder.write(f"figures/{one.name}.png", one.png)
    folder.write("report.html", report(run, figures, versions))
