"""A run: resumed, killed, shared by processes; the command; every message."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import tnsum.experiments._reproduce as module
from experiment_data import small_images
from raising import check_message, kind_of, unreached
from tnsum import NetworkError
from tnsum.cli import command, main
from tnsum.cli import reproduce as cli_reproduce
from tnsum.datasets import ImageSet
from tnsum.experiments import Settings, _folder, _paper_figures, _stored, reproduce
from tnsum.experiments._folder import RunFolder, as_json
from tnsum.experiments._outcomes import outcome_from
from tnsum.experiments._splits import Split

DATA = small_images()
SETTINGS = Settings(("paper", "tuned", "objects"), (0.1, 0.5), n_splits=2, seed=3)
SHORT = Settings(fractions=(0.2, 0.5), n_splits=2)
TESTS = Path(__file__).parent


def held(folder: Path) -> dict[str, bytes]:
    """All files of a folder but for times."""
    files = (path for path in folder.rglob("*") if path.is_file())
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {name: text for name, text in found.items() if not name.startswith(("times", "splits"))}


@pytest.fixture(autouse=True)
def _without_figures(request: pytest.FixtureRequest, whole_with_figures: Path) -> Iterator[None]:
    """Figures take longer than all else; they are drawn once, and in large tests."""
    if request.node.get_closest_marker("large"):
        yield
        return
    with patch.object(module, "figures_of", return_value=[]):
        yield


@pytest.fixture(scope="module")
def whole_with_figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all protocols."""
    folder = tmp_path_factory.mktemp("run")
    reproduce(DATA, folder, SETTINGS)
    return folder


@pytest.fixture
def whole(whole_with_figures: Path) -> Path:
    return whole_with_figures


def test_all_files_are_there(whole: Path) -> None:
    figures = ["accuracy-objects", "accuracy-paper", "accuracy-tuned", "difference-paper"]
    figures += ["difference-tuned", "confusion-paper-sum", "factors"]
    figures += [f"confusion-{p}-{m}" for p in ("tuned", "objects") for m in ("sum", "factorfusion")]
    names = {f"figures/{name}.{kind}" for name in figures for kind in ("svg", "png")}
    names |= {"settings.json", "results.json", "results.csv", "report.html"}
    assert set(held(whole)) == names
    assert (whole / "times.json").exists()
    splits = [f"{p}-{f}-{k}" for p in ("paper", "tuned") for f in (0.1, 0.5) for k in (0, 1)]
    splits += [f"objects-{k}" for k in range(4)]
    assert {path.name for path in (whole / "splits").iterdir()} == {f"{s}.json" for s in splits}


def test_results_hold_what_the_issue_asks_for(whole: Path) -> None:
    results = json.loads((whole / "results.json").read_text())
    assert list(results) == ["format", "data", "settings", "versions", "protocols"]
    assert results["settings"]["seed"] == 3
    assert {"python", "numpy", "scikit-learn", "tnsum"} <= set(results["versions"])
    assert "seconds" not in (whole / "results.json").read_text()
    point = results["protocols"]["paper"]["points"][0]
    assert [split["seed"] for split in point["splits"]] == [[3, 0], [3, 1]]
    for found in point["methods"].values():
        confusion = np.array(found["confusion"])
        assert confusion.sum() == 2 * 54
        assert np.mean(found["accuracies"]) == pytest.approx(100 * confusion.trace() / 108)
        assert found["mean"] == pytest.approx(np.mean(found["accuracies"]))
    mistaken = results["protocols"]["objects"]["misclassified"]["SUM"]
    assert mistaken
    for one in mistaken:
        assert sum(one["taken_for"].values()) <= one["tested"] == 1
        assert one["class"] not in one["taken_for"]
        assert one["name"].startswith(one["class"])


def test_the_table_has_a_line_for_each_split_and_method(whole: Path) -> None:
    lines = (whole / "results.csv").read_text().splitlines()
    assert lines[0] == "protocol,fraction,split,method,trained,tested,accuracy"
    assert len(lines) == 1 + 4 * 3 + 4 * 4 + 4 * 4
    results = json.loads((whole / "results.json").read_text())
    rows = [line.split(",") for line in lines[1:]]
    found = [100 * float(row[6]) for row in rows if row[:2] == ["paper", "0.5"] and row[3] == "SUM"]
    assert found == results["protocols"]["paper"]["points"][1]["methods"]["SUM"]["accuracies"]


