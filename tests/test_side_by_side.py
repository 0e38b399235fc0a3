"""Every cell of docs/side-by-side.md, executed and compared with dense NumPy arrays.

The page has a block of arrays, a block for each library that makes its objects of them, and tables: a
task, and a cell for each library. `references` has a dense array, or a number, for each task, made
with NumPy alone. The column of tnsum runs without any other library too.
"""

import ast
import os
import re
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oracle

PAGE = (Path(__file__).parent.parent / "docs" / "side-by-side.md").read_text(encoding="utf-8")
LIBRARIES = ("quimb", "TensorLy", "HOTTBOX", "tnsum")
HEADER = f"| task | {' | '.join(LIBRARIES)} |"
NEEDS_TORCH = "arrays of PyTorch"

Namespace = dict[str, Any]


# The page


@dataclass(frozen=True)
class Cell:
    """What stands in a cell: code, and whether it is said to build the whole tensor."""

    code: str
    is_dense: bool


def blocks() -> dict[str, str]:
    """The Python blocks of the page by the headings that they are under."""
    _, *parts = re.split(r"^##+ (.+)$", PAGE, flags=re.MULTILINE)
    bodies = zip(parts[::2], parts[1::2], strict=True)
    fence = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    found = [(heading, code) for heading, body in bodies for code in fence.findall(body)]
    assert [heading for heading, _ in found] == ["Set-up", *LIBRARIES]
    return dict(found)


def lines() -> list[str]:
    """The lines of all tables, without those at their heads."""
    return [line for line in PAGE.splitlines() if line.startswith("| ") and line != HEADER]


def tasks() -> dict[str, dict[str, Cell]]:
    """The cells of each task, by library; none where the page says '-'."""
    found: dict[str, dict[str, Cell]] = {}
    for line in lines():
        # A pipe inside of code would give a sixth part.
        task, *parts = [part.strip() for part in line[1:-1].split("|")]
        assert task not in found, f"{task!r} stands twice"
        matches = [re.fullmatch(r"`([^`]+)`( \(dense\))?|-", part) for part in parts]
        assert all(matches), line
        cells = zip(LIBRARIES, matches, strict=True)
        found[task] = {name: Cell(m[1], m[2] is not None) for name, m in cells if m and m[1]}
    return found


def n_shown(library: str) -> int:
    """How many pieces of code the column of a library has."""
    column = 2 + LIBRARIES.index(library)
    return sum(line.split("|")[column].count("`") for line in lines()) // 2


# Results of any library, looked at


def library_of(result: Any) -> str:
    return type(result).__module__.partition(".")[0]


def quimb_inds(x: Any) -> list[str]:
    """The outer indices in the order of the tensors, those of an operator all upper ones first."""
    if hasattr(x, "upper_inds"):
        return [*x.upper_inds, *x.lower_inds]
    return [ind for tensor in x for ind in tensor.inds if ind in x.outer_inds()]


ARRAY: dict[str, Callable[[Any], Any]] = {
    "quimb": lambda x: x.to_dense(*([ind] for ind in quimb_inds(x))),
    "tensorly": lambda x: x.to_tensor(),
    "hottbox": lambda x: x.reconstruct().data if hasattr(x, "reconstruct") else x.data,
    "tnsum": lambda x: x.contract(),
}
NAMES: dict[str, Callable[[Any], Any]] = {
    "quimb": quimb_inds,
    "hottbox": lambda x: x.mode_names,
    "tnsum": lambda x: x.physical_modes,
}
RANKS: dict[str, Callable[[Any], Any]] = {
    "quimb": lambda x: x.bond_sizes(),
    "tensorly": lambda x: x.rank,
    "hottbox": lambda x: x.rank,
    "tnsum": lambda x: x.ranks,
}


def array(result: Any) -> Any:
    """The tensor of a network, or an array or a list of numbers itself, in the array library it has."""
    return ARRAY.get(library_of(result), lambda x: x)(result)


def dense(result: Any) -> Any:
    return np.asarray(array(result))


def names_of(result: Any) -> tuple[str, ...]:
    return tuple(NAMES[library_of(result)](result))


def listed(ranks: Any) -> tuple[int, ...]:
    """Ranks from a list, a tuple or a mapping, without those 1 that TensorLy has at the ends."""
    return tuple(n for n in (ranks.values() if hasattr(ranks, "values") else ranks) if n != 1)


def ranks_of(result: Any) -> tuple[int, ...]:
    return listed(RANKS[library_of(result)](result))


# What must come out


@dataclass(frozen=True)
class Reference:
    """What is expected of a task.

    Attributes
    ----------
    expected : array, number, or whatever is compared by ==; or a tuple of these
    seen : callable
        What of a result is compared with it.
    tolerance : float
        The relative error that is allowed to arrays and numbers.
    maker : str, optional
        The library whose object the result is: "own" for that of the column.
    """

    expected: Any
    seen: Callable[[Any], Any] = dense
    tolerance: float = 1e-12
    maker: str | None = None


