"""`tnsum fit`, `tnsum predict`, `tnsum info` of a classifier: what they print, write, and refuse."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image

from classifier_cases import blurred, striped
from tnsum.cli import main
from tnsum.cli._description import confusion_table
from tnsum.cli.predict import _best_first
from tnsum.datasets import load_image_folder
from tnsum.fusion._classifier import ImageClassifier
from tnsum.fusion._classifier_files import load_classifier

Run = Callable[..., tuple[int, str, str]]


def write_images(folder: Path, n: int, seed: int) -> None:
    """A folder for each of three classes, with `n` images in each."""
    images, names = striped(n, seed)
    for number, (image, name) in enumerate(zip(images, names, strict=True)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        pixels = np.uint8(255 * np.clip(image[:, :8], 0, 1))
        Image.fromarray(pixels).save(folder / name / f"{number:02}.png")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images to fit, others to predict, and a model."""
    root = tmp_path_factory.mktemp("images")
    write_images(root / "train", 6, seed=0)
    write_images(root / "new", 2, seed=1)
    ImageClassifier(folds=3).fit(load_image_folder(root / "train", 8)).save(root / "model")
    return root


@pytest.fixture
def run(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """A function that runs the command beside these: exit code, output, error output."""
    monkeypatch.chdir(tmp_path)
    for name in ("train", "new", "model"):
        Path(name).symlink_to(made / name)

    def run_command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(arguments)
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out, captured.err

    return run_command


# fit

UNKNOWN = (
    "accuracy for new objects: not known; folders class/object/image, with two or more objects of each "
    "class, would tell"
)
TABLE = """\
   class    images    right  1  2  3
1  flat          6  100.0 %  6  .  .
2  lying         6  100.0 %  .  6  .
3  upright       6  100.0 %  .  .  6
Numbers in columns say how many images were taken for that class, when held back.
"""


def test_fit_prints_what_to_expect_and_writes_a_model(run: Run) -> None:
    code, out, err = run("fit", "train", "-o", "out", "--size", "8", "--folds", "3", "--seed", "1")
    classifier = load_classifier("out")
    found = classifier.validation_
    n = len(classifier.machine_.vectors)
    assert code == 0
    assert (classifier.seed, found.n_folds, classifier.image_shape_) == (1, 3, (8, 8, 3))
    assert (
        out
        == f"""\
train: 18 images, brought to 8 x 8, of 3 classes: flat=6, lying=6, upright=6

expected accuracy for new images of the same objects: 100.0 % +- \
{100 * found.standard_error:.1f} % (one standard error), by 3-fold cross-validation of 18 images
{UNKNOWN}
kernel exp(-gamma |x - y|^2) with gamma {found.gamma:g}, C {found.C:g}

{TABLE}
out: classifier of 3 classes, images of 8 x 8 x 3, 78 features, {n} support vectors
"""
    )
    assert err.splitlines()[-1] == "Cross-validating 15 kernels on 3 folds: done after 45 steps"


def test_fit_tells_objects_by_their_folders(run: Run) -> None:
    for k, path in enumerate(sorted(Path("train").glob("*/*.png"))):
        folder = Path("objects", path.parent.name, f"object {k % 3}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_bytes(path.read_bytes())
    code, out, _ = run("fit", "objects", "-o", "out", "--size", "8")
    found = load_classifier("out").validation_
    assert (code, found.n_folds, found.n_objects) == (0, 3, 9)
    expected = (
        f"expected accuracy for new objects: 100.0 % +- {100 * found.standard_error:.1f} % (one "
        f"standard error), by 3-fold cross-validation of 18 images of 9 objects"
    )
    assert out.splitlines()[2] == expected
    assert out.splitlines()[3].startswith("kernel ")
    assert run("info", "out")[1].splitlines()[2] == expected
    assert json.loads(run("info", "out", "--json")[1])["objects"] == 9


def test_fit_of_the_same_images_gives_the_same_bytes(run: Run) -> None:
    for name in ("a", "b"):
        assert run("fit", "train", "-o", name, "--size", "8")[0] == 0
    assert Path("a").read_bytes() == Path("b").read_bytes()


def test_many_classes_are_shown_with_their_mistakes() -> None:
    images, names = blurred(16, n=2)
    classifier = ImageClassifier(2).fit(images, names)
    columns, rows, more = confusion_table(classifier)
    assert (columns, more) == (["#", "class", "#images", "#right", "taken for"], "")
    confusion = classifier.validation_.confusion
    for k, row in enumerate(rows):
        wrong = {j: n for j, n in enumerate(confusion[k]) if n and j != k}
        assert row[:3] == [str(k + 1), f"class {classifier.classes_[k][6:]}", "2"]
        assert row[3] == f"{50 * confusion[k, k]:.1f} %"
        cells = {f"{classifier.classes_[j]} {n}" for j, n in wrong.items()}
        assert set(filter(None, row[4].split(", "))) == cells


# predict


def test_predict_prints_a_line_for_each_image(run: Run) -> None:
    code, out, err = run("predict", "model", "new/flat", "new/lying/01.png")
    assert (code, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == ["image", "class", "probability", "second", "probability"]
    found = [line.split() for line in lines]
    assert [line[:2] for line in found] == [
        ["new/flat/00.png", "flat"], ["new/flat/03.png", "flat"], ["new/lying/01.png", "lying"],
    ]  # fmt: skip
    classifier = load_classifier("model")
    with Image.open("new/flat/00.png") as image:
        p = classifier.probabilities(np.asarray(image)[None] / 255)[0]
    assert found[0][2] == f"{p.max():.4f}"
    assert found[0][3:] == [classifier.classes_[np.argsort(p)[1]], f"{np.sort(p)[1]:.4f}"]


def test_predict_counts_what_is_right_in_folders_of_classes(run: Run) -> None:
    assert run("predict", "model", "new")[1].endswith("\n\n6 of 6 right: accuracy 100.0 %\n")
    assert run("predict", "model", "./new/")[1].endswith("\n\n6 of 6 right: accuracy 100.0 %\n")
    Path("mixed").mkdir()
    Path("mixed/flat").symlink_to(Path("new/flat").resolve())
    os.mkdir("mixed/lying")
    for name in ("new/flat/00.png", "new/lying/01.png", "new/lying/04.png"):
        Path("mixed/lying", Path(name).name).write_bytes(Path(name).read_bytes())
    assert run("predict", "model", "mixed")[1].endswith("\n2 of 3 right: accuracy 66.7 %\n")
    # Not where folders are something else, nor where an image lies beside them.
    assert "accuracy" not in run("predict", "model", "new/flat")[1]
    assert "accuracy" not in run("predict", "model", "new/flat", "new/lying")[1]
    assert "accuracy" not in run("predict", "model", "new", "new")[1]
    Path("mixed/beside.png").write_bytes(Path("new/flat/00.png").read_bytes())
    assert "accuracy" not in run("predict", "model", "mixed")[1]


def test_the_predicted_class_comes_first_even_where_another_is_more_probable() -> None:
    order = _best_first(np.array([1, 0]), np.array([[0.4, 0.3, 0.3, 0.0], [0.1, 0.2, 0.3, 0.4]]))
    assert order.tolist() == [[1, 0, 2, 3], [0, 3, 2, 1]]


@pytest.mark.parametrize("top", [1, 2, 3, 4])
def test_predict_writes_csv(top: int, run: Run) -> None:
    code, out, err = run("predict", "model", "new", "--csv", "-", "--top", str(top))
    assert (code, err) == (0, "6 of 6 right: accuracy 100.0 %\n")
    head, *rows = csv.reader(out.splitlines())
    n = min(top, 3)
    expected = ["class", "probability", "class2", "probability2", "class3", "probability3"]
    assert head == ["image", *expected[: 2 * n]]
    assert [row[1] for row in rows] == ["flat"] * 2 + ["lying"] * 2 + ["upright"] * 2
    p = np.array([row[2::2] for row in rows], float)
    assert np.all(np.diff(p, axis=1) <= 0)
    if n == 3:
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=2e-4)
    code, said, _ = run("predict", "model", "new", "--csv", "x.csv", "--top", str(top))
    assert said == "x.csv: 6 images\n6 of 6 right: accuracy 100.0 %\n"
    assert Path("x.csv").read_text() == out


def test_names_do_not_reach_the_terminal_as_they_are(run: Run) -> None:
    images, names = striped(n=3)
    evil = {"flat": "\x1b[31mred\x07", "lying": "[bold]:smile:\n", "upright": "=1+1, \"x\""}  # fmt: skip
    ImageClassifier(2).fit(images[:, :, :8], [evil[n] for n in names]).save("evil\x1b")
    os.mkdir("in\x1b")
    Path("in\x1b/\x07a,b.png").write_bytes(Path("new/flat/00.png").read_bytes())
    for arguments in (["predict", "evil\x1b", "in\x1b"], ["info", "evil\x1b"]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert not set("\x1b\x07") & set(out)
        assert "\\x1b[31mred\\x07" in out
    assert run("predict", "evil\x1b", "in\x1b", "--csv", "evil.csv")[0] == 0
    with open("evil.csv", newline="") as file:
        assert list(csv.reader(file))[1][:2] == ["in\x1b/\x07a,b.png", "\x1b[31mred\x07"]


# info


def test_info_shows_a_classifier(run: Run) -> None:
    code, out, err = run("info", "model")
    found, size = load_classifier("model"), os.path.getsize("model")
    assert (code, err) == (0, "")
    first, _, expected, unknown, kernel, _, *table = out.splitlines()
    assert unknown == UNKNOWN
    assert first == (
        f"model: classifier of 3 classes, images of 8 x 8 x 3, 78 features, "
        f"{len(found.machine_.vectors)} support vectors, {size / 1000:.1f} kB on disk"
    )
    assert expected.startswith(
        "expected accuracy for new images of the same objects: 100.0 % +- 4."
    )
    assert kernel.startswith("kernel exp(-gamma |x - y|^2) with gamma ")
    assert "\n".join(table) + "\n" == TABLE


def test_info_gives_json(run: Run) -> None:
    values = json.loads(run("info", "model", "--json")[1])
    found = load_classifier("model")
    counts = found.machine_.counts
    assert values == {
        "file": "model",
        "bytes": os.path.getsize("model"),
        "kind": "classifier",
        "classes": [
            {"name": name, "images": 6, "support_vectors": counts[k]}
            for k, name in enumerate(["flat", "lying", "upright"])
        ],
        "image_shape": [8, 8, 3],
        "features": 78,
        "support_vectors": sum(counts),
        "gamma": found.validation_.gamma,
        "C": found.validation_.C,
        "expected_accuracy": 1.0,
        "standard_error": found.validation_.standard_error,
        "folds": 3,
        "objects": 0,
        "seed": 0,
        "confusion": [[6, 0, 0], [0, 6, 0], [0, 0, 6]],
    }


# failing


def prepare(root: Path) -> None:
    """Folders and files that are not what they should be."""
    image = (root / "new/flat/00.png").read_bytes()
    (root / "only/pear").mkdir(parents=True)
    (root / "only/pear/a.png").write_bytes(image)
    for name in ("empty", "one/pear", "lonely/pear", "lonely/plum", "broken/pear", "broken/plum",
                 "hollow/pear", "hollow/plum"):  # fmt: skip
        (root / name).mkdir(parents=True)
    for name in ("one/pear/a", "one/pear/b", "lonely/pear/a", "lonely/plum/a", "lonely/plum/b",
                 "hollow/pear/a"):  # fmt: skip
        (root / f"{name}.png").write_bytes(image)
    (root / "broken/pear/a.png").write_bytes(image)
    (root / "broken/plum/a.png").write_bytes(image[:60])
    model = (root / "model").read_bytes()
    (root / "cut").write_bytes(model[:-100])
    (root / "text").write_text("This is no model, and much too long for a header.")
    ImageClassifier(2).fit(np.random.default_rng(0).random((4, 3, 5, 1)), list("abab")).save(
        root / "grey"
    )


MISUSE = {
    "no folder": (["fit", "no", "-o", "z"],
                  "Invalid value for 'IMAGES': Directory 'no' does not exist. (See tnsum fit --help.)"),
    "a file to fit": (["fit", "text", "-o", "z"],
                      "Invalid value for 'IMAGES': Directory 'text' is a file. (See tnsum fit --help.)"),
    "no output": (["fit", "train"], "Missing option '-o' / '--output'. (See tnsum fit --help.)"),
    "one fold": (["fit", "train", "-o", "z", "--folds", "1"],
                 "Invalid value for '--folds': 1 is not in the range 2<=x<=1000. "
                 "(See tnsum fit --help.)"),
    "too large": (["fit", "train", "-o", "z", "--size", "100000"],
                  "Invalid value for '--size': 100000 is not in the range 4<=x<=256. "
                  "(See tnsum fit --help.)"),
    "output a folder": (["fit", "train", "-o", "new"],
                        "Invalid value for '-o' / '--output': File 'new' is a directory. "
                        "(See tnsum fit --help.)"),
    "no images": (["predict", "model"], "Missing argument 'IMAGES...'. (See tnsum predict --help.)"),
    "no such image": (["predict", "model", "no.png"],
                      "Invalid value for 'IMAGES...': Path 'no.png' does not exist. "
                      "(See tnsum predict --help.)"),
    "no such model": (["predict", "no", "new"],
                      "Invalid value for 'MODEL': File 'no' does not exist. "
                      "(See tnsum predict --help.)"),
    "none at the top": (["predict", "model", "new", "--top", "0"],
                        "Invalid value for '--top': 0 is not in the range x>=1. "
                        "(See tnsum predict --help.)"),
}  # fmt: skip

UNSUITABLE = {
    "an empty folder": (["fit", "empty", "-o", "z"],
                        "'empty' must hold a folder for each class; it holds no images and no folder. "
                        "Put the images of each class into a folder named after it.\n"),
    "images without classes": (["fit", "one/pear", "-o", "z"],
                               "'one/pear' must hold a folder for each class; it holds 2 images and no "
                               "folder. Put the images of each class into a folder named after it.\n"),
    "a class without images": (["fit", "hollow", "-o", "z"],
                               "Each folder in 'hollow' must hold images of one class; there are none "
                               "in 'plum'. Add images ("),
    "one class": (["fit", "one", "-o", "z"],
                  "There must be images of two classes at least; all are of class 'pear'. Add images of "
                  "another class.\n"),
    "one image": (["fit", "only", "-o", "z"],
                  "There must be images of two classes at least; all are of class 'pear'. Add images of "
                  "another class.\n"),
    "a class with one image": (["fit", "lonely", "-o", "z"],
                               "Each class must have two images at least, so that some can be held back "
                               "to see how well they are predicted; there is one of 'pear'. Add images, "
                               "or leave the class out.\n"),
    "an empty folder to predict": (["predict", "model", "empty"],
                                   "Each path must be an image or a folder of images; 'empty' holds "
                                   "none ("),
}  # fmt: skip

FAILURE = {
    "a broken image": (["fit", "broken", "-o", "z"], ""),
    "no folder for the output": (["fit", "train", "-o", "no/z"],
                                 "'no/z' cannot be saved: No such file or directory\n"),
    "a model that was cut": (["predict", "cut", "new"], "'cut' cannot be loaded: its header asks for "),
    "info of text": (["info", "text"],
                     "'text' must hold networks, a classifier or results of a run; it seems to be "
                     "text.\n"),
    "info of one that was cut": (["info", "cut"], "'cut' cannot be loaded: its header asks for "),
    "no model": (["predict", "text", "new"], "'text' cannot be loaded: its header would have "),
    "a broken image to predict": (["predict", "model", "broken"], ""),
    "no image to predict": (["predict", "model", "text"], ""),
    "no folder for the table": (["predict", "model", "new", "--csv", "no/z"],
                                "'no/z' cannot be saved: No such file or directory\n"),
    "other images": (["predict", "grey", "new"],
                     "'grey' must be for square images in colour, as `tnsum fit` makes it; it is for "
                     "3 x 5 x 1. Use tnsum.fusion.load_classifier in Python.\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_one_line_and_exit_code_2(case: str, run: Run) -> None:
    prepare(Path())
    arguments, message = MISUSE[case]
    assert run(*arguments) == (2, "", f"Error: {message}\n")
    assert not Path("z").exists()


@pytest.mark.parametrize(
    ("case", "exit_code"), [*((case, 1) for case in FAILURE), *((case, 2) for case in UNSUITABLE)]
)
def test_failure_is_one_line_and_nothing_is_written(case: str, exit_code: int, run: Run) -> None:
    prepare(Path())
    before = sorted(p.name for p in Path().iterdir())
    arguments, message = {**FAILURE, **UNSUITABLE}[case]
    code, out, err = run(*arguments)
    assert code == exit_code
    assert err.startswith(f"Error: {message}")
    assert err.count("\n") == 1
    assert "Error: " not in err[7:]
    # What was found is told before what is wrong with it; nothing else.
    assert out.count("\n") <= 1
    assert sorted(p.name for p in Path().iterdir()) == before


def test_the_output_is_tried_before_the_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*_: object) -> None:
        raise AssertionError("this comes too early")

    monkeypatch.setattr("tnsum.datasets.load_image_folder", work)
    monkeypatch.setattr("tnsum.datasets.load_images", work)
    assert run("fit", "train", "-o", "no/z")[2].startswith("Error: 'no/z' cannot be saved")
    assert run("predict", "model", "new", "--csv", "no/z")[2].startswith("Error: 'no/z' cannot be")


@pytest.mark.filterwarnings("default")
def test_what_is_left_out_is_told(run: Run) -> None:
    for name in ("flat", "lying"):
        Path("some", name).mkdir(parents=True)
        for path in Path("train", name).iterdir():
            Path("some", name, path.name).write_bytes(path.read_bytes())
    for name in ("flat/photo.heic", "lying/\x1b.txt", "beside.png"):
        Path("some", name).write_bytes(b"no image")
    read = ".bmp, .gif, .jpeg, .jpg, .pbm, .pgm, .png, .pnm, .ppm, .tif, .tiff, .webp"
    code, out, err = run("fit", "some", "-o", "out", "--size", "8", "--folds", "2")
    assert code == 0
    assert out.startswith("some: 12 images, brought to 8 x 8, of 2 classes: flat=6, lying=6\n")
    assert err.splitlines()[0] == (
        f"Warning: 3 files were left out, the first is 'beside.png': what is read ends in {read}, and "
        f"lies in the folder of a class."
    )
    code, out, err = run("predict", "model", "some/flat", "some/lying", "--csv", "-")
    assert (code, out.count("\n")) == (0, 13)
    assert err == (
        f"Warning: 2 files were left out, the first is 'some/flat/photo.heic': what is read ends in "
        f"{read}.\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize(
    "arguments",
    [["fit", "train", "-o", "z", "--size", "8"], ["predict", "model", "new"],
     ["predict", "model", "new", "--csv", "-"], ["info", "model"]],
)  # fmt: skip
def test_a_full_output_is_told_and_nothing_is_written(arguments: list[str], run: Run) -> None:
    program = [sys.executable, "-m", "tnsum"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*program, *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    line = "Error: The output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, line)
    assert sorted(p.name for p in Path().iterdir()) == ["model", "new", "train"]


def test_a_full_disk_is_told_and_leaves_the_old_table(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        if os.fstat(descriptor).st_size:
            raise OSError(28, "No space left on device")

    Path("x.csv").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    line = "Error: 'x.csv' cannot be saved: No space left on device\n"
    assert run("predict", "model", "new", "--csv", "x.csv") == (1, "", line)
    assert Path("x.csv").read_text() == "old"
    assert sorted(p.name for p in Path().iterdir()) == ["model", "new", "train", "x.csv"]


def test_stopping_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ImageClassifier, "fit", stopped)
    code, _, err = run("fit", "train", "-o", "z")
    assert (code, err) == (130, "Stopped.\n")
    assert sorted(p.name for p in Path().iterdir()) == ["model", "new", "train"]


@pytest.mark.parametrize(
    ("arguments", "module", "what"),
    [
        (["fit", "train", "-o", "z"], "tnsum.fusion._classifier", "tnsum fit"),
        (["predict", "model", "new"], "tnsum.datasets", "tnsum predict"),
        (["info", "model"], "tnsum.fusion._classifier_files", "tnsum info of a classifier"),
    ],
)
def test_missing_libraries_are_named(
    arguments: list[str], module: str, what: str, run: Run
) -> None:
    with patch.dict(sys.modules, {module: None}):
        code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err == (
        f"Error: {what} needs scikit-learn, Pillow and matplotlib, of which one cannot be imported "
        f"(import of {module} "
        f"halted; None in sys.modules). Install them with `pip install tnsum[fusion]`.\n"
    )


@pytest.mark.parametrize("name", ["fit", "predict"])
def test_help_has_examples(name: str, run: Run) -> None:
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "Examples:\n    tnsum " in out


def test_the_commands_load_no_heavy_library_before_they_run() -> None:
    code = (
        "import sys, tnsum.cli, tnsum.cli.fit, tnsum.cli.predict; print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_nothing_that_is_read_is_replaced(made: Path, tmp_path: Path, capsys: Any) -> None:
    model = tmp_path / "model"
    model.write_bytes(b"model")
    inside = made / "new" / "flat" / "00.png"
    before = inside.read_bytes()
    for arguments in (
        ["fit", str(made / "new"), "-o", str(inside)],
        ["predict", str(model), str(made / "new"), "--csv", str(model)],
        ["predict", str(model), str(inside), "--csv", str(inside)],
    ):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert "Error: The " in capsys.readouterr().err
    assert inside.read_bytes() == before
    assert model.read_bytes() == b"model"


def test_a_terminal_gets_tables_and_harmless_csv(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("pty")
    program = "from tnsum.cli import main; main()"
    image = tmp_path / "\x1b[31m.png"
    image.write_bytes((made / "new/flat/00.png").read_bytes())
    for more in ([], ["--csv", "-"]):
        arguments = [
            sys.executable,
            "-c",
            program,
            "predict",
            str(made / "model"),
            str(image),
            *more,
        ]
        script = f"import pty; pty.spawn({arguments!r})"
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "COLUMNS": "70", "TERM": "dumb"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "\x1b[31m" not in done.stdout
        assert "flat" in done.stdout
        assert ("───" in done.stdout) == (not more)
