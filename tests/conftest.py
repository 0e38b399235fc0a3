"""What all tests share: the same examples in every run, and another processor's rounding on request.

A change is judged by what it does, not by the luck of a draw. `--hypothesis-profile hunt` draws others.
`--shake SEED` rounds as another processor might: see `shaking`.
"""

from pathlib import Path

import pytest
from hypothesis import settings

from shaking import shake

settings.register_profile("same", derandomize=True)
settings.register_profile("hunt", derandomize=False, print_blob=True)
settings.load_profile("same")

NUMERICAL = {
    "test_accumulator.py",
    "test_compression.py",
    "test_decomposition.py",
    "test_decomposition_stack.py",
    "test_fitting.py",
    "test_fusion.py",
    "test_gradients.py",
    "test_leading.py",
    "test_matrices.py",
    "test_measures.py",
    "test_network.py",
    "test_oracle.py",
    "test_sketch_parts.py",
    "test_sums.py",
}
"""Files whose tests get the marker `numerical`, because they depend on how numbers are rounded. Tests
that measure memory do not get it.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shake",
        type=int,
        metavar="SEED",
        help="round as another processor might: see tests/shaking.py",
    )


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("shake")
    if seed is not None:
        shake("tnsum", seed)


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("shake")
    return None if seed is None else f"rounding: shaken with seed {seed}"


# Before the markers are asked for by -m.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.path).name in NUMERICAL and "memory" not in item.name:
            item.add_marker("numerical")