def network(expected: Any, maker: str = "own") -> Reference:
    return Reference(expected, maker=maker)


def train(cores: Any) -> Any:
    return np.einsum("aib,bjc,ckd,dle->ijkl", *cores)


def tucker(core: Any, factors: Any) -> Any:
    return np.einsum("abc,ia,jb,kc->ijk", core, *factors)


def grid(rows: Any) -> Any:
    return np.einsum("aci,bdaj,ebk,cfl,dgfm,egn->ijklmn", *rows[0], *rows[1])


def superdiagonal(first: Any, second: Any) -> Any:
    blocks = np.zeros(np.add(first.shape, second.shape))
    blocks[tuple(slice(n) for n in first.shape)] = first
    blocks[tuple(slice(n, None) for n in first.shape)] = second
    return blocks


def references(n: Namespace) -> dict[str, Reference]:
    """What is expected of each task, from the arrays of the page."""
    x, y, z, _, *trains = map(train, n["train_cores"])
    u, v, c, *tuckers = (tucker(*arrays) for arrays in n["tucker_arrays"])
    p, q = (np.einsum("r,ir,jr,kr->ijk", a, *factors) for a, factors in n["cp_arrays"])
    g, h = grid(n["rows"]), grid(n["other_rows"])
    triangle = np.einsum("iab,jbc,kca->ijk", n["X"], n["Y"], n["Z"])
    # Exact: the subtraction of the nearly equal cores has no rounding error.
    change = train([n["near_cores"][0] - n["x_cores"][0], *n["x_cores"][1:]])
    shape, ranks = (4, 3, 2, 5), (2, 3, 2)
    norm = np.linalg.norm
    return {
        # Building
        "a tensor train": network(x),
        "a tensor ring": network(np.einsum("aib,bjc,cka->ijk", *n["ring_cores"])),
        "an operator": network(np.einsum("zaib,bcjd,dekz->aceijk", *n["operator_cores"])),
        "a Tucker network": network(u),
        "a CP network": network(p),
        "a grid": network(g),
        "any graph": network(triangle),
        "any graph, all names chosen": Reference(
            (("row", "column", "time"), n["A"] @ n["G"].reshape(2, 6)),
            lambda r: (names_of(r), dense(r).reshape(4, 6)),
        ),
        "a random train like x": Reference(
            (shape, ranks, False),
            lambda r: (dense(r).shape, ranks_of(r), np.allclose(dense(r), x)),
        ),
        "a train of a dense array": network(x),
        # Looking
        "shape": Reference(shape, tuple),
        "ranks": Reference(ranks, listed),
        "number of parameters": Reference(sum(core.size for core in n["x_cores"]), int),
        "names of the modes": Reference(4, lambda names: len(set(names))),
        # Its axes are in an order of quimb's own.
        "array of one node": Reference(
            np.sort(n["x_cores"][1], axis=None), lambda r: np.sort(r, axis=None)
        ),
        "dense array": Reference(x),
        "dense array, CP": Reference(p),
        "one entry": Reference(x[1, 2, 0, 4]),
        "many entries": Reference(np.asarray([x[1, 2, 0, 4], x[3, 0, 1, 2]])),
        "slice with one index": network(x[1]),
        "slice with a range": network(x[1:3]),
        "rename a mode": Reference(("time", x), lambda r: (names_of(r)[0], dense(r))),
        # Adding
        "two trains": network(x + y),
        "difference of two trains": network(x - y),
        "weighted sum of trains": network(2 * x - y),
        "ten trains": network(sum(trains)),
        "mean of ten trains": network(np.mean(trains, axis=0)),
        "ranks of the sum of two trains": Reference((3, 5, 5), listed),
        "two grids": network(g + h),
        "two Tucker networks": network(u + v),
        "weighted sum of Tucker networks": network(2 * u - v),
        "ten Tucker networks": network(sum(tuckers)),
        "Tucker networks with other names": network(u + v),
        "a real and a complex Tucker network": network(u + c),
        "ranks of the sum of Tucker networks": Reference((5, 4, 4), listed),
        "core of that sum, with its zeros": Reference(superdiagonal(n["G"], n["H"])),
        "two CP networks": network(p + q),
        "the sum of x and x in the ranks of x": Reference(
            (2 * x, ranks), lambda r: (dense(r), ranks_of(r))
        ),
        # Measuring
        "norm": Reference(norm(x)),
        "norm of a CP network": Reference(norm(p)),
        "norm of a sum of ten": Reference(norm(sum(trains))),
        "inner product, the first conjugated": Reference(np.sum(z.conj() * x)),
        "distance": Reference(norm(x - y)),
        # The two cores differ by 1e-10, which leaves six digits.
        "relative distance near 1e-10": Reference(norm(change) / norm(x), tolerance=1e-5),
        # Keeping and converting
        "save to a file": Reference(1, lambda _: len(os.listdir())),
        "load it": network(x),
        "complex conjugate": network(z.conj()),
        "single precision": Reference(
            ("float32", x), lambda r: (dense(r).dtype.name, dense(r)), 1e-6, "own"
        ),
        NEEDS_TORCH: Reference(
            ("torch", x), lambda r: (library_of(array(r)), dense(r)), maker="own"
        ),
        "einsum equation and arrays": Reference(x, lambda r: np.einsum(r[0], *r[1])),
        "a train to tnsum": network(x, "tnsum"),
        "a Tucker network to tnsum": network(u, "tnsum"),
        "a CP network to tnsum": network(p, "tnsum"),
        "a train from tnsum": network(x),
        "a Tucker network from tnsum": network(u),
        "a CP network from tnsum": network(p),
        "trains added by tnsum, and back": network(x + y),
    }


