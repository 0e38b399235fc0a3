"""`tnsum info`: what a file holds."""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from typing import Any

import click
import numpy as np

from tnsum._packing import CLASSIFIER
from tnsum._tensor_files import opened, parsed_json
from tnsum.cli._description import (
    as_values,
    classifier_as_values,
    classifier_in_one_line,
    confusion_table,
    expectation,
    in_one_line,
    mode_rows,
    node_rows,
)
from tnsum.cli._kinds import JSON, Kind, kind_of, told
from tnsum.cli._libraries import libraries_needed
from tnsum.cli._output import print_table, say, working
from tnsum.cli._runs import run_file
from tnsum.compression._accumulator import SumAccumulator
from tnsum.errors import NetworkError
from tnsum.measures import norm
from tnsum.network import Network, NetworkStack
from tnsum.storage import load
from tnsum.summation import NetworkSum
from tnsum.topology import printable

_SHOWN = 40
_MOST_NORMS = 1000


def _no_folder(context: click.Context, argument: click.Parameter, file: str) -> str:
    """The file, if it is none but a folder."""
    if os.path.isdir(file):
        results = os.path.join(file, "results.json")
        name = f"name its {results!r}" if os.path.isfile(results) else "name a file in it"
        raise click.BadParameter(f"{file!r} is a folder; {name}.")
    return file


@click.command(
    short_help="Show what a file holds.",
    epilog="""\b
Examples:
  tnsum info sum.safetensors
  tnsum info sum.safetensors --json | jq .parameters
  tnsum info reproduction/results.json
""",
)
@click.argument("file", type=click.Path(exists=True), callback=_no_folder)
@click.option("--norm/--no-norm", "with_norm", default=True, help="Compute the norm (the default).")
@click.option("--all", "show_all", is_flag=True, help=f"Show more than {_SHOWN} nodes and modes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def info(file: str, with_norm: bool, show_all: bool, as_json: bool) -> None:
    """Show what FILE holds: nodes, modes, sizes, ranks, parameters, dtype, norm.

    Only the norm reads the data; the rest comes from the header. Of a classifier, what `tnsum fit` made,
    it shows classes, kernel, expected accuracy and what is mistaken for what; of the JSON files of
    `tnsum reproduce`, what was run and how accurate it was.
    """
    # What is no file, as a pipe, is refused below without being read.
    kind = kind_of(file) if os.path.isfile(file) else None
    if kind is not None:
        _show_other(file, kind, as_json)
        return
    if _holds_classifier(file):
        _show_classifier(file, as_json)
        return
    x = load(file)
    values = {"file": file, "bytes": os.path.getsize(file), **as_values(x)}
    if as_json:
        if with_norm:
            values["norm"] = _norms(x)
        say(json.dumps(values, indent=2, allow_nan=False))
        return
    say(f"{printable(file)}: {in_one_line(x)}, {_in_words(values['bytes'])} on disk")
    shown = None if show_all else _SHOWN
    say()
    nodes = node_rows(values)
    print_table(["node", "modes", "#parameters"], nodes[:shown], _left_out(nodes, shown))
    say()
    modes = mode_rows(values)
    print_table(["mode", "kind", "#size", "nodes"], modes[:shown], _left_out(modes, shown))
    if isinstance(x, NetworkSum):
        say("\nSizes are those of the sum; the zeros between its blocks are not held.")
    if isinstance(x, SumAccumulator):
        say(f"\nRanks are the largest that compressing it may give. Its seed is {x.seed}.")
    if with_norm:
        say()
        with working("computing the norm"):
            found = _norms_in_words(x)
        say(found)


def _show_other(file: str, kind: Kind, as_json: bool) -> None:
    """What is no safetensors file: one of a run, or nothing of ours."""
    found = run_file(file) if kind.words == JSON else None
    if found is None:
        raise NetworkError(told(file, kind))
    n_bytes = os.path.getsize(file)
    if as_json:
        values = {"file": file, "bytes": n_bytes, "kind": found.kind, **found.contents.values}
        say(json.dumps(values, indent=2, allow_nan=False))
        return
    say(f"{printable(file)}: {found.kind} of `tnsum reproduce`, {_in_words(n_bytes)} on disk")
    for line in found.contents.lines:
        say(printable(line))
    for table in found.contents.tables:
        say(f"\n{printable(table.title)}".rstrip())
        print_table(table.columns, table.rows)


def _holds_classifier(file: str) -> bool:
    """Whether a file says so; what is wrong with it, the one who reads it will tell."""
    with suppress(NetworkError, OSError), opened(file, memory_map=False) as found:
        description = parsed_json(found.metadata.get("tnsum", ""), "its description")
        return isinstance(description, dict) and description.get("kind") == CLASSIFIER
    return False


def _show_classifier(file: str, as_json: bool) -> None:
    with libraries_needed("tnsum info of a classifier"):
        from tnsum.fusion._classifier_files import load_classifier
    x, n_bytes = load_classifier(file), os.path.getsize(file)
    if as_json:
        values = {"file": file, "bytes": n_bytes, **classifier_as_values(x)}
        say(json.dumps(values, indent=2, allow_nan=False))
        return
    say(f"{printable(file)}: {classifier_in_one_line(x)}, {_in_words(n_bytes)} on disk")
    say(f"\n{expectation(x)}\n")
    columns, rows, more = confusion_table(x)
    print_table(columns, rows, more)


def _norms(x: Any) -> Any:
    """The norm for JSON, null where there is none in numbers; of a stack one for each network."""
    if isinstance(x, NetworkStack):
        return [_norms(network) for network in x]
    with suppress(NetworkError):
        found = _norm(x)
        return found if math.isfinite(found) else None
    return None


def _norm(x: Network | NetworkSum) -> float:
    """The norm; one that no number can hold is infinite, without a warning."""
    with np.errstate(over="ignore"):
        return float(norm(x))


def _norms_in_words(x: Any) -> str:
    """The norm, or why there is none: the rest has been shown and is worth having."""
    if isinstance(x, SumAccumulator):
        return "norm: not computed of an accumulator; that of a.compress().network is near it"
    try:
        if not isinstance(x, NetworkStack):
            return f"norm {_norm(x):.6g}"
        if len(x) > _MOST_NORMS:
            return f"norms: not computed of more than {_MOST_NORMS} networks; --json does"
        found = [_norm(network) for network in x]
        return f"norms {min(found):.6g} to {max(found):.6g}"
    except NetworkError as error:
        return f"norm: not computed. {error}"


def _left_out(rows: list[Any], shown: int | None) -> str:
    n = 0 if shown is None else len(rows) - shown
    return f"... and {n} more; --all shows them" if n > 0 else ""


def _in_words(n_bytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
