"""`tnsum info` of the files of `tnsum reproduce`: what is shown, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import tnsum.experiments._reproduce as module
from experiment_data import small_images
from tnsum.cli import main
from tnsum.experiments import Reproduction, Settings, reproduce

Info = Callable[..., tuple[int, str, str]]
SETTINGS = Settings(("paper", "objects"), (0.2, 0.8), n_splits=2, seed=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    """The folder of a run, and the run."""
    folder = tmp_path_factory.mktemp("run")
    with patch.object(module, "figures_of", return_value=[]):
        return folder, reproduce(small_images(n_objects=2), folder, SETTINGS)


@pytest.fixture
def info(
    made: tuple[Path, Reproduction],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Info:
    """A function that runs `tnsum info` in that folder: exit code, output, error output."""
    monkeypatch.chdir(made[0])

    def run_info(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["info", *arguments])
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out, captured.err

    return run_info


def test_results_are_shown(info: Info, made: tuple[Path, Reproduction]) -> None:
    code, out, err = info("results.json")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    size = (made[0] / "results.json").stat().st_size
    assert lines[0] == f"results.json: results of `tnsum reproduce`, {size / 1000:.1f} kB on disk"
    assert lines[1] == "30 images of 6 x 6 x 3, 3 classes: patterns & noise"
    assert lines[2] == "protocols paper, objects; 2 random splits at each of 20 %, 80 %; seed 3"
    assert lines[3].startswith("python 3.")
    assert lines[5] == "paper: accuracy in per cent, mean ± standard deviation"
    assert lines[6].split("  ")[0] == "trained on"
    rows = [line for line in lines if line.startswith(("20 %", "80 %", "new objects"))]
    points = [*made[1].points("paper"), *made[1].points("objects")]
    for row, point in zip(rows, points, strict=True):
        for method in point.methods:
            found = point.accuracy(method)
            assert f"{found.mean:.1f} ± {found.std:.1f}" in row
    values = json.loads(info("results.json", "--json")[1])
    assert values["kind"] == "results"
    assert values["settings"]["seed"] == 3
    assert values["accuracies"]["paper"][1] == {
        "fraction": 0.8,
        **{m: made[1].points("paper")[1].accuracy(m).mean for m in points[0].methods},
    }


def test_settings_are_shown(info: Info) -> None:
    code, out, _ = info("settings.json")
    assert code == 0
    assert out.startswith("settings.json: settings of `tnsum reproduce`, ")
    assert "\n30 images of 6 x 6 x 3, 3 classes: patterns & noise\n" in out
    assert json.loads(info("settings.json", "--json")[1])["data"]["images"] == 30


def test_splits_are_shown(info: Info, made: tuple[Path, Reproduction]) -> None:
    for outcome in made[1].outcomes:
        file = f"splits/{outcome.split.name}.json"
        code, out, _ = info(file)
        lines = out.splitlines()
        assert code == 0
        assert lines[0].startswith(f"{file}: split of `tnsum reproduce`, ")
        n_tested = sum(outcome.n_tested)
        end = f": {outcome.n_train} trained on, {n_tested} tested"
        assert lines[1] == f"{outcome.split.title}{end}"
        head = ["method", "accuracy, %", "mistakes", "kernel width", "seconds"]
        assert [part.strip() for part in lines[3].split("  ") if part.strip()] == head
        for name, found in outcome.methods.items():
            (row,) = [line for line in lines[4:] if line.startswith(name)]
            cells = row.removeprefix(name).split()
            assert cells[:2] == [f"{100 * outcome.accuracy(name):.1f}", str(len(found.mistakes))]
        values = json.loads(info(file, "--json")[1])
        assert values["accuracies"] == pytest.approx(
            {name: 100 * outcome.accuracy(name) for name in outcome.methods}
        )


def test_times_are_shown(info: Info, made: tuple[Path, Reproduction]) -> None:
    code, out, _ = info("times.json")
    assert code == 0
    assert out.startswith("times.json: times of `tnsum reproduce`, ")
    assert f"\n{len(made[1].outcomes)} splits\nmethod" in out
    found = json.loads(info("times.json", "--json")[1])["seconds"]
    right = sum(outcome.methods["SUM"].seconds for outcome in made[1].outcomes)
    np.testing.assert_allclose(found["SUM"], right)


def test_the_folder_of_a_run_leads_to_its_results(
    info: Info, made: tuple[Path, Reproduction]
) -> None:
    folder = str(made[0])
    code, out, err = info(folder)
    assert (code, out) == (2, "")
    assert err == (
        f"Error: Invalid value for 'FILE': {folder!r} is a folder; name its "
        f"'{folder}/results.json'. (See tnsum info --help.)\n"
    )
    assert info("splits")[2].startswith(
        "Error: Invalid value for 'FILE': 'splits' is a folder; name a file in it."
    )


CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "no data": ("results", lambda v: v.update(data=[])),
    "no shape": ("results", lambda v: v["data"].update(shape=3)),
    "a shape of texts": ("settings", lambda v: v["data"].update(shape=["\x1b[31m"])),
    "no fractions": ("settings", lambda v: v["settings"].update(fractions=["a"])),
    "no protocols": ("results", lambda v: v.update(protocols=[1])),
    "no points": ("results", lambda v: v["protocols"]["paper"].update(points=[])),
    "no mean": ("results", lambda v: v["protocols"]["paper"]["points"][0]["methods"].update(SUM={})),
    "a method less": ("results", lambda v: v["protocols"]["paper"]["points"][1]["methods"].clear()),
    "too large": ("results", lambda v: v["protocols"]["paper"]["points"][0]["methods"]["SUM"].update(
        mean=10**400)),
    "nothing tested": ("splits/objects-0", lambda v: v.update(tested=[])),
    "no number": ("splits/objects-0", lambda v: v.update(split="0")),
    "no mistakes": ("splits/objects-0", lambda v: v["methods"].update(SUM={"mistakes": 3})),
}  # fmt: skip
WRITTEN = "`tnsum reproduce` writes it; it was changed."
WORDS = {"results": "results", "settings": "settings", "splits/objects-0": "split"}


@pytest.mark.parametrize("case", CHANGES)
def test_what_was_changed_is_refused(
    case: str, info: Info, made: tuple[Path, Reproduction], tmp_path: Path
) -> None:
    name, change = CHANGES[case]
    values = json.loads((made[0] / f"{name}.json").read_text())
    change(values)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(values))
    kind = WORDS[name]
    for more in ([], ["--json"]):
        line = f"{str(path)!r} must hold the {kind} of a run as {WRITTEN}"
        assert info(str(path), *more) == (1, "", f"Error: {line}\n")


OTHER = "must hold networks, a classifier or results of a run; it seems to be JSON."
TEXTS = {
    '{"a": 1': "cannot be loaded: it is not valid JSON (",
    '{"a": 1, "a": 2}': "cannot be loaded: it names 'a' twice",
    '{"a": NaN}': "cannot be loaded: it holds NaN, which is not JSON",
    "[" * 10**5: "cannot be loaded: it is not valid JSON (too deep)",
    '{"a": {}}  ' + " " * 2**24: "cannot be loaded: it has more than 16777216 bytes",
    '{"a": {"b": 1e999}}': f"must hold the times of a run as {WRITTEN}",
    "{}": OTHER,
    '{"a": {"b": "1"}}': OTHER,
    '{"format": 2, "data": 3}': OTHER,
}


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_other_json_is_refused(number: int, info: Info, tmp_path: Path) -> None:
    text, message = list(TEXTS.items())[number]
    path = tmp_path / "some.json"
    path.write_text(text)
    code, out, err = info(str(path), "--json")
    assert (code, out) == (1, "")
    assert err.startswith(f"Error: {str(path)!r} {message}")
    assert err.count("\n") == 1


def test_names_do_not_reach_the_terminal_as_they_are(
    info: Info, made: tuple[Path, Reproduction], tmp_path: Path
) -> None:
    evil = "\x1b[31m[bold]\x07"
    values = json.loads((made[0] / "results.json").read_text())
    values["data"]["source"] = evil
    values["versions"][evil] = evil
    values["settings"]["protocols"] = [evil]
    protocol = values["protocols"].pop("paper")
    for point in protocol["points"]:
        point["methods"][evil] = point["methods"].pop("SUM")
    values["protocols"] = {evil: protocol}
    path = tmp_path / "evil.json"
    path.write_text(json.dumps(values))
    code, out, _ = info(str(path))
    assert code == 0
    assert not set("\x1b\x07") & set(out)
    assert out.count("\\x1b[31m[bold]\\x07") == 6