# Executing


def value(code: str, namespace: Namespace) -> Any:
    """What an expression gives, or, after statements, the last expression or the last name assigned."""
    *_, last = statements = ast.parse(code).body
    if isinstance(last, ast.Expr):
        exec(compile(ast.Module(statements[:-1], []), code, "exec"), namespace)
        return eval(compile(ast.Expression(last.value), code, "eval"), namespace)
    assert isinstance(last, ast.Assign), code
    exec(code, namespace)
    return namespace[ast.unparse(last.targets[0])]


def fault(result: Any, reference: Reference, maker: str | None) -> str:
    """What is wrong with a result; empty if nothing is."""
    if maker and library_of(result) != maker.lower():
        return f"made by {library_of(result)}, not {maker}"
    found, expected = reference.seen(result), reference.expected
    pairs = [(found, expected)]
    if isinstance(expected, tuple):
        pairs = [*zip(found, expected, strict=True)]
    for one, other in pairs:
        if not isinstance(other, np.ndarray | float | complex):
            if one != other:
                return f"{one!r} instead of {other!r}"
        elif not (error := oracle.relative_error(one, other)) <= reference.tolerance:
            return f"a relative error of {error:.1e}"
    return ""


def faults(library: str, without: Collection[str] = ()) -> tuple[int, dict[str, str]]:
    """How many cells of a library have been executed, and what is wrong with which."""
    setup, n_executed, found = blocks(), 0, {}
    namespace: Namespace = {}
    exec(setup["Set-up"], namespace)
    expected = references(namespace)
    exec(setup[library], namespace)
    for task, cells in tasks().items():
        if library not in cells or task in without:
            continue
        cell, reference = cells[library], expected[task]
        maker = library if reference.maker == "own" else reference.maker
        n_executed += 1
        try:
            result = value(cell.code, namespace)
            wrong = fault(result, reference, None if cell.is_dense else maker)
        except Exception as error:
            wrong = repr(error)
        if wrong:
            found[task] = f"{cell.code}: {wrong}"
        if "tl" in namespace:
            # One cell of TensorLy's sets this for the whole program.
            namespace["tl"].set_backend("numpy")
    return n_executed, found


@pytest.mark.large
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_cell_does_its_task(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        if library != "tnsum":
            # The warnings of others are their own.
            warnings.simplefilter("ignore")
        for module in (library.lower(), "torch"):
            pytest.importorskip(module, exc_type=ImportError)
        assert faults(library) == (n_shown(library), {})


@pytest.mark.large
@pytest.mark.parametrize("library", LIBRARIES[:-1])
def test_page_names_the_versions_that_it_is_executed_with(library: str) -> None:
    assert f"{library} {version(library)}" in PAGE


def test_cells_of_tnsum_do_their_tasks_without_other_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert faults("tnsum", without=[NEEDS_TORCH]) == (n_shown("tnsum") - 1, {})


def test_every_task_has_a_reference_and_every_reference_a_task() -> None:
    namespace: Namespace = {}
    exec(blocks()["Set-up"], namespace)
    assert [*references(namespace)] == [*tasks()]


def test_cells_are_marked_that_build_the_whole_tensor() -> None:
    # TensorLy's norm of a train, but not that of a CP tensor, does so.
    builds = re.compile(r"\.to_tensor\(|\.reconstruct\(|tl\.einsum\(|^x\.norm\(")
    for task, cells in tasks().items():
        for library, cell in cells.items():
            may = library in ("TensorLy", "HOTTBOX") and not task.startswith("dense array")
            assert cell.is_dense == (may and bool(builds.search(cell.code))), cell.code
