"""Accumulators in files: adding and compressing go on as before, to the bit; bad files are refused."""

import json
import math
import os
import random
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum
from compression_cases import comb, decaying, star, train
from fuzz_storage import put_together, saved, taken_apart
from libraries import library
from raising import unreached
from test_accumulator import are_near, are_same
from test_compression import fast, slow, with_arrays
from tnsum import NetworkError, _accumulator_files
from tnsum.cli import main
from tnsum.compression._accumulator import SumAccumulator


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def accumulator(nodes: Any, dtype: str = "float64", n: int = 3, seed: int = 4) -> Any:
    rng = np.random.default_rng(seed)
    x = decaying(nodes, 4, 3, slow, rng, dtype)
    found = SumAccumulator(x.topology, x.shape, 4, dtype, seed)
    for _ in range(n):
        found.add(decaying(nodes, 4, 3, slow, rng, dtype), 0.5)
    return found


def back(path: Path, a: SumAccumulator, **options: Any) -> SumAccumulator:
    tnsum.save(path, a)
    found = tnsum.load(path, **options)
    assert isinstance(found, SumAccumulator)
    return found


NODES = {
    "train": train(5),
    "Tucker": star(3),
    "comb": comb(2),
    "lone": {"A": ("i", "j")},
    "disconnected": {"A": ("i",), "B": ("j", "r"), "C": ("r", "k")},
    "odd names": {"psi": ("omega", "scales"), "": ("scales", "psi/"), "ω/1": ("psi/", "\n")},
}


