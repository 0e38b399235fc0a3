"""Progress: nothing unless asked for, a bar on a terminal, a few lines elsewhere."""

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tnsum
from tnsum import _progress, compress
from tnsum.compression import _fitting

TRAIN = tnsum.tensor_train([np.ones((1, 9, 3)), *[np.ones((3, 9, 3))] * 18, np.ones((3, 9, 1))])
TREE = tnsum.tucker(np.ones((2, 2, 2)), [np.ones((40, 2))] * 3)
SUMS = {"train": TRAIN + 2 * TRAIN, "tree": TREE + TREE}


def test_nothing_is_printed_unless_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    compress(SUMS["train"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["direct", "sketch"])
@pytest.mark.parametrize("kind", SUMS)
def test_lines_off_a_terminal(kind: str, method: str, capfd: pytest.CaptureFixture[str]) -> None:
    compress(SUMS[kind], method=method, progress=True)
    out, err = capfd.readouterr()
    n = len(SUMS[kind].topology.nodes) + 1
    lines = err.splitlines()
    assert out == ""
    assert 1 < len(lines) <= 10
    assert lines[0].startswith("Compressing 2 summands: ")
    assert lines[0].endswith(f" of {n} steps")
    assert lines[-1] == f"Compressing 2 summands: done after {n} steps"


def test_a_bar_on_a_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    compress(SUMS["train"], progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Compressing 2 summands" in err
    assert "━" in err
    assert "steps" not in err


def test_more_steps_than_were_thought_of_do_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    with _progress.shown("Work", 2, True) as step:
        for _ in range(5):
            step()
    assert capfd.readouterr().err == "Work: 1 of 2 steps\nWork: done after 5 steps\n"


def test_a_fit_that_ends_early_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    ring = tnsum.tensor_ring([np.ones((2, 3, 2))] * 4)
    compress(ring + ring, max_rank=2, progress=True)
    assert re.search(
        r"Fitting 2 summands: done after \d+ steps, error \d\.\d\de-\d+\n$", capfd.readouterr().err
    )


def test_long_steps_are_not_silent(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_progress, "_SILENCE", 0.01)
    with _progress.shown("Work", 3, True) as step:
        waited_for(lambda: "Work: 0 of 3 steps, 0 s" in capfd.readouterr().err)
        step("half")
        waited_for(lambda: "Work: 1 of 3 steps, half, 0 s" in capfd.readouterr().err)
    assert "Work: done after 1 steps, half" in capfd.readouterr().err


def waited_for(is_so: Callable[[], bool]) -> None:
    for _ in range(3000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError


def test_fits_are_not_silent_before_their_first_sweep(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_progress, "_SILENCE", 0.01)

    def slow(*arguments: Any) -> Any:
        waited_for(lambda: "Fitting 2 summands: 0 of 500 steps, 0 s" in capfd.readouterr().err)
        return target_of(*arguments)

    target_of = _fitting.target_of
    monkeypatch.setattr(_fitting, "target_of", slow)
    ring = tnsum.tensor_ring([np.ones((2, 3, 2))] * 4)
    compress(ring + ring, max_rank=2, progress=True)
