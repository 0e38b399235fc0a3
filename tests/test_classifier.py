"""ImageClassifier: against scikit-learn's machine, cross-validation written out, and its messages."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from classifier_cases import blurred, eth80, striped
from raising import check_message, kind_of, unreached
from tnsum import NetworkError
from tnsum.datasets import ImageSet
from tnsum.fusion import FactorFusion, _classifier, _classifier_choice, _classifier_images
from tnsum.fusion import _classifier_machine as machines
from tnsum.fusion._classifier import ImageClassifier
from tnsum.fusion._classifier_choice import KERNELS, Validation

Array = np.ndarray[Any, Any]

# the machine


def machine_and_oracle(
    k: int, gamma: float, C: float, seed: int = 0
) -> tuple[machines.KernelMachine, SVC, Array]:
    """Ours, scikit-learn's, and samples that neither has seen, of classes that overlap."""
    rng = np.random.default_rng((seed, k))
    centres = rng.standard_normal((k, 5))
    labels = rng.permutation(np.arange(25 * k) % k)
    features = centres[labels] + rng.standard_normal((25 * k, 5))
    kernel = np.exp(-gamma * machines.squared_distances(features, features))
    machine, support = machines.fitted_machine(kernel, features, labels, gamma, C)
    oracle = SVC(gamma=gamma, C=C, break_ties=True).fit(features, labels)
    np.testing.assert_array_equal(np.sort(support), np.sort(oracle.support_))
    return machine, oracle, 2 * rng.standard_normal((1000, 5))


@pytest.mark.parametrize("k", [2, 3, 4, 8, 13])
@pytest.mark.parametrize(("gamma", "C"), [(0.1, 1.0), (1.0, 100.0)])
def test_margins_and_predictions_are_those_of_scikit_learn(k: int, gamma: float, C: float) -> None:
    machine, oracle, samples = machine_and_oracle(k, gamma, C)
    duels = np.concatenate(list(machine.duels(samples)))
    margins = machines.margins_of(duels)
    # Both were solved to a thousandth: what is closer than that may go either way.
    first, second = np.triu_indices(k, 1)
    is_clear = np.all(np.abs(duels[:, first, second]) > 1e-3, axis=1)
    assert np.mean(is_clear) > 0.5
    samples, duels, margins = samples[is_clear], duels[is_clear], margins[is_clear]
    np.testing.assert_array_equal(margins.argmax(axis=1), oracle.predict(samples))
    if k == 2:
        np.testing.assert_allclose(duels[:, 1, 0], oracle.decision_function(samples), atol=1e-3)
    else:
        np.testing.assert_allclose(margins, oracle.decision_function(samples), atol=1e-3)
    np.testing.assert_array_equal(duels[:, first, second], -duels[:, second, first])


@pytest.mark.parametrize("k", [2, 3, 8])
def test_margins_are_to_rounding_those_of_the_same_solution(k: int) -> None:
    rng = np.random.default_rng(k)
    features, labels = rng.standard_normal((30 * k, 4)), np.arange(30 * k) % k
    kernel = np.exp(-0.5 * machines.squared_distances(features, features))
    machine, _ = machines.fitted_machine(kernel, features, labels, 0.5, 10.0)
    samples = rng.standard_normal((500, 4))
    oracle = SVC(kernel="precomputed", C=10.0, break_ties=True).fit(kernel, labels)
    across = np.exp(-0.5 * ((samples[:, None] - features) ** 2).sum(axis=2))
    expected = oracle.decision_function(across)
    duels = np.concatenate(list(machine.duels(samples)))
    found = duels[:, 1, 0] if k == 2 else machines.margins_of(duels)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(machines.margins_of(duels).argmax(axis=1), oracle.predict(across))


def test_equal_numbers_of_duels_are_told_apart_by_their_sums() -> None:
    circle = np.array([[0, 1.0, -2], [-1, 0, 4], [2, -4, 0]])
    margins = machines.margins_of(circle[None])[0]
    np.testing.assert_allclose(margins, [1 - 1 / 6, 1 + 3 / 12, 1 - 2 / 9])
    np.testing.assert_array_equal(machines.leads_of(circle[None])[0], [-2, -1, -4])
    even = machines.margins_of(np.zeros((1, 3, 3)))[0]
    np.testing.assert_array_equal(even, [2, 1, 0])