@pytest.mark.parametrize("nodes", NODES.values(), ids=NODES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("memory_map", [True, False])
def test_adding_and_compressing_go_on(
    nodes: Any, dtype: str, memory_map: bool, tmp_path: Path
) -> None:
    a = accumulator(nodes, dtype)
    b = back(tmp_path / "a", a, memory_map=memory_map)
    assert repr(b) == repr(a)
    assert b.topology == a.topology
    y = decaying(nodes, 4, 2, fast, np.random.default_rng(9), dtype)
    for more in (False, True):
        if more:
            a.add(y, -2)
            b.add(y, -2)
        assert are_same(a, b)
        one, other = a.compress(1e-2), b.compress(1e-2)
        assert one.error == other.error
        for name, array in one.network.arrays.items():
            assert np.array_equal(array, other.network.arrays[name])
    b.merge(back(tmp_path / "a", a))
    assert b.n_summands == 2 * a.n_summands == 8


def test_an_empty_one(tmp_path: Path) -> None:
    a = accumulator(train(4), n=0)
    b = back(tmp_path / "a", a)
    assert repr(a) == repr(b)
    x = decaying(train(4), 4, 3, slow, np.random.default_rng(0))
    for one in (a, b):
        one.add(x)
    assert are_same(a, b)


def test_zero_and_extreme_scales_come_back(tmp_path: Path) -> None:
    x = decaying(train(5), 4, 3, slow, np.random.default_rng(0))
    for weights in ([0.0], [1e300, 1e300], [1e-300], [1, -1]):
        a = SumAccumulator(x.topology, x.shape, 3)
        for weight in weights:
            a.add(with_arrays(x, {n: 1e100 * array for n, array in x.arrays.items()}), weight)
        b = back(tmp_path / "a", a)
        assert are_same_sums(a, b)
        for one in (a, b):
            one.add(x)
        assert are_same_sums(a, b)
        assert a.compress().error == b.compress().error


def test_every_scale_belongs_to_its_node(tmp_path: Path) -> None:
    a = accumulator(comb(2))
    sums = a._sums
    for pairs in (sums.psi, sums.omega):
        pairs[:] = [(array, 16.0 * k) for k, (array, _) in enumerate(pairs)]
    sums.alone[:] = [float(k) for k in range(len(sums.alone))]
    assert are_same_sums(a, back(tmp_path / "a", a))


def are_same_sums(a: SumAccumulator, b: SumAccumulator) -> bool:
    ours, theirs = a._sums, b._sums
    assert ours is not None
    assert theirs is not None
    pairs = zip((*ours.psi, *ours.omega), (*theirs.psi, *theirs.omega), strict=True)
    same = all(np.array_equal(x, y) and d == e for (x, d), (y, e) in pairs)
    return same and ours.alone == theirs.alone


@pytest.mark.parametrize(
    "name", ["array_api_strict", pytest.param("torch", marks=pytest.mark.large)]
)
def test_the_library_is_that_of_the_first_term_after_loading(name: str, tmp_path: Path) -> None:
    of = library(name)
    x = decaying(train(4), 4, 3, slow, np.random.default_rng(1))
    y = with_arrays(x, {n: of.convert(1e50 * array) for n, array in x.arrays.items()})
    a = SumAccumulator(x.topology, x.shape, 4)
    a.add(y)
    free = back(tmp_path / "a", a)
    assert type(free.compress().network._some_array) is np.ndarray
    free.add(y)
    a.add(y)
    assert type(free.compress().network._some_array) is type(y._some_array)
    assert are_same_sums(a, free)
    with pytest.raises(NetworkError, match="All arrays must be of one library"):
        free.add(x)
    # Merging binds as well, either way round.
    for one, other in ((a, tnsum.load(tmp_path / "a")), (tnsum.load(tmp_path / "a"), a)):
        assert isinstance(one, SumAccumulator)
        assert isinstance(other, SumAccumulator)
        n = one.n_summands
        one.merge(other)
        assert one.n_summands == n + other.n_summands
        assert type(one.compress().network._some_array) is type(y._some_array)
        with pytest.raises(NetworkError, match="All arrays must be of one library"):
            one.add(x)
        one.add(y)


def test_many_files_are_merged(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    terms = [decaying(star(3), 9, 2, slow, rng) for _ in range(12)]
    whole = SumAccumulator(terms[0].topology, terms[0].shape, 5)
    for k, (x, y) in enumerate(pairwise(terms)):
        part = SumAccumulator(x.topology, x.shape, 5)
        part.add(x, k)
        part.add(y)
        whole.add(x, k)
        whole.add(y)
        tnsum.save(tmp_path / f"{k}", part)
    merged = SumAccumulator(terms[0].topology, terms[0].shape, 5)
    for path in sorted(tmp_path.iterdir(), reverse=True):
        merged.merge(tnsum.load(path))  # type: ignore[arg-type]
    assert merged.n_summands == 22
    assert are_near(whole, merged, 1e-15)


def test_the_file_is_as_the_format_says(tmp_path: Path) -> None:
    a = accumulator(train(3), "complex64")
    header, data = taken_apart(saved(a))
    description = json.loads(header["__metadata__"]["tnsum"])
    assert description == {
        "version": 1,
        "kind": "accumulator",
        "nodes": [{"name": name, "modes": list(held)} for name, held in train(3).items()],
        "physical_modes": ["i0", "i1", "i2"],
        "shape": [4, 4, 4],
        "max_rank": 4,
        "dtype": "complex64",
        "seed": 4,
        "rule": 2,
        "summands": 3,
    }
    del header["__metadata__"]
    # Ranks are at most 4, so at most 14 test tensors lie below, and 40 above, besides the 32 apart.
    assert {name: entry["shape"] for name, entry in header.items()} == {
        "psi/n0": [4, 72, 2],
        "psi/n1": [16, 72, 2],
        "psi/n2": [56, 1, 2],
        "omega/n0": [4, 72, 2],
        "omega/n1": [14, 72, 2],
        "scales": [3, 3],
    }
    assert len(data) == 4 * 2 * (4 * 72 + 16 * 72 + 56 + 4 * 72 + 14 * 72) + 8 * 9
    assert a.n_parameters == 4 * 72 + 16 * 72 + 56 + 4 * 72 + 14 * 72


# what is refused


WHOLE = saved(accumulator(train(3)))


def changed(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> bytes:
    header, data = taken_apart(WHOLE)
    description = json.loads(header["__metadata__"]["tnsum"])
    change(header, description)
    header["__metadata__"]["tnsum"] = json.dumps(description)
    return put_together(header, data)


def described(**new: Any) -> bytes:
    return changed(lambda _, description: description.update(new))


def with_number(name: str, place: int, number: float) -> bytes:
    """The file with another number in a tensor."""
    header, data = taken_apart(WHOLE)
    at = header[name]["data_offsets"][0] + 8 * place
    return put_together(header, data[:at] + np.float64(number).tobytes() + data[at + 8 :])


def with_shape(name: str, shape: list[int]) -> bytes:
    return changed(lambda header, _: header[name].update(shape=shape))


SHAPE = (
    "shape must be one positive integer for each of the physical modes ('i0', 'i1', 'i2'); {} came."
)
RULE = "its test tensors must follow rule 2; {} came. Take the tnsum that wrote it."
RING = [{"name": "A", "modes": ["r", "s"]}, {"name": "B", "modes": ["r", "s"]}]
REFUSED: dict[str, tuple[bytes, str]] = {
    "no rule": (described(rule=None), RULE.format(None)),
    "older rule": (described(rule=1), RULE.format(1)),
    "newer rule": (described(rule=3), RULE.format(3)),
    "rule true": (described(rule=True), RULE.format(True)),
    "rule 2.0": (described(rule=2.0), RULE.format(2.0)),
    "dtype": (described(dtype="int64"),
              "its dtype must be of ('float32', 'float64', 'complex64', 'complex128'); 'int64' came"),
    "dtype a list": (described(dtype=["float64"]),
                     "its dtype must be of ('float32', 'float64', 'complex64', 'complex128'); "
                     "['float64'] came"),
    "another dtype": (described(dtype="float32"),
                      "tensor 'psi/n0' must be of F32, to hold float32; F64 of shape (4, 72) came"),
    "complex dtype": (described(dtype="complex128"),
                      "tensor 'psi/n0' must be of F64 with a last axis of size 2, to hold complex128; "
                      "F64 of shape (4, 72) came"),
    "summands": (described(summands=-1), "its summands must be counted; -1 came"),
    "summands true": (described(summands=True), "its summands must be counted; True came"),
    "no summands": (described(summands=0), "it has 6 tensors, but its description needs 0"),
    "no shape": (described(shape=None), SHAPE.format("(None,)")),
    "shape a text": (described(shape="444"), SHAPE.format("('4', '4', '4')")),
    "shape too short": (described(shape=[4, 4]), SHAPE.format("(4, 4)")),
    "size zero": (described(shape=[4, 0, 4]), SHAPE.format("(4, 0, 4)")),
    "size true": (described(shape=[4, True, 4]), SHAPE.format("(4, True, 4)")),
    "another size": (described(shape=[4, 5, 4]),
                     "tensor 'psi/n1' must have shape (20, 72); (16, 72) came"),
    "a huge size": (described(shape=[4, 10**400, 4]),
                    "What is accumulated must fit into memory"),
    "no max_rank": (described(max_rank=None), "max_rank must be an integer of at least 1; None came."),
    "max_rank zero": (described(max_rank=0), "max_rank must be an integer of at least 1; 0 came."),
    "another max_rank": (described(max_rank=3),
                         "tensor 'psi/n2' must have shape (52, 1); (56, 1) came"),
    "no seed": (described(seed=None), "seed must be an integer of at least 0; None came."),
    "seed a text": (described(seed="0"), "seed must be an integer of at least 0; '0' came."),
    "no tree": (described(nodes=RING, physical_modes=[], shape=[]),
                "A SumAccumulator needs a tree, in which each contraction mode joins two nodes and no "
                "two ways lead from one node to another; a topology with 2 nodes and 2 contraction "
                "modes that is none came."),
    "a node more": (described(nodes=[{"name": n, "modes": m} for n, m in train(4).items()],
                              physical_modes=["i0", "i1", "i2", "i3"], shape=[4] * 4),
                    "it has 6 tensors, but its description needs 8"),
    "another name": (described(nodes=[{"name": f"m{n}", "modes": m} for n, m in train(3).items()]),
                     "tensor 'psi/mn0' is missing"),
    "scales missing": (changed(lambda header, _: header.update(scale=header.pop("scales"))),
                       "tensor 'scales' is missing"),
    "scales turned": (with_shape("scales", [9]), "tensor 'scales' must have shape (3, 3); (9,) came"),
    "psi turned": (with_shape("psi/n1", [72, 16]),
                   "tensor 'psi/n1' must have shape (16, 72); (72, 16) came"),
    "omega turned": (with_shape("omega/n1", [72, 14]),
                     "tensor 'omega/n1' must have shape (14, 72); (72, 14) came"),
    "scale nan": (with_number("scales", 3, math.nan),
                  "tensor 'scales' must hold exponents of at most 2**40; some are not"),
    "scale infinite": (with_number("scales", 0, -math.inf),
                       "tensor 'scales' must hold exponents of at most 2**40; some are not"),
    "norm infinite": (with_number("scales", 2, math.inf),
                      "tensor 'scales' must hold exponents of at most 2**40; some are not"),
    "scale huge": (with_number("scales", 0, 2.0**41),
                   "tensor 'scales' must hold exponents of at most 2**40; some are not"),
    "psi huge": (with_number("psi/n1", 7, 1e300),
                 "tensor 'psi/n1' must hold numbers of at most 2**60; some are not"),
    "psi nan": (with_number("psi/n1", 7, math.nan),
                "tensor 'psi/n1' must hold numbers of at most 2**60; some are not"),
    "omega infinite": (with_number("omega/n0", 0, math.inf),
                       "tensor 'omega/n0' must hold numbers of at most 2**60; some are not"),
}  # fmt: skip


@pytest.mark.parametrize("memory_map", [True, False])
@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(data: bytes, reason: str, memory_map: bool, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(NetworkError) as raised:
        tnsum.load(path, memory_map=memory_map)
    found = str(raised.value).removeprefix(f"{str(path)!r} cannot be loaded: ")
    assert found.startswith(reason) if "memory" in reason else found == reason


def test_single_nodes_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a"
    tnsum.save(path, accumulator(train(3)))
    with pytest.raises(NetworkError) as raised:
        tnsum.load(path, ["n0"])
    assert str(raised.value) == (
        f"{str(path)!r} cannot be loaded: it holds an accumulator, of which single nodes cannot be "
        f"loaded"
    )


def test_every_raise_is_in_the_table(tmp_path: Path) -> None:
    def call(data: bytes, nodes: list[str] | None = None) -> Callable[[], None]:
        def inner() -> None:
            (tmp_path / "bad").write_bytes(data)
            try:
                tnsum.load(tmp_path / "bad", nodes)
            except NetworkError as error:
                raise (error.__cause__ or error) from None

        return inner

    calls = [call(WHOLE, ["n0"]), *(call(data) for data, _ in REFUSED.values())]
    assert not unreached([Path(_accumulator_files.__file__)], calls)


def test_damaged_files_are_refused_or_hold_what_they_say(tmp_path: Path) -> None:
    rng = random.Random(0)
    path = tmp_path / "bad"
    n_loaded = 0
    for _ in range(400):
        data = bytearray(WHOLE)
        length = int.from_bytes(data[:8], "little")
        for _ in range(rng.randint(1, 3)):
            # Mostly in the header: the rest are numbers, of which all are right but those not finite.
            where = rng.randrange(len(data)) if rng.random() < 0.2 else rng.randrange(8 + length)
            data[where] = rng.choice([rng.randrange(256), ord(rng.choice('0123456789"[]{}:,-e.'))])
        path.write_bytes(bytes(data))
        with suppress(NetworkError):
            a = tnsum.load(path)
            n_loaded += 1
            assert isinstance(a, SumAccumulator)
            c = a.compress()
            assert c.network.shape == a.shape
            assert not math.isnan(c.error)
    assert 20 < n_loaded < 200


def test_a_large_description_is_refused_quickly(tmp_path: Path) -> None:
    nodes = [{"name": name, "modes": list(held)} for name, held in star(20_000).items()]
    modes = [f"i{k}" for k in range(20_000)]
    path = tmp_path / "bad"
    path.write_bytes(described(nodes=nodes, physical_modes=modes, shape=[4] * 20_000))
    with pytest.raises(NetworkError):
        tnsum.load(path)


# the command


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


def test_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a")
    a = accumulator(train(3))
    tnsum.save(path, a)
    assert run("info", path) == 0
    text = " ".join(capsys.readouterr().out.split())
    n = a.n_parameters
    assert f"accumulator of 3 networks of order 3, shape (4, 4, 4), float64, {n} parameters" in text
    assert "Ranks are the largest that compressing it may give. Its seed is 4." in text
    assert "norm: not computed of an accumulator; that of a.compress().network is near it" in text
    assert run("info", "--json", path) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["kind"], values["networks"]) == ("accumulator", 3)
    assert (values["max_rank"], values["seed"], values["norm"]) == (4, 4, None)
    assert sum(node["parameters"] for node in values["nodes"]) == values["parameters"] == n
    sizes = {mode["name"]: mode["size"] for mode in values["modes"]}
    assert sizes == {"i0": 4, "i1": 4, "i2": 4, "r0": 4, "r1": 4}


def test_the_command_does_not_add_accumulators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = str(tmp_path / "a"), tmp_path / "sum"
    tnsum.save(path, accumulator(train(3)))
    assert run("add", path, "-o", str(output)) == 1
    assert "SumAccumulator came." in capsys.readouterr().err
    assert not output.exists()
