"""What the JSON files of `tnsum reproduce` hold, as lines and tables.

Files are treated as hostile: what is not as it was written is refused. They are known by what they hold,
and shown without the libraries that the experiment needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tnsum._tensor_files import MOST_HEADER_BYTES, parsed_json
from tnsum.errors import NetworkError
from tnsum.storage import faults_named

Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table and the line above it; columns of numbers begin with `#`."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Contents:
    """What a file holds: some lines, some tables, and the same as values for JSON."""

    lines: Sequence[str]
    tables: Sequence[Table]
    values: Values


@dataclass(frozen=True)
class RunFile:
    """A file of a run: its kind, and what it holds."""

    kind: str
    contents: Contents


def run_file(path: str) -> RunFile | None:
    """What a JSON file holds; None if it is none of `tnsum reproduce`.

    Raises
    ------
    NetworkError
        It is no valid JSON, too long, or not as it was written.
    """
    with faults_named(path, "loaded"):
        values = _read(path)
    kind = _kind_of(values)
    if kind is None:
        return None
    try:
        contents = _CONTENTS[kind](values)
        # Numbers that are too large are infinite, which JSON has not.
        json.dumps(contents.values, allow_nan=False)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise NetworkError(
            f"{path!r} must hold the {kind} of a run as `tnsum reproduce` writes it; it was changed."
        ) from None
    return RunFile(kind, contents)


def _read(path: str) -> Any:
    with open(path, "rb") as file:
        text = file.read(MOST_HEADER_BYTES + 1)
    if len(text) > MOST_HEADER_BYTES:
        raise NetworkError(f"it has more than {MOST_HEADER_BYTES} bytes")
    return parsed_json(text, "it")


def _kind_of(values: Any) -> str | None:
    """Which file of a run has such values."""
    if not isinstance(values, dict) or not values:
        return None
    for kind, names in _NAMES.items():
        if set(values) == names:
            return kind
    return "times" if all(map(_are_seconds, values.values())) else None


def _are_seconds(values: Any) -> bool:
    """Whether it says of methods, by name, how long they took."""
    return isinstance(values, dict) and all(isinstance(s, float | int) for s in values.values())


def accuracy(mean: float, std: float | None) -> str:
    """The mean of accuracies in per cent, and their standard deviation where there is one."""
    return f"{mean:.1f}" + ("" if std is None else f" ± {std:.1f}")


def _percent(fraction: float | None) -> str:
    return "new objects" if fraction is None else f"{100 * fraction:.6g} %"


def _settings(values: Values) -> Contents:
    data, settings = values["data"], values["settings"]
    shape = " x ".join(f"{size:d}" for size in data["shape"])
    fractions = ", ".join(map(_percent, settings["fractions"]))
    lines = [
        f"{data['images']:d} images of {shape}, {len(data['classes'])} classes: {data['source']}",
        f"protocols {', '.join(settings['protocols'])}; {settings['splits']:d} random splits at each of "
        f"{fractions}; seed {settings['seed']:d}",
        ", ".join(f"{name} {number}" for name, number in values["versions"].items()),
    ]
    return Contents(lines, [], {name: values[name] for name in ("data", "settings", "versions")})


def _results(values: Values) -> Contents:
    run, tables = _settings(values), []
    found: dict[str, list[dict[str, Any]]] = {}
    for name, protocol in values["protocols"].items():
        points = protocol["points"]
        methods = list(points[0]["methods"])
        rows, found[name] = [], []
        for point in points:
            of_methods = {method: point["methods"][method] for method in methods}
            cells = [accuracy(one["mean"], one["std"]) for one in of_methods.values()]
            rows.append([_percent(point["fraction"]), *cells])
            means = {method: one["mean"] for method, one in of_methods.items()}
            found[name].append({"fraction": point["fraction"], **means})
        title = f"{name}: accuracy in per cent, mean ± standard deviation"
        tables.append(Table(title, ["trained on", *(f"#{method}" for method in methods)], rows))
    return Contents(run.lines, tables, {**run.values, "accuracies": found})


def _split(values: Values) -> Contents:
    n_tested, fraction, number = sum(values["tested"]), values["fraction"], values["split"]
    which = f"{_percent(fraction)} trained on, split {number:d}"
    if fraction is None:
        which = f"object {number + 1:d} left out"
    rows, accuracies = [], {}
    for name, found in values["methods"].items():
        n_wrong = len(found["mistakes"])
        accuracies[name] = 100 * (1 - n_wrong / n_tested)
        numbers = f"{n_wrong}", f"{found['width']:.3g}", f"{found['seconds']:.1f}"
        rows.append([name, f"{accuracies[name]:.1f}", *numbers])
    line = f"{values['protocol']}, {which}: {values['trained']:d} trained on, {n_tested:d} tested"
    columns = ["method", "#accuracy, %", "#mistakes", "#kernel width", "#seconds"]
    names = "protocol", "fraction", "split", "trained", "tested"
    shown = {name: values[name] for name in names}
    return Contents([line], [Table("", columns, rows)], {**shown, "accuracies": accuracies})


def _times(values: Values) -> Contents:
    methods: dict[str, float] = {}
    for of_split in values.values():
        for name, seconds in of_split.items():
            methods[name] = methods.get(name, 0.0) + seconds
    rows = [[name, f"{seconds:.1f}"] for name, seconds in methods.items()]
    table = Table(f"{len(values)} splits", ["method", "#seconds in all"], rows)
    return Contents([], [table], {"splits": len(values), "seconds": methods})


_RUN = {"format", "data", "settings", "versions"}
_NAMES = {
    "settings": _RUN,
    "results": _RUN | {"protocols"},
    "split": {"sha256", "protocol", "fraction", "split", "trained", "tested", "methods"},
}
_CONTENTS: Mapping[str, Callable[[Values], Contents]] = {
    "settings": _settings, "results": _results, "split": _split, "times": _times,
}  # fmt: skip