def test_samples_are_worked_on_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _, samples = machine_and_oracle(4, 0.5, 10.0)
    expected = np.concatenate(list(machine.duels(samples)))
    monkeypatch.setattr(machines, "_BLOCK", 3 * len(machine.vectors))
    blocks = list(machine.duels(samples))
    assert {len(block) for block in blocks} == {3, 1}
    np.testing.assert_allclose(np.concatenate(blocks), expected, atol=1e-12)


# the features


def test_features_are_those_of_factor_fusion() -> None:
    images, _ = striped(n=12)
    fusion = FactorFusion().fit(images[:20])
    found = _classifier_images.FactorFeatures.of(fusion)
    np.testing.assert_allclose(found(images), fusion.transform(images), rtol=0, atol=1e-13)
    assert found.n_features == fusion.transform(images).shape[1]
    assert found.image_shape == (8, 10, 3)


# the choice


def written_out(
    images: Array, labels: Array, n_folds: int, seed: int, objects: Array | None = None
) -> Validation:
    """Cross-validation of every kernel by itself, by scikit-learn alone."""
    n, k = len(labels), len(set(labels))
    kind = StratifiedKFold if objects is None else StratifiedGroupKFold
    dealt = kind(n_folds, shuffle=True, random_state=seed)
    folds = list(dealt.split(np.zeros(n), labels, objects))
    said = {}
    for gamma, C in KERNELS:
        for number, (known, new) in enumerate(folds):
            pipe = make_pipeline(FactorFusion(), SVC(gamma=gamma, C=C, break_ties=True))
            said[gamma, C, number] = pipe.fit(images[known], labels[known]).predict(images[new])
    smoothest_first = sorted(KERNELS, key=lambda kernel: kernel[::-1])
    right = {key: int(np.sum(labels[folds[key[2]][1]] == found)) for key, found in said.items()}
    predicted = np.zeros(n, int)
    for number, (_, new) in enumerate(folds):
        others = [f for f in range(n_folds) if f != number]
        best = max(smoothest_first, key=lambda kernel: sum(right[*kernel, f] for f in others))
        predicted[new] = said[*best, number]
    totals = {kernel: sum(right[*kernel, f] for f in range(n_folds)) for kernel in smoothest_first}
    gamma, C = max(totals, key=lambda kernel: totals[kernel])
    confusion = confusion_matrix(labels, predicted, labels=range(k))
    return Validation(gamma, C, n_folds, 0, confusion, 0.0, 1.0)


@pytest.mark.parametrize(("n_classes", "n_folds", "seed"), [(2, 2, 0), (3, 5, 1)])
def test_the_choice_is_that_of_cross_validation_written_out(
    n_classes: int, n_folds: int, seed: int
) -> None:
    images, names = blurred(n_classes, n=12, seed=seed)
    classes = sorted(set(names))
    expected = written_out(images, np.array([classes.index(n) for n in names]), n_folds, seed)
    found = ImageClassifier(n_folds, seed).fit(images, names).validation_
    assert (found.gamma, found.C, found.n_folds) == (expected.gamma, expected.C, n_folds)
    np.testing.assert_array_equal(found.confusion, expected.confusion)
    assert found.accuracy == expected.accuracy
    assert 0 < expected.accuracy < 1, "a case that is all right or all wrong shows little"


def test_accuracy_and_its_error() -> None:
    found = Validation(1.0, 1.0, 5, 0, np.array([[8, 2], [1, 9]]), 0.1, 1.0)
    assert (found.n_images, found.accuracy) == (20, 0.85)
    error = _classifier_choice._standard_error
    is_right = np.arange(20) >= 3
    assert error(is_right, None) == pytest.approx(np.sqrt(18 / 22 * 4 / 22 / 22))
    assert error(np.full(20, True), None) > 0.04
    # Five objects of four images each, all right or all wrong: five trials, of which one is wrong.
    whole = error(np.repeat([False, True, True, True, True], 4), np.repeat(np.arange(5), 4))
    assert whole == pytest.approx(error(np.array([False, True, True, True, True]), None))
    # Mistakes that have nothing to do with the objects: as for images, but for the two that are added.
    rng = np.random.default_rng(0)
    is_right, objects = rng.random(4000) < 0.8, rng.integers(1000, size=4000)
    objects = np.unique(objects, return_inverse=True)[1]
    assert error(is_right, objects) == pytest.approx(error(is_right, None), rel=0.1)