def test_a_second_start_does_only_what_is_left(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    kept = held(whole)
    shutil.copytree(whole, folder)
    for name in ("splits/tuned-0.5-1.json", "splits/objects-2.json", "results.json"):
        (folder / name).unlink()
    done = []

    def watched(split: Split, known: Any, seed: int) -> Any:
        done.append(split.name)
        return original(split, known, seed)

    original = module.outcome_of
    with (
        patch.object(module, "outcome_of", watched),
        patch.object(module, "report", return_value=""),
    ):
        reproduce(DATA, folder, SETTINGS)
    assert done == ["tuned-0.5-1", "objects-2"]
    assert {**held(folder), "report.html": kept["report.html"]} == kept
    with (
        patch.object(module, "prepared", None),
        patch.object(module, "figures_of", return_value=[]),
    ):
        run = reproduce(DATA, folder, SETTINGS)
    assert len(run.outcomes) == 12
    assert (folder / "results.json").read_bytes() == kept["results.json"]


@pytest.mark.large
def test_what_processes_share_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(NetworkError) as raised:
            reproduce(DATA, tmp_path, SHORT, jobs=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    pattern = rf"'{tmp_path}/\.tnsum-{os.getpid()}-\w+' cannot be written to: "
    assert re.match(pattern, str(raised.value))
    assert not list(tmp_path.glob(".tnsum-*"))
    reproduce(DATA, tmp_path, SHORT)


def test_what_processes_share_cannot_be_made(tmp_path: Path) -> None:
    def full(**_: Any) -> None:
        raise OSError(28, "No space left on device")

    with patch.object(_folder, "TemporaryDirectory", full):
        message = f"'{tmp_path}' cannot be written to: No space left on device"
        check_message(lambda: reproduce(DATA, tmp_path, SHORT, jobs=2), NetworkError, message)


ENDLESS = """
import sys
sys.path.insert(0, {tests!r})
from experiment_data import small_images
from tnsum.experiments import Settings, reproduce
reproduce(small_images(n_views=12, size=8), {folder!r}, Settings(("tuned",), (0.5, 0.7), 500), jobs=2)
"""


def children(parent: int) -> list[int]:
    """The processes that a process has started, on Linux."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in brackets, may hold anything; then come the state and the parent.
            state, number = path.read_text().rpartition(")")[2].split()[:2]
            if int(number) == parent and state != "Z":
                found.append(int(path.parent.name))
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.large
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes cannot be seen here")
def test_processes_end_when_the_one_that_started_them_is_killed(tmp_path: Path) -> None:
    script = ENDLESS.format(tests=str(TESTS), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None and len(list(tmp_path.glob("splits/*.json"))) < 4:
            time.sleep(0.02)
        started = children(process.pid)
    finally:
        process.kill()
        process.wait()
    assert len(started) >= 2
    end = time.monotonic() + 30
    while any(map(is_running, started)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(is_running, started))


@pytest.mark.large
def test_several_processes_give_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    with patch.object(module, "figures_of", return_value=[]):
        reproduce(DATA, tmp_path, SETTINGS, jobs=2)
    assert not list(tmp_path.glob(".tnsum-*"))
    for name in ("settings.json", "results.json", "results.csv"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()


def test_a_split_that_fails_leaves_the_others(tmp_path: Path) -> None:
    def failing(split: Split, known: Any, seed: int) -> Any:
        if split.number == 1:
            raise KeyboardInterrupt
        return original(split, known, seed)

    original = module.outcome_of
    with patch.object(module, "outcome_of", failing), pytest.raises(KeyboardInterrupt):
        reproduce(DATA, tmp_path, SHORT)
    assert {path.name for path in (tmp_path / "splits").iterdir()} == {
        "paper-0.2-0.json",
        "paper-0.5-0.json",
    }
    assert not (tmp_path / "results.json").exists()
    reproduce(DATA, tmp_path, SHORT)
    assert (tmp_path / "results.json").exists()


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from experiment_data import small_images
from tnsum.experiments import Settings, _reproduce, reproduce
_reproduce.figures_of = lambda run: []
reproduce(small_images(n_views=12, size=8), {folder!r}, Settings(("tuned",), (0.5, 0.7), 6))
"""


@pytest.mark.large
def test_killing_and_starting_again_gives_the_same_bytes(tmp_path: Path) -> None:
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    commands = [
        [sys.executable, "-c", SCRIPT.format(tests=str(TESTS), folder=str(folder))]
        for folder in (plain, killed)
    ]
    subprocess.run(commands[0], check=True)
    process = subprocess.Popen(commands[1], start_new_session=True, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(killed.glob("splits/*.json"))) < 3:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    n_done = len(list(killed.glob("splits/*.json")))
    assert 3 <= n_done < 12
    assert not (killed / "results.json").exists()
    subprocess.run(commands[1], check=True)
    assert held(killed) == held(plain)


# messages

NAN = replace(DATA, images=np.where(np.arange(6)[:, None, None] == 2, np.nan, DATA.images))
ONE = replace(DATA, labels=np.zeros(60, dtype=int), classes=("cow",))
LONELY = replace(DATA, objects=np.where(DATA.labels == 1, 0, DATA.objects))


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def finished(folder: Path) -> Path:
    reproduce(DATA, folder, SHORT)
    return folder


def with_split(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """A run whose file of a split was changed."""
    path = finished(folder) / "splits" / "paper-0.2-0.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    return folder


def with_directory(folder: Path) -> Path:
    (finished(folder) / "results.csv").unlink()
    (folder / "results.csv").mkdir()
    return folder


def run(settings: Settings = SHORT, data: ImageSet = DATA, jobs: Any = 1) -> Callable[[Path], Any]:
    return lambda folder: reproduce(data, folder, settings, jobs)


ERRORS: list[tuple[Callable[[Path], Any], str]] = [
    (
        lambda _: Settings(("paper", "svm")),
        "protocols must be one or more of ('paper', 'tuned', 'objects'); ('paper', 'svm') came.",
    ),
    (lambda _: Settings(()), "protocols must be one or more of ('paper', 'tuned', 'objects'); () came."),
    (
        lambda _: Settings(fractions=(0.5, 80)),
        "fractions must be different numbers between 0 and 1, as 0.8 for 80 %; (0.5, 80) came.",
    ),
    (
        lambda _: Settings(fractions=(0.5, 0.5)),
        "fractions must be different numbers between 0 and 1, as 0.8 for 80 %; (0.5, 0.5) came.",
    ),
    (
        lambda _: Settings(fractions=(float("nan"),)),
        "fractions must be different numbers between 0 and 1, as 0.8 for 80 %; (nan,) came.",
    ),
    (lambda _: Settings(n_splits=0), "n_splits must be an integer of at least 1; 0 came."),
    (lambda _: Settings(n_splits=True), "n_splits must be an integer of at least 1; True came."),
    (lambda _: Settings(n_splits=10**6), "n_splits must be at most 10000; 1000000 came."),
    (lambda _: Settings(seed=-1), "seed must be an integer of at least 0; -1 came."),
    (run(jobs=0), "jobs must be an integer of at least 1; 0 came."),
    (run(jobs=2.0), "jobs must be an integer of at least 1; 2.0 came."),
    (run(data=ONE), "Images must be of two or more classes; they are of 1."),
    (
        run(data=replace(DATA, images=DATA.images[..., :1])),
        f"Images must have the shape (number, height, width, 3); {(*DATA.images.shape[:3], 1)} came.",
    ),
    (run(data=NAN), "Images must hold finite numbers; some are infinite or NaN."),
    (
        run(Settings(fractions=(0.001, 0.5))),
        "A fraction must leave images for training and for testing: 0.1 % of 60 images are 0. Give "
        "other fractions, or more images.",
    ),
    (
        run(Settings(("objects",)), LONELY),
        "Leaving out an object of every class needs two or more of each: class 'dog' has 1. Leave out "
        "the protocol 'objects', or give more objects.",
    ),
    (
        lambda folder: reproduce(DATA, written(folder / "file", ""), SHORT),
        "{folder}/file must be a folder that can be written to: File exists.",
    ),
    (
        lambda folder: reproduce(DATA, written(folder / "a\x1bb", "").parent, SHORT),
        "{folder} must be new, empty, or of an earlier run; it holds other files, such as a\\x1bb. Give "
        "another folder.",
    ),
    (
        lambda folder: reproduce(DATA, finished(folder), Settings(fractions=(0.2, 0.5), n_splits=3)),
        "{folder} must be of a run with the same settings; it is of one with other splits. "
        "Give another folder, or remove this one to start anew.",
    ),
    (
        lambda folder: reproduce(small_images(noise=0.3), finished(folder), Settings(seed=1)),
        "{folder} must be of a run with the same settings; it is of one with other data and "
        "fractions and splits and seed. Give another folder, or remove this one to start anew.",
    ),
    (
        lambda folder: reproduce(DATA, written(folder / "settings.json", "[").parent, SHORT),
        "{folder}/settings.json must hold JSON of at most 1048576 bytes; it does not. Give another "
        "folder, or remove this one to start anew.",
    ),
    (
        lambda folder: reproduce(DATA, written(folder / "settings.json", "[" * 10**5).parent, SHORT),
        "{folder}/settings.json must hold JSON of at most 1048576 bytes; it does not. Give another "
        "folder, or remove this one to start anew.",
    ),
    (
        lambda folder: reproduce(DATA, written(folder / "settings.json", " " * 2**21).parent, SHORT),
        "{folder}/settings.json must hold JSON of at most 1048576 bytes; it does not. Give another "
        "folder, or remove this one to start anew.",
    ),
    (
        lambda folder: reproduce(DATA, written(folder / "settings.json", "[1]").parent, SHORT),
        "{folder} must be of a run with the same settings; it is of one with other format and data and "
        "settings and versions. Give another folder, or remove this one to start anew.",
    ),
    (
        lambda folder: reproduce(DATA, with_directory(folder), SHORT),
        "'{folder}/results.csv' cannot be written: it is no file but a directory or a device. Give the "
        "name of a file.",
    ),
    (
        lambda folder: RunFolder(folder, {}).write("no/folder", "text"),
        "'{folder}/no/folder' cannot be written: No such file or directory",
    ),
    (
        lambda folder: reproduce(DATA, with_split(folder, dict.clear), SHORT),
        "{folder}/splits/paper-0.2-0.json must hold a split as it was written; it does not. Remove it "
        "to have the split done again.",
    ),
    (
        lambda _: outcome_from([], Split("paper", 0.5, 0), DATA),
        "This is not the outcome of paper-0.5-0.",
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(ERRORS)))
def test_messages(row: int, tmp_path: Path) -> None:
    call, message = ERRORS[row]
    message = message.replace("{folder}", str(tmp_path))
    check_message(lambda: call(tmp_path), kind_of(message), message)


def test_every_message_is_in_the_table(tmp_path: Path) -> None:
    # `tnsum figures` and the results that it reads are tested with the other drawings.
    elsewhere = {Path(str(other.__file__)) for other in (_paper_figures, _stored)}
    files = set(Path(module.__file__).parent.glob("*.py")) - elsewhere
    folders = (tmp_path / str(k) for k in range(len(ERRORS)))

    def call(row: int) -> Any:
        folder = next(folders)
        folder.mkdir()
        return ERRORS[row][0](folder)

    assert unreached(files, [lambda row=row: call(row) for row in range(len(ERRORS))]) == []


def _first(values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = values["methods"]["SUM"]
    return found


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another split": lambda v: v.update(split=1),
    "another fraction": lambda v: v.update(fraction=0.5),
    "true for one": lambda v: v.update(split=False),
    "no methods": lambda v: v.update(methods={}),
    "a method less": lambda v: v["methods"].pop("SUM"),
    "another method": lambda v: v["methods"].update(X=_first(v)),
    "more tested": lambda v: v.update(tested=[100, 0, 0]),
    "a class less": lambda v: v.update(tested=[24, 24]),
    "no number": lambda v: v.update(trained="12"),
    "infinite": lambda v: v.update(trained=float("inf")),
    "an unknown image": lambda v: _first(v).update(mistakes=[[60, 0]]),
    "a negative image": lambda v: _first(v).update(mistakes=[[-1, 0]]),
    "an unknown class": lambda v: _first(v).update(mistakes=[[0, 3]]),
    "a huge number": lambda v: _first(v).update(mistakes=[[10**30, 0]]),
    "an image twice": lambda v: _first(v).update(mistakes=[[0, 1], [0, 2]]),
    "too many of a class": lambda v: _first(v).update(mistakes=[[k, 1] for k in range(20)]),
    "no lead": lambda v: _first(v).update(leads=_first(v)["leads"][1:]),
    "an infinite lead": lambda v: _first(v)["leads"].__setitem__(0, float("inf")),
    "a triple": lambda v: _first(v).update(mistakes=[[1, 2, 3]]),
    "something more": lambda v: v.update(more=1),
    "no mapping": lambda v: v.update(methods=[1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_splits_are_refused(change: str, whole: Path) -> None:
    values = json.loads((whole / "splits" / "paper-0.1-0.json").read_text())
    del values["sha256"]
    split = Split("paper", 0.1, 0)
    outcome_from(values, split, DATA)
    CHANGES[change](values)
    with pytest.raises(NetworkError, match=r"^This is not the outcome of paper-0\.1-0\.$"):
        outcome_from(values, split, DATA)


def test_a_changed_split_file_is_refused(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    path = folder / "splits" / "paper-0.1-0.json"
    values = json.loads(path.read_text())
    values["methods"]["SUM"]["mistakes"] = values["methods"]["SUM"]["mistakes"][1:]
    path.write_text(json.dumps(values))
    with pytest.raises(NetworkError, match="must hold a split as it was written; it does not"):
        RunFolder(folder, json.loads((folder / "settings.json").read_text())).stored(
            [Split("paper", 0.1, 0)], DATA
        )


def test_what_killed_processes_shared_is_removed(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    RunFolder(tmp_path, {})
    for number in (child.pid, os.getpid()):
        (tmp_path / f".tnsum-{number}-x").mkdir()
    RunFolder(tmp_path, {})
    assert [p.name for p in tmp_path.glob(".tnsum-*")] == [f".tnsum-{os.getpid()}-x"]


def test_objects_need_not_be_counted_from_zero(tmp_path: Path) -> None:
    numbered = replace(DATA, objects=3 * DATA.objects + 7)
    settings = Settings(("objects",))
    a = reproduce(DATA, tmp_path / "a", settings)
    b = reproduce(numbered, tmp_path / "b", settings)
    for x, y in zip(a.outcomes, b.outcomes, strict=True):
        assert x.accuracy("SUM") == y.accuracy("SUM")


def test_json_is_the_same_values_in_short_lines(whole: Path) -> None:
    values = {
        "a": [[k, -k] for k in range(50)],
        "b\n": {"c": None, "d": "é" * 120},
        "e": [],
        "f": {},
    }
    text = as_json(values)
    assert json.loads(text) == values
    assert text.count("\n") > 50
    with pytest.raises(ValueError, match="Out of range"):
        as_json([float("nan")])


# the command

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tnsum_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """The command in an empty folder, on small images: exit code, output, error output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "make_objects", small_images)
    monkeypatch.setattr(module, "load_eth80", lambda path: small_images())
    monkeypatch.setitem(command.commands, "reproduce", cli_reproduce.reproduce)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["reproduce", *arguments])
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out, captured.err

    return call


def test_without_data_the_command_says_so_first(tnsum_command: Run, tmp_path: Path) -> None:
    code, out, err = tnsum_command("--splits", "3", "--fractions", "0.2,0.8")
    assert code == 0
    lines = out.splitlines()
    assert lines[:4] == [
        "Data: no --data was given, so objects made by a program (make_objects), not ETH-80",
        "",
        "paper: accuracy in per cent, mean ± standard deviation",
        "trained on          SUM  TKD-CONCAT  SVM on pixels",
    ]
    assert lines[-1] == f"Report: {os.path.join('reproduction', 'report.html')}"
    assert "92.3" not in out
    assert "In the paper" not in out
    steps = err.splitlines()
    assert len(steps) == 6
    assert steps[0].startswith("1 of 6: paper, 20 % trained on, split 0: SUM ")
    code, again, err = tnsum_command("--splits", "3", "--fractions", "0.2,0.8")
    line = "All 6 splits are there already; only tables and figures are made anew.\n"
    assert (code, again, err) == (0, out, line)


def test_with_data_the_paper_stands_beside_it(tnsum_command: Run, tmp_path: Path) -> None:
    (tmp_path / "eth").mkdir()
    arguments = ["--data", "eth", "--out", "o", "--splits", "2", "--protocol", "all"]
    code, out, _ = tnsum_command(*arguments, "--fractions", "0.2,0.8", "--seed", "4", "--jobs", "1")
    assert code == 0
    assert out.startswith("Data: ETH-80, eth\n")
    assert "The paper reports 92.3 % at 80 % (mean of 20 realisations); SUM has " in out
    assert "In the paper: cow, dog and horse." in out
    assert "objects: accuracy in per cent" in out
    assert "\nAt 80 %, choosing the kernel width" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--fractions", "20,80"],
            2,
            "Error: Invalid value for '--fractions': '20,80' must be different numbers between 0 and 1; "
            "write for instance 0.2,0.8 for 20 and 80 %. (See tnsum reproduce --help.)\n",
        ),
        (
            ["--fractions", "a"],
            2,
            "Error: Invalid value for '--fractions': 'a' must be different numbers between 0 and 1; "
            "write for instance 0.2,0.8 for 20 and 80 %. (See tnsum reproduce --help.)\n",
        ),
        (
            ["--splits", "0"],
            2,
            "Error: Invalid value for '--splits': 0 is not in the range 1<=x<=10000. (See tnsum "
            "reproduce --help.)\n",
        ),
        (
            ["--data", "nowhere"],
            2,
            "Error: Invalid value for '--data': Path 'nowhere' does not exist. (See tnsum reproduce "
            "--help.)\n",
        ),
        (
            ["--fractions", "0.001"],
            2,
            "Error: A fraction must leave images for training and for testing: 0.1 % of 60 images are "
            "0. Give other fractions, or more images.\n",
        ),
    ],
)
def test_the_command_misused(
    tnsum_command: Run, arguments: list[str], code: int, message: str
) -> None:
    found, _, err = tnsum_command(*arguments)
    assert (found, err) == (code, message)
    assert not Path("reproduction").exists()


def test_folders_that_are_not_for_the_command(
    tnsum_command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    assert tnsum_command("--out", "full")[::2] == (
        2,
        "Error: full must be new, empty, or of an earlier run; it holds other files, such as "
        "letter.txt. Give another folder.\n",
    )
    assert tnsum_command("--splits", "1", "--fractions", "0.5")[0] == 0
    before = sorted(p.name for p in Path("reproduction").rglob("*"))
    assert tnsum_command("--splits", "2", "--fractions", "0.5")[::2] == (
        2,
        "Error: reproduction must be of a run with the same settings; it is of one with other splits. "
        "Give another folder, or remove this one to start anew.\n",
    )
    assert sorted(p.name for p in Path("reproduction").rglob("*")) == before
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert tnsum_command("--data", "full", "--out", "new")[::2] == (
        2,
        "Error: There must be images of ETH-80 in 'full', named as 'apple1-000-000.png'; there are "
        "none.\n",
    )
    (tmp_path / "full" / "cup1-000-000.png").touch()
    code, _, err = tnsum_command("--data", "full", "--out", "new")
    assert code == 1
    assert err.startswith("Error: All 3280 images of ETH-80 must be in 'full'; 3279 are missing: ")
    assert not Path("new").exists()


def test_the_command_without_its_libraries(tnsum_command: Run) -> None:
    with (
        patch.dict(sys.modules, {"tnsum.experiments": None}),
        patch.object(sys.modules["tnsum"], "experiments", create=True),
    ):
        del sys.modules["tnsum"].experiments  # type: ignore[attr-defined]
        code, _, err = tnsum_command()
    assert code == 1
    assert err.startswith(
        "Error: tnsum reproduce needs scikit-learn, Pillow and matplotlib, of which"
    )
    assert err.endswith("). Install them with `pip install tnsum[fusion]`.\n")


def test_stopping_says_how_to_go_on(tnsum_command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "outcome_of", stopped)
    code, _, err = tnsum_command("--splits", "1")
    line = "Stopped. Finished splits are in reproduction; the same command goes on.\n"
    assert (code, err) == (130, line)


def test_a_bar_on_a_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    reproduce(DATA, tmp_path, SHORT, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "4 of 4: paper, 50 % trained on, split 1: SUM" in err
    assert "━" in err


def test_nothing_is_shown_unless_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    reproduce(DATA, tmp_path, SHORT)
    assert capfd.readouterr() == ("", "")
