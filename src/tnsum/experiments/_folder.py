"""The folder of a run: its settings, and each split as it is done.

A split is a file that appears at one stroke, so that whatever ends a run leaves whole splits, and a
second start does the others. The settings say what they are splits of; other ones are refused, since
their splits have the same names.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tnsum._replacing import replacing
from tnsum.datasets import ImageSet
from tnsum.errors import NetworkError, UnsuitableError
from tnsum.experiments._outcomes import Outcome, outcome_from
from tnsum.experiments._splits import Split
from tnsum.storage import faults_named
from tnsum.topology import printable

# A file of settings is short. A mistake in a split is a line of this length, for each method.
_LONGEST = 2**20
_MISTAKE = 100

_WIDTH = 100

# Folders that processes share begin with this and the number of the one that made them.
_SHARED = ".tnsum-"
_ANEW = "Give another folder, or remove this one to start anew"


class RunFolder:
    """A folder that belongs to one run.

    Parameters
    ----------
    path : path
        A new or empty folder, or one of an earlier run.
    settings : mapping
        What was run on what, as values for JSON.

    Raises
    ------
    NetworkError
        The folder cannot be written to, holds other files, or a run with other settings.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._splits = self.path / "splits"
        self._make(self.path)
        # What a killed run leaves half-written is hidden.
        held = [name for name in os.listdir(self.path) if not name.startswith(".tnsum-")]
        if "settings.json" in held:
            self._check(settings)
        elif held:
            raise UnsuitableError(
                f"{_shown(path)} must be new, empty, or of an earlier run; it holds other files, such "
                f"as {_shown(min(held))}. Give another folder."
            )
        else:
            self.write("settings.json", as_json(settings))
        for name in ("splits", "figures"):
            self._make(self.path / name)
        self._clear()

    def _clear(self) -> None:
        """Remove what processes shared that were killed."""
        for folder in self.path.glob(f"{_SHARED}*-*"):
            number = folder.name.removeprefix(_SHARED).partition("-")[0]
            if number.isdecimal() and not _is_alive(int(number)):
                shutil.rmtree(folder, ignore_errors=True)

    def _make(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NetworkError(
                f"{_shown(path)} must be a folder that can be written to: {error.strerror}."
            ) from error

    def _check(self, settings: Mapping[str, Any]) -> None:
        known = read_json(self.path / "settings.json", _LONGEST)
        if known == settings:
            return
        known = known if isinstance(known, dict) else {}
        names = _differing(known, settings)
        raise UnsuitableError(
            f"{_shown(self.path)} must be of a run with the same settings; it is of one with other "
            f"{' and '.join(names) or 'settings'}. {_ANEW}."
        )

    def write(self, name: str, text: str | bytes) -> None:
        """Put a file there, at one stroke.

        Raises
        ------
        NetworkError
            It cannot be written.
        """
        path = self.path / name
        with faults_named(path, "written"), replacing(path) as file:
            file.write(text if isinstance(text, bytes) else text.encode("utf-8"))

    @contextmanager
    def shared(self) -> Iterator[str]:
        """A folder for what processes share, removed at the end, or by the next start if all are killed.

        Raises
        ------
        NetworkError
            It cannot be made.
        """
        with faults_named(self.path, "written to"):
            folder = TemporaryDirectory(prefix=f"{_SHARED}{os.getpid()}-", dir=self.path)
        with folder as path:
            yield path

    def store(self, outcome: Outcome) -> None:
        """Keep what came out of a split. Raises as `write` does."""
        values = outcome.as_values()
        kept = {"sha256": _digest(values), **values}
        self.write(f"splits/{outcome.split.name}.json", as_json(kept))

    def stored(self, splits: Iterable[Split], data: ImageSet) -> dict[Split, Outcome]:
        """The outcomes that are there.

        Raises
        ------
        NetworkError
            A file of a split does not hold what was written.
        """
        longest = _LONGEST + 4 * _MISTAKE * len(data)
        found = {}
        for split in splits:
            path = self._splits / f"{split.name}.json"
            if not path.exists():
                continue
            try:
                found[split] = outcome_from(_undigested(read_json(path, longest)), split, data)
            except NetworkError as error:
                raise NetworkError(
                    f"{_shown(path)} must hold a split as it was written; it does not. Remove it to "
                    f"have the split done again."
                ) from error
        return found


def _differing(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What is not as wanted, by name; within settings, each by its own name."""
    found = []
    for name, value in wanted.items():
        old = known.get(name)
        if name == "settings" and isinstance(old, dict) and isinstance(value, Mapping):
            found += _differing(old, value)
        elif old != value:
            found.append(name)
    return found


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _digest(values: Any) -> str:
    """What tells that values were not changed."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _undigested(values: Any) -> Any:
    """What was kept with its digest; None if it was changed."""
    if not isinstance(values, dict):
        return None
    kept = {name: value for name, value in values.items() if name != "sha256"}
    return kept if values.get("sha256") == _digest(kept) else None


def as_json(values: Any, indent: str = "") -> str:
    """Values as JSON for people: what fits into a line is in one line."""
    text = json.dumps(values, allow_nan=False)
    if len(text) <= _WIDTH or not isinstance(values, dict | list):
        return text
    more = f"{indent} "
    if isinstance(values, list):
        items = [as_json(value, more) for value in values]
        return "[\n" + ",\n".join(f"{more}{item}" for item in items) + f"\n{indent}]"
    items = [f"{json.dumps(name)}: {as_json(value, more)}" for name, value in values.items()]
    return "{\n" + ",\n".join(f"{more}{item}" for item in items) + f"\n{indent}}}"


def read_json(path: Path, longest: int) -> Any:
    """The values in a file of at most so many bytes.

    Raises
    ------
    NetworkError
        It is no JSON, is longer, or cannot be read.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(longest + 1)
        if len(text) <= longest:
            return json.loads(text)
    except (OSError, ValueError, RecursionError):
        pass
    raise NetworkError(
        f"{_shown(path)} must hold JSON of at most {longest} bytes; it does not. {_ANEW}."
    )


def _shown(path: str | os.PathLike[str]) -> str:
    return printable(os.fspath(path))
