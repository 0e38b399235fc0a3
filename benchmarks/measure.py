"""Timing side by side, memory, and tables: what the benchmarks share.

Import this before NumPy: one BLAS thread is asked for here, and the oracles of the tests are found.
"""

import argparse
import math
import os
import platform
import re
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "VECLIB"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")

import numpy as np  # noqa: E402 - the number of threads is read when NumPy is imported

Work = Callable[[], Any]
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))


def interleaved(
    works: Mapping[str, Work], seconds: float, at_least: int = 3, at_most: int = 25
) -> dict[str, float]:
    """The median time of each work in seconds, all of them taking turns.

    A work is repeated until its own runs have taken `seconds`, within the given numbers of runs. The
    next turn is that of the work that has done the least part of its own: short ones are run several
    times between two runs of a long one, so that all are spread over the same time.
    """
    times: dict[str, list[float]] = {name: [] for name in works}

    def part_done(name: str) -> float:
        n = len(times[name])
        of_time = sum(times[name]) / seconds if seconds else math.inf
        return max(n / at_most, min(n / at_least, of_time))

    while pending := [name for name in works if part_done(name) < 1]:
        name = min(pending, key=part_done)
        start = time.perf_counter()
        result = works[name]()
        times[name].append(time.perf_counter() - start)
        del result
    return {name: statistics.median(taken) for name, taken in times.items()}


class _Gemm:
    """A matrix product to measure the machine by, and how many operations it makes."""

    def __init__(self, size: int = 1000) -> None:
        self.flops = 2 * size**3
        self._matrix = np.random.default_rng(0).standard_normal((size, size))

    def work(self) -> Any:
        return self._matrix @ self._matrix


gemm_rate = _Gemm()


def with_peak_memory(work: Work) -> tuple[Any, int]:
    """The result, and the bytes that Python and NumPy have asked for, at most at one time."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def slope(numbers: Sequence[int], times: Sequence[float]) -> float:
    """The exponent p of the power law time = c * number**p that fits best."""
    return float(np.polyfit(np.log(numbers), np.log(times), 1)[0])


def in_seconds(seconds: float) -> str:
    """A time with three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError


def in_bytes(n: float) -> str:
    """A number of bytes with three digits and a unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n / 1e3:.3g} kB"


class Report:
    """Prints each step as it comes, and keeps the tables for a Markdown file."""

    def __init__(self) -> None:
        self._text: list[str] = []

    def step(self, text: str) -> None:
        """Print one line that is not kept."""
        print(f"... {text}", flush=True)

    def text(self, text: str) -> None:
        """Print and keep a paragraph."""
        print(f"\n{text}\n", flush=True)
        self._text.append(text)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print and keep a table."""
        lines = [header, ["---"] * len(header), *rows]
        self.text("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines))

    def write(self, path: Path, title: str, command: str, packages: Sequence[str]) -> None:
        """Write what was kept, with the command, the versions and the number of cores.

        Other reports in the file stay as they are, each being what follows its title, and so do the
        sections of this one that were not run again.
        """
        versions = ", ".join(f"{name} {version(name)}" for name in packages)
        head = [
            title,
            f"```\n{command}\n```",
            f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores, one BLAS thread. "
            "Times are medians of runs that take turns in one process; ratios are theirs / ours.",
        ]
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        reports = _by_first_line(r"^# ", old)
        sections = _by_first_line(r"^## ", reports.get(title, ""))
        sections.pop(title, None)
        sections |= _by_first_line(r"^## ", "\n\n".join(self._text))
        reports[title] = "\n\n".join([*head, *(f"## {section}" for section in sections.values())])
        text = "\n\n".join(f"# {report}" for report in reports.values())
        path.write_text(text + "\n", encoding="utf-8")


def _by_first_line(mark: str, text: str) -> dict[str, str]:
    """The parts of a text that begin with a mark, without it, by their first lines."""
    return {p.split("\n", 1)[0]: p.strip() for p in re.split(mark, text, flags=re.M) if p.strip()}


def run(
    parts: Sequence[Callable[[Report, bool], None]], title: str, packages: Sequence[str], about: str
) -> None:
    """The command line of a benchmark: each part reports, quickly if asked, and all may be written."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the tables as Markdown")
    names = [part.__name__ for part in parts]
    parser.add_argument("--only", metavar="PART", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    report = Report()
    command = f"python benchmarks/{Path(sys.argv[0]).name} --write {options.write}"
    for part in [part for part in parts if part.__name__ in options.only]:
        part(report, options.quick)
        if options.write:
            # What is done is kept, if what follows is interrupted.
            report.write(options.write, title, command, packages)


def version(package: str) -> str:
    """The installed version of a package, or that it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"
