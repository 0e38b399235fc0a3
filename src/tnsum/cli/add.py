"""`tnsum add`: the weighted sum of files."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias, cast

import click

from tnsum.addition import add as add_networks
from tnsum.cli._description import in_one_line
from tnsum.cli._output import say
from tnsum.network import Network
from tnsum.storage import load, save
from tnsum.topology import printable

_MOST_MAPPED = 200

Number: TypeAlias = float | complex


def _numbers(
    context: click.Context, option: click.Parameter, text: str | None
) -> list[Number] | None:
    """Numbers between commas: decimals, fractions or complex numbers."""
    return None if text is None else [_number(part.strip()) for part in text.split(",")]


def _number(text: str) -> Number:
    kinds: tuple[Callable[[str], Number], ...] = float, _quotient, complex
    for kind in kinds:
        with suppress(ValueError, ZeroDivisionError):
            number = kind(text)
            if cmath.isfinite(number):
                return number
    raise click.BadParameter(f"{text!r} is no finite number; write for instance 1,-2.5,1/3,2+1j.")


def _quotient(text: str) -> float:
    above, below = text.split("/")
    return float(above) / float(below)


@click.command(
    short_help="Write the weighted sum of files.",
    epilog="""\b
Examples:
  tnsum add a.safetensors b.safetensors -o sum.safetensors
  tnsum add a.safetensors b.safetensors c.safetensors --weights 1,-2.5,1/3 -o sum.safetensors
""",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--weights",
    metavar="W,W,...",
    callback=_numbers,
    help="One number for each file, ones by default: decimals, fractions, complex numbers.",
)
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write."
)
@click.option(
    "--explicit", is_flag=True, help="Write the explicit block network, not the lazy sum."
)
def add(
    files: tuple[str, ...],
    weights: list[Number] | None,
    output: str,
    explicit: bool,
) -> None:
    """Write the weighted sum of FILES, which hold networks, sums or stacks of one topology.

    The sum is lazy: the summands are stored side by side, nothing is computed or compressed. An older
    OUTPUT is replaced when the new one is complete; it may be one of FILES.
    """
    if weights is not None and len(weights) != len(files):
        raise click.BadParameter(
            f"there must be one for each file: {len(files)} files and {len(weights)} weights came.",
            param_hint="--weights",
        )
    # Each mapped file counts as an open one, of which a process has a thousand or so.
    memory_map = len(files) <= _MOST_MAPPED
    terms = [load(file, memory_map=memory_map) for file in files]
    # What else a file may hold is refused by `add`, in its words.
    total = add_networks(*cast("list[Network]", terms), weights=weights)
    written = total.to_network() if explicit else total
    save(output, written)
    say(f"{printable(output)}: {in_one_line(written)}")
