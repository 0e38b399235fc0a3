"""Classifier files: what comes back, what is refused and why, and what random damage does."""

import json
import os
import random
import resource
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import tnsum
from classifier_cases import blurred, striped
from fuzz_storage import put_together, taken_apart
from raising import unreached
from tnsum import NetworkError
from tnsum.fusion import _classifier_files
from tnsum.fusion._classifier import ImageClassifier
from tnsum.fusion._classifier_files import check_writable, load_classifier

Array = np.ndarray[Any, Any]
IMAGES, NAMES = blurred(3, n=8)


@cache
def fitted() -> ImageClassifier:
    return ImageClassifier(folds=3, seed=7).fit(IMAGES, NAMES)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a file that is right."""
    path = tmp_path_factory.mktemp("classifier") / "model.safetensors"
    fitted().save(path)
    return path.read_bytes()


# what comes back


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_is_saved_comes_back(n_classes: int, tmp_path: Path) -> None:
    images, names = blurred(n_classes, n=8)
    classifier = ImageClassifier(folds=3, seed=7).fit(images, names)
    classifier.save(tmp_path / "model.safetensors")
    again = load_classifier(str(tmp_path / "model.safetensors"))
    assert again.classes_.tolist() == classifier.classes_.tolist()
    assert again.image_shape_ == classifier.image_shape_
    assert (again.folds, again.seed, again.progress) == (3, 7, False)
    np.testing.assert_array_equal(again.margins(images), classifier.margins(images))
    np.testing.assert_array_equal(again.probabilities(images), classifier.probabilities(images))
    a, b = again.validation_, classifier.validation_
    assert (a.gamma, a.C, a.n_folds, a.sharpness) == (b.gamma, b.C, b.n_folds, b.sharpness)
    assert (a.n_objects, a.standard_error) == (b.n_objects, b.standard_error)
    np.testing.assert_array_equal(a.confusion, b.confusion)
    assert a.confusion.dtype == b.confusion.dtype
    assert again.machine_.counts == classifier.machine_.counts
    # What was loaded can be saved again, to the same bytes.
    again.save(tmp_path / "again.safetensors")
    files = [tmp_path / "model.safetensors", tmp_path / "again.safetensors"]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_names_of_any_kind_come_back(tmp_path: Path) -> None:
    images, names = striped(n=4)
    renamed = {"flat": "\u6838 \U0001f34e", "lying": "\x1b[31m\n", "upright": " [bold] "}
    classifier = ImageClassifier(2).fit(images, [renamed[name] for name in names])
    classifier.save(tmp_path / "model")
    again = load_classifier(tmp_path / "model")
    assert set(again.classes_.tolist()) == set(renamed.values())


def test_the_file_is_a_safetensors_file_without_code(tmp_path: Path) -> None:
    fitted().save(tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        description = json.loads(file.metadata()["tnsum"])
        vectors = file.get_tensor("vectors")
        names = sorted(file.keys())
    assert description["kind"] == "classifier"
    assert description["classes"] == ["class 0", "class 1", "class 2"]
    np.testing.assert_array_equal(vectors, fitted().machine_.vectors)
    assert names == ["coefficients", "confusion", "factor0", "factor1", "factor2", "intercepts",
                     "scales", "vectors"]  # fmt: skip


def test_the_network_loader_says_what_it_is(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(whole)
    with pytest.raises(NetworkError, match="classifier"):
        tnsum.load(tmp_path / "model")


def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NetworkError, match="cannot be saved: No space left on device"):
        fitted().save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_what_can_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    for name in ("old", "new"):
        check_writable(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"
    for path, reason in [
        (tmp_path, "it is no file but a directory or a device. Give the name of a file."),
        (tmp_path / "no" / "x", "No such file or directory"),
        (tmp_path / "old" / "x", "Not a directory"),
    ]:
        with pytest.raises(NetworkError) as raised:
            check_writable(path)
        assert str(raised.value) == f"{str(path)!r} cannot be saved: {reason}"


# what is refused

Change = Callable[[dict[str, Any], dict[str, Any]], Any]


def changed(data: bytes, change: Change) -> bytes:
    """The file after a change to its header and description."""
    header, rest = taken_apart(data)
    description = json.loads(header["__metadata__"]["tnsum"])
    change(header, description)
    if "tnsum" in header["__metadata__"]:
        header["__metadata__"]["tnsum"] = json.dumps(description)
    return put_together(header, rest)


def described(**new: Any) -> Callable[[bytes], bytes]:
    return lambda data: changed(data, lambda _, description: description.update(new))


def without(key: str) -> Callable[[bytes], bytes]:
    return lambda data: changed(data, lambda _, description: description.pop(key))


def entry(name: str, **new: Any) -> Callable[[bytes], bytes]:
    return lambda data: changed(data, lambda header, _: header[name].update(new))


def renamed(old: str, new: str) -> Callable[[bytes], bytes]:
    return lambda data: changed(data, lambda header, _: header.update({new: header.pop(old)}))


def with_number(name: str, value: float) -> Callable[[bytes], bytes]:
    """The file with another number at the beginning of a tensor."""

    def change(data: bytes) -> bytes:
        header, rest = taken_apart(data)
        begin = header[name]["data_offsets"][0]
        number = np.array(value, "<f8").tobytes()
        return put_together(header, rest[:begin] + number + rest[begin + 8 :])

    return change


CLASSES = "its classes must be two texts or more, sorted and all different; "
SHAPE = "its image_shape must be three integers from 1 to 1024; "
COUNTS = "its support_vectors must be 3 positive integers, one for each class; "
CHANGED = "its contents are not those that were saved. Fit the classifier again"
LARGE = "must hold finite numbers of at most 2**60; some are not"
COUNTED = "tensor 'confusion' must count images; some entries are no such numbers"
Row = tuple[Callable[[bytes], bytes], str]
REFUSED: dict[str, Row] = {
    "empty": (lambda _: b"", "it has 0 bytes, too few for a safetensors file"),
    "cut": (lambda data: data[:-8],
            "its header asks for {all} bytes of data, {less} are there: it was cut"),
    "appended": (lambda data: data + b"more",
                 "its header asks for {all} bytes of data, {more} are there: it has something appended"),
    "not ours": (lambda data: changed(data, lambda header, _: header["__metadata__"].clear()),
                 "it is a safetensors file that tnsum did not write"),
    "no object": (lambda data: put_together({"__metadata__": {"tnsum": "[]"}}),
                  "its description must be a JSON object"),
    "no JSON": (lambda data: put_together({"__metadata__": {"tnsum": "{"}}),
                "its description is not valid JSON (Expecting property name enclosed in double quotes: "
                "line 1 column 2 (char 1))"),
    "another kind": (described(kind="network"),
                     "it must hold a classifier; 'network' came. tnsum.load reads others"),
    "no kind": (without("kind"), "it must hold a classifier; None came. tnsum.load reads others"),
    "newer": (described(version=2),
              "it has format version 2, this tnsum reads up to 1. Install a newer tnsum."),
    "no version": (without("version"), "its format version must be a positive integer; None came"),
    "version true": (described(version=True),
                     "its format version must be a positive integer; True came"),
    "no classes": (without("classes"), f"{CLASSES}None came"),
    "one class": (described(classes=["a"]), f"{CLASSES}['a'] came"),
    "classes twice": (described(classes=["a", "a", "b"]), f"{CLASSES}['a', 'a', 'b'] came"),
    "classes unsorted": (described(classes=["b", "a", "c"]), f"{CLASSES}['b', 'a', 'c'] came"),
    "numbers as classes": (described(classes=[1, 2, 3]), f"{CLASSES}[1, 2, 3] came"),
    "half a character": (described(classes=["a", "b", "\ud800"]),
                         f"{CLASSES}['a', 'b', '\\ud800'] came"),
    "NUL": (described(classes=["a", "a\0", "b"]), f"{CLASSES}['a', 'a\\x00', 'b'] came"),
    "no shape": (without("image_shape"), f"{SHAPE}None came"),
    "two sizes": (described(image_shape=[6, 5]), f"{SHAPE}[6, 5] came"),
    "huge images": (described(image_shape=[10**6, 10**6, 3]), f"{SHAPE}[1000000, 1000000, 3] came"),
    "no pixels": (described(image_shape=[0, 5, 2]), f"{SHAPE}[0, 5, 2] came"),
    "size true": (described(image_shape=[True, 5, 2]), f"{SHAPE}[True, 5, 2] came"),
    "no counts": (without("support_vectors"), f"{COUNTS}None came"),
    "a count too few": (described(support_vectors=[1, 2]), f"{COUNTS}[1, 2] came"),
    "a class without": (described(support_vectors=[1, 0, 2]), f"{COUNTS}[1, 0, 2] came"),
    "many vectors": (described(support_vectors=[2**31] * 3),
                     "tensor 'vectors' must be F64 of shape (6442450944, 39); F64 of shape ({m}, 39) "
                     "came"),
    "no gamma": (without("gamma"), "its gamma must be a number from 1e-12 to 1e+12; None came"),
    "gamma text": (described(gamma="1"), "its gamma must be a number from 1e-12 to 1e+12; '1' came"),
    "gamma true": (described(gamma=True), "its gamma must be a number from 1e-12 to 1e+12; True came"),
    "gamma negative": (described(gamma=-1.0),
                       "its gamma must be a number from 1e-12 to 1e+12; -1.0 came"),
    "gamma long": (described(gamma=10**30), "its gamma must be a number from 1e-12 to 1e+12; "
                   "1000000000000000000000000000000 came"),
    "C zero": (described(C=0), "its C must be a number from 1e-12 to 1e+12; 0 came"),
    "sharpness": (described(sharpness=1e9), "its sharpness must be a number from 1e-06 to 1e+06; "
                  "1000000000.0 came"),
    "power": (described(power=[]), "its power must be a number from 1e-06 to 1000; [] came"),
    "folds": (described(folds=1), "its folds must be an integer from 2 to 1000; 1 came"),
    "objects": (described(objects=-1), "its objects must be an integer from 0 to 2147483648; -1 came"),
    "standard_error": (described(standard_error=2),
                       "its standard_error must be a number from 0 to 1; 2 came"),
    "folds a fraction": (described(folds=2.5), "its folds must be an integer from 2 to 1000; 2.5 came"),
    "seed": (described(seed=-1), "its seed must be an integer from 0 to 4294967295; -1 came"),
    "another name": (renamed("scales", "sizes"), "tensor 'scales' is missing"),
    "a tensor more": (lambda data: changed(data, lambda header, _: header.update(
        more={"dtype": "F64", "shape": [0], "data_offsets": [0, 0]})),
        "it has 9 tensors; a classifier has 8"),
    "no factor": (renamed("factor1", "x"),
                  "tensor 'factor1' must have shape (5, rank) with a rank of 1 to 5; none came"),
    "a flat factor": (entry("factor0", shape=[36]),
                      "tensor 'factor0' must have shape (6, rank) with a rank of 1 to 6; (36,) came"),
    "a wide factor": (entry("factor0", shape=[4, 9]),
                      "tensor 'factor0' must have shape (6, rank) with a rank of 1 to 6; (4, 9) came"),
    "other images": (described(image_shape=[7, 5, 2]),
                     "tensor 'factor0' must be F64 of shape (7, 6); F64 of shape (6, 6) came"),
    "single precision": (entry("confusion", dtype="F32", shape=[3, 6]),
                         "tensor 'confusion' must be F64 of shape (3, 3); F32 of shape (3, 6) came"),
    **{f"{value} in {name}": (with_number(name, value), f"tensor {name!r} {LARGE}")
       for name, value in [("vectors", np.nan), ("factor2", np.inf), ("scales", -1e300),
                           ("coefficients", -np.inf), ("intercepts", 2e18), ("confusion", np.nan)]},
    "part of an image": (with_number("confusion", 0.5), COUNTED),
    "less than none": (with_number("confusion", -1.0), COUNTED),
    "another number": (with_number("vectors", 0.5), CHANGED),
    "another seed": (described(seed=99), CHANGED),
    "something more": (described(more=1), CHANGED),
    "no digest": (
        lambda data: changed(data, lambda header, _: header["__metadata__"].pop("sha256")),
        CHANGED,
    ),
}  # fmt: skip


def filled(message: str, data: bytes) -> str:
    """A message with the numbers of this file."""
    n = len(taken_apart(data)[1])
    m = len(fitted().machine_.vectors)
    numbers = {"all": n, "less": n - 8, "more": n + 4, "m": m}
    for key, value in numbers.items():
        message = message.replace(f"{{{key}}}", str(value))
    return message


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_not_right_is_refused(case: str, whole: bytes, tmp_path: Path) -> None:
    change, reason = REFUSED[case]
    path = tmp_path / "model"
    path.write_bytes(change(whole))
    with pytest.raises(NetworkError) as raised:
        load_classifier(path)
    assert str(raised.value) == f"{str(path)!r} cannot be loaded: {filled(reason, whole)}"


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    for path, message in [
        (tmp_path / "no", f"{str(tmp_path / 'no')!r} cannot be loaded: No such file or directory"),
        (
            tmp_path,
            f"{str(tmp_path)!r} cannot be loaded: it is a directory or a device, not a file",
        ),
        (3, "The path of a file must come first, as text or pathlib.Path; int came."),
    ]:
        with pytest.raises(NetworkError) as raised:
            load_classifier(path)  # type: ignore[arg-type]
        assert str(raised.value) == message


def test_every_message_is_tested(whole: bytes, tmp_path: Path) -> None:
    def causes(change: Callable[[bytes], bytes]) -> Callable[[], None]:
        def call() -> None:
            (tmp_path / "model").write_bytes(change(whole))
            try:
                load_classifier(tmp_path / "model")
            except NetworkError as error:
                raise error.__cause__ or error from None

        return call

    calls = [causes(change) for change, _ in REFUSED.values()]
    left = unreached([Path(_classifier_files.__file__)], calls)
    source = Path(_classifier_files.__file__).read_text().splitlines()
    # That one never leaves its function.
    assert [source[line - 1].strip() for _, line in left] == ["raise _NothingWrittenError"]


def test_refusing_takes_no_memory(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    huge = changed(whole, lambda _, description: description.update(support_vectors=[2**30] * 3))
    path.write_bytes(huge)
    tracemalloc.start()
    try:
        with pytest.raises(NetworkError):
            load_classifier(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20


# random damage

VALUES: list[Any] = [0, 1, -1, 2, 3, 10**6, 2**31, 2**63, 10**30, 0.5, 1e-300, 1e300, True, None, "",
                     "x", [], {}, [1], [[]], ["a", "b"], [2**40] * 3, "\ud800", "F32"]  # fmt: skip


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A file with something wrong in it, or nothing: bytes, length, or values of the header."""
    kind = rng.choice(["bytes", "bytes of the header", "cut", "piece", "value", "value", "tensor"])
    if kind.startswith("bytes"):
        found = bytearray(data)
        most = len(data) if kind == "bytes" else 8 + int.from_bytes(data[:8], "little")
        for _ in range(rng.choice([1, 1, 2, 8])):
            found[rng.randrange(most)] = rng.choice([0, 0x20, 0x31, 0x7F, 0xFF, rng.randrange(256)])
        return bytes(found)
    if kind == "cut":
        return data[: rng.randrange(len(data))]
    if kind == "piece":
        a, b = sorted(rng.randrange(len(data)) for _ in range(2))
        return rng.choice([data[:a] + data[b:], data[:b] + data[a:], data + data[a:b]])

    def change(header: dict[str, Any], description: dict[str, Any]) -> None:
        if kind == "value":
            key = rng.choice(list(description))
            old = description[key]
            if isinstance(old, list) and rng.random() < 0.5:
                old[rng.randrange(len(old))] = rng.choice(VALUES)
            else:
                description[key] = rng.choice(VALUES)
        else:
            tensor = header[rng.choice([name for name in header if name != "__metadata__"])]
            key = rng.choice(list(tensor))
            old = tensor[key]
            if isinstance(old, list) and rng.random() < 0.7:
                old[rng.randrange(len(old))] = rng.choice(VALUES)
            else:
                tensor[key] = rng.choice([old[::-1], *VALUES])

    return changed(data, change)


def outcomes(cases: range, whole: bytes, folder: Path) -> Counter[str]:
    """How many damaged files are refused, and how many predict; anything else ends it."""
    counts: Counter[str] = Counter()
    for number in cases:
        path = folder / "damaged"
        path.unlink(missing_ok=True)
        path.write_bytes(damaged(random.Random(number), whole))
        try:
            classifier = load_classifier(path)
        except NetworkError as error:
            # A reason of our own, not an error of NumPy or Python that was merely wrapped.
            is_told = str(error).startswith(f"{str(path)!r} cannot be loaded: ")
            is_own = isinstance(error.__cause__, NetworkError | OSError)
            counts["refused" if is_told and is_own else f"refused by accident: {number}"] += 1
            continue
        images = np.random.default_rng(0).random((2, *classifier.image_shape_))
        assert set(classifier.predict(images)) <= set(classifier.classes_), number
        assert np.all(np.isfinite(classifier.probabilities(images))), number
        counts["predicts"] += 1
    return counts


def test_damaged_files_are_refused_or_predict(whole: bytes, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts = outcomes(range(2000), whole, tmp_path)
    assert set(counts) <= {"refused", "predicts"}
    assert counts["refused"] > 1900
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