# objects


def same_and_new(n_objects: int, n_views: int) -> tuple[Array, list[str], Array]:
    """Images of two classes that only their objects, each with a pattern of its own, tell apart."""
    rng = np.random.default_rng(3)
    objects = np.repeat(np.arange(n_objects), n_views)
    images = rng.random((n_objects, 6, 6, 1))[objects] + 0.1 * rng.random((len(objects), 6, 6, 1))
    return images, [("heads", "tails")[k % 2] for k in objects], objects


def test_images_of_an_object_are_held_back_together() -> None:
    images, names, objects = same_and_new(n_objects=24, n_views=5)
    by_image = ImageClassifier().fit(images, names).validation_
    by_object = ImageClassifier().fit(images, names, objects).validation_
    assert (by_image.n_objects, by_object.n_objects) == (0, 24)
    # Seen before, an object is known by its pattern; a new one can only be guessed.
    assert by_image.accuracy > 0.95
    assert abs(by_object.accuracy - 0.5) < 3 * by_object.standard_error
    # All views of an object are guessed alike: these are as many trials as objects.
    assert by_object.standard_error > 0.08
    labels = np.array([name == "tails" for name in names]).astype(int)
    expected = written_out(images, labels, 5, 0, objects)
    assert (by_object.gamma, by_object.C) == (expected.gamma, expected.C)
    np.testing.assert_array_equal(by_object.confusion, expected.confusion)


def test_objects_are_told_by_name_within_their_class() -> None:
    images, names, objects = same_and_new(n_objects=8, n_views=4)
    expected = ImageClassifier(3).fit(images, names, objects).validation_
    # Numbered anew in each class: object 0 of heads is not object 0 of tails.
    for same in (objects // 2, [f"no. {k // 2}" for k in objects]):
        found = ImageClassifier(3).fit(images, names, same).validation_
        assert (found.n_objects, found.n_folds) == (8, 3)
        np.testing.assert_array_equal(found.confusion, expected.confusion)
    labels = np.array([name == "tails" for name in names]).astype(int)
    data = ImageSet(images, labels, ("heads", "tails"), objects // 2, tuple(names), "made")
    np.testing.assert_array_equal(
        ImageClassifier(3).fit(data).validation_.confusion, expected.confusion
    )


@pytest.mark.parametrize("objects", [None, np.arange(32), [k // 4 % 7 for k in range(32)]])
def test_without_two_objects_of_each_class_images_are_held_back(objects: Any) -> None:
    images, names, _ = same_and_new(n_objects=8, n_views=4)
    if isinstance(objects, list):
        names = ["heads" if k == 6 else "tails" for k in objects]
    found = ImageClassifier(2).fit(images, names, objects).validation_
    expected = ImageClassifier(2).fit(images, names).validation_
    assert found.n_objects == 0
    np.testing.assert_array_equal(found.confusion, expected.confusion)


def test_folds_of_objects_are_lowered_to_the_class_with_fewest() -> None:
    rng = np.random.default_rng(0)
    for _ in range(6):
        n_objects = rng.integers(2, 5, size=3)
        n_views = [rng.integers(1, 12, size=n) for n in n_objects]
        labels = np.repeat(np.arange(3), [n.sum() for n in n_views])
        objects = np.concatenate([np.repeat(np.arange(len(n)), n) for n in n_views])
        if len(objects) == n_objects.sum():
            continue
        images = rng.random((len(labels), 4, 4, 1))
        names = [f"class {label}" for label in labels]
        if np.bincount(labels).min() > 1:
            found = ImageClassifier().fit(images, names, objects).validation_
            assert found.n_folds == n_objects.min()
            assert found.confusion.sum(axis=1).tolist() == np.bincount(labels).tolist()


def test_sharpness_makes_the_true_classes_most_probable() -> None:
    rng = np.random.default_rng(0)
    n, true = 2000, 2.5
    leads = rng.standard_normal((n, 4))
    p = np.exp(true * leads)
    p /= p.sum(axis=1, keepdims=True)
    labels = np.array([rng.choice(4, p=row) for row in p])
    found = _classifier_choice._sharpness(leads, labels)
    assert abs(found / true - 1) < 0.15

    def likelihood(sharpness: float) -> float:
        scores = np.exp(sharpness * leads)
        logs = np.log(scores / scores.sum(axis=1, keepdims=True))
        total = 0.0
        for row, label in zip(logs, labels, strict=True):
            doubted = np.delete(row, label)
            total += (1 - 1 / (n + 2)) * row[label] + doubted.sum() / (n + 2) / 3
        return total

    assert likelihood(found) > max(likelihood(0.95 * found), likelihood(1.05 * found))


def test_few_images_prove_no_certainty() -> None:
    images, names = striped(n=5)
    classifier = ImageClassifier().fit(images, names)
    assert classifier.validation_.accuracy == 1
    assert classifier.probabilities(images).max() < 0.999


@pytest.mark.large
def test_labels_without_meaning_are_told_by_chance_only() -> None:
    rng = np.random.default_rng(0)
    found, n_each = [], 30
    for seed in range(16):
        images = rng.random((2 * n_each, 6, 6, 1))
        names = rng.permutation(["heads", "tails"] * n_each).tolist()
        found.append(ImageClassifier(seed=seed).fit(images, names).validation_.accuracy)
    error = np.std(found, ddof=1) / 4
    assert abs(np.mean(found) - 0.5) < 3 * error
    assert error < 0.03


# the estimator


def test_predictions_are_right_and_a_value_of_three_parts() -> None:
    images, names = striped(n=20)
    kept = images.copy()
    classifier = ImageClassifier().fit(images[::2], names[::2])
    assert classifier.predict(images[1::2]).tolist() == names[1::2]
    assert classifier.classes_.tolist() == sorted(set(names))
    assert classifier.image_shape_ == (8, 10, 3)
    assert classifier.score(images, names) == 1
    margins, probabilities = classifier.margins(images), classifier.probabilities(images)
    assert margins.shape == probabilities.shape == (len(images), 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(margins.argmax(axis=1), probabilities.argmax(axis=1))
    np.testing.assert_array_equal(images, kept)


def test_the_fitted_machine_is_that_of_a_pipeline() -> None:
    images, names = blurred(3, n=30)
    classifier = ImageClassifier().fit(images[:60], names[:60])
    svc = SVC(gamma=classifier.validation_.gamma, C=classifier.validation_.C, break_ties=True)
    pipe = make_pipeline(FactorFusion(), svc).fit(images[:60], names[:60])
    assert classifier.predict(images).tolist() == pipe.predict(images).tolist()
    np.testing.assert_allclose(
        classifier.margins(images), pipe.decision_function(images), atol=1e-3
    )


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_images_in_any_range_and_dtype_give_one_prediction(dtype: str) -> None:
    images, names = striped(n=8)
    whole = np.round(255 * images)
    classifier = ImageClassifier().fit(whole, names)
    np.testing.assert_allclose(
        classifier.margins(whole.astype(dtype)), classifier.margins(whole / 255), atol=1e-4
    )


def test_an_image_alone_is_what_it_is_among_others() -> None:
    images, names = blurred(3, n=10)
    classifier = ImageClassifier().fit(images, names)
    alone = np.concatenate([classifier.margins(image[None]) for image in images])
    np.testing.assert_allclose(alone, classifier.margins(images), atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 1), (16, 4, 5)])
def test_images_of_any_shape(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).random((12, *shape))
    classifier = ImageClassifier(2).fit(images, ["a", "b"] * 6)
    assert set(classifier.predict(images)) <= {"a", "b"}
    assert np.all(np.isfinite(classifier.probabilities(images)))


@pytest.mark.parametrize("value", [0.0, 1.0, 1e100, 1e-200])
def test_images_that_are_all_alike_do_no_harm(value: float) -> None:
    classifier = ImageClassifier().fit(np.full((8, 4, 4, 3), value), ["a", "b"] * 4)
    assert classifier.validation_.accuracy <= 0.5
    assert np.all(np.isfinite(classifier.margins(np.full((2, 4, 4, 3), value))))


def test_folds_are_lowered_to_the_smallest_class() -> None:
    images, names = striped(n=6)
    few = [k for k, name in enumerate(names) if name != "lying" or names[:k].count("lying") < 2]
    classifier = ImageClassifier(folds=5).fit(images[few], [names[k] for k in few])
    assert classifier.validation_.n_folds == 2
    assert classifier.validation_.confusion.sum(axis=1).tolist() == [6, 2, 6]


def test_an_image_set_brings_its_labels() -> None:
    images, names = striped(n=6)
    classes = ("upright", "lying", "none here", "flat")
    labels = np.array([classes.index(name) for name in names])
    data = ImageSet(images, labels, classes, labels, tuple(names), "made")
    classifier = ImageClassifier().fit(data)
    assert classifier.classes_.tolist() == ["flat", "lying", "upright"]
    assert classifier.predict(images).tolist() == names


def test_the_seed_fixes_everything() -> None:
    images, names = blurred(3, n=12)
    a, b, other = (ImageClassifier(seed=s).fit(images, names).validation_ for s in (3, 3, 4))
    assert (a.gamma, a.C, a.sharpness) == (b.gamma, b.C, b.sharpness)
    np.testing.assert_array_equal(a.confusion, b.confusion)
    assert np.any(a.confusion != other.confusion) or a.sharpness != other.sharpness


def test_it_is_cloned_and_cross_validated_by_scikit_learn() -> None:
    images, names = striped(n=6)
    classifier = clone(ImageClassifier(folds=3, seed=1))
    assert repr(classifier) == "ImageClassifier(folds=3, seed=1)"
    assert cross_val_score(classifier, images, np.array(names), cv=2).tolist() == [1, 1]


def test_progress_is_shown_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    images, names = striped(n=4)
    ImageClassifier(folds=2).fit(images, names)
    assert capsys.readouterr() == ("", "")
    ImageClassifier(folds=2, progress=True).fit(images, names)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("Cross-validating 15 kernels on 2 folds: done after 30 steps\n")


@pytest.mark.large
def test_eth80_is_predicted_as_expected() -> None:
    images, names = eth80()
    order = np.random.default_rng(0).permutation(len(images))
    known, new = order[:656], order[656:]
    classifier = ImageClassifier().fit(images[known], [names[k] for k in known])
    true = np.array([names[k] for k in new])
    right = classifier.predict(images[new]) == true
    expected = classifier.validation_
    assert np.mean(right) > 0.92
    assert abs(np.mean(right) - expected.accuracy) < 3 * expected.standard_error
    probability = classifier.probabilities(images[new]).max(axis=1)
    for low, high in [(0, 0.7), (0.7, 0.9), (0.9, 0.97), (0.97, 1.1)]:
        some = (probability >= low) & (probability < high)
        error = 3 * np.sqrt(0.25 / some.sum()) + 0.03
        assert abs(np.mean(right[some]) - np.mean(probability[some])) < error
    # The machine is scikit-learn's on all of them.
    svc = SVC(gamma=expected.gamma, C=expected.C, break_ties=True)
    pipe = make_pipeline(FactorFusion(), svc).fit(images[known], [names[k] for k in known])
    np.testing.assert_array_equal(pipe.predict(images[new]), classifier.predict(images[new]))


# messages

IMAGES = np.random.default_rng(0).random((4, 3, 3, 1))
NAMES = ["a", "b"] * 2
FITTED = ImageClassifier(2).fit(IMAGES, NAMES)
SHAPE = (
    "Images must be an array of real numbers of shape (images, height, width, channels); one of "
)
HOW = "A single image is image[None], grey ones are images[..., None]."
LABELS = "labels must be texts of valid Unicode, not empty and without the character NUL; "


def fit(
    images: Any = IMAGES, labels: Any = NAMES, objects: Any = None, **parameters: Any
) -> Callable[[], Any]:
    return lambda: ImageClassifier(**parameters).fit(images, labels, objects)


def with_entry(value: float) -> Array:
    images = np.random.default_rng(0).random((4, 3, 3, 1))
    images[2, 1, 1] = value
    return images


LARGE = np.broadcast_to(np.zeros(1), (40_000, 2, 2, 1))
DATA = ImageSet(IMAGES, np.array([0, 1, 0, 1]), ("a", "b"), np.arange(4), tuple("wxyz"), "made")
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (fit([[1.0], [1.0, 2.0]]), "Images must be of one size, as one array; lists of different lengths "
     "came."),
    (fit(IMAGES[0]), f"{SHAPE}shape (3, 3, 1) and dtype float64 came. {HOW}"),
    (fit(IMAGES * 1j), f"{SHAPE}shape (4, 3, 3, 1) and dtype complex128 came. {HOW}"),
    (fit(IMAGES > 0), f"{SHAPE}shape (4, 3, 3, 1) and dtype bool came. {HOW}"),
    (fit("images"), f"{SHAPE}shape () and dtype <U6 came. {HOW}"),
    (fit(IMAGES[:0], []), "There must be an image at least, of 1 to 1024 pixels a side; an array of "
     "shape (0, 3, 3, 1) came."),
    (fit(np.zeros((4, 2, 1025, 1))), "There must be an image at least, of 1 to 1024 pixels a side; an "
     "array of shape (4, 2, 1025, 1) came."),
    (lambda: FITTED.predict(IMAGES[:, :2]), "Images must have the height, width and channels (3, 3, 1) "
     "of those that were fitted; (2, 3, 1) came. Load them in that size."),
    *((fit(with_entry(value)), "Images must hold finite numbers of at most 1e+100; 1 do not, the first "
       "is image 2.") for value in (np.nan, np.inf, -np.inf, -1e101)),
    (fit(labels=None), "labels must be a sequence of texts, one for each image; NoneType came."),
    (fit(labels="abab"), "labels must be a sequence of texts, one for each image; str came."),
    (fit(labels=NAMES[:3]), "labels must be one for each image: 4 images and 3 labels came."),
    (fit(labels=["a", 1, "a", "b"]), f"{LABELS}label 1 is 1."),
    (fit(labels=["a", "b", "", "b"]), f"{LABELS}label 2 is ''."),
    (fit(labels=["a", "b", "a", "b\0"]), f"{LABELS}label 3 is 'b\\x00'."),
    (fit(labels=["\ud800", "b", "a", "b"]), f"{LABELS}label 0 is '\\ud800'."),
    (fit(DATA, NAMES), "labels and objects must not be given with an ImageSet, which has its own."),
    (fit(DATA, None, [1, 2, 3, 4]),
     "labels and objects must not be given with an ImageSet, which has its own."),
    (fit(labels=["pear"] * 4), "There must be images of two classes at least; all are of class "
     "'pear'. Add images of another class."),
    (fit(labels=["a", "b", "c", "b"]), "Each class must have two images at least, so that some can be "
     "held back to see how well they are predicted; there is one of 'a', and of 1 other class. Add "
     "images, or leave the class out."),
    (fit(labels=["a", "b", "c", "d"]), "Each class must have two images at least, so that some can be "
     "held back to see how well they are predicted; there is one of 'a', and of 3 other classes. Add "
     "images, or leave the class out."),
    (fit(labels=["a", "b", "b", "b"]), "Each class must have two images at least, so that some can be "
     "held back to see how well they are predicted; there is one of 'a'. Add images, or leave the class "
     "out."),
    (fit(objects="abcd"), "objects must be a sequence of texts or integers, one for each image; str "
     "came."),
    (fit(objects=[1, 2, 3]), "objects must be one for each image: 4 images and 3 objects came."),
    (fit(objects=[1, 2, 3, 4.5]), "objects must be texts or integers; object 3 is 4.5."),
    (fit(folds=1), "folds must be an integer from 2 to 1000; 1 came."),
    (fit(folds=2.0), "folds must be an integer from 2 to 1000; 2.0 came."),
    (fit(folds=True), "folds must be an integer from 2 to 1000; True came."),
    (fit(seed=-1), "seed must be an integer from 0 to 4294967295; -1 came."),
    (fit(seed=2**32), "seed must be an integer from 0 to 4294967295; 4294967296 came."),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_messages(number: int) -> None:
    call, message = ERRORS[number]
    check_message(call, kind_of(message), message)


def test_every_message_is_tested() -> None:
    modules = (_classifier, _classifier_images, _classifier_choice, machines)
    files = [Path(str(module.__file__)) for module in modules]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not unreached(files, [call for call, _ in ERRORS])


def test_more_images_than_fit_into_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tnsum._memory.available_memory", lambda: 2**30)
    check_message(fit(LARGE, NAMES * 10_000), NetworkError,
                  "The distances of 40000 images from each other must fit into memory: it needs 35.8 "
                  "GiB, 1.0 GiB are free. Fit fewer.")  # fmt: skip


def test_nothing_is_predicted_or_saved_before_fit(tmp_path: Path) -> None:
    new = ImageClassifier()
    calls = [lambda: new.predict(IMAGES), lambda: new.margins(IMAGES),
             lambda: new.probabilities(IMAGES), lambda: new.save(tmp_path / "x")]  # fmt: skip
    for call in calls:
        with pytest.raises(NotFittedError):
            call()
    assert list(tmp_path.iterdir()) == []
