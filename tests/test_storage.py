"""save and load: what comes back is what went in, to the bit; the real safetensors package agrees.

Files are read a second time by `fuzz_storage.decoded`, which follows docs/format.md and shares no code
with `src`. What is refused is in test_storage_hostile.py, what a killed process leaves behind in
test_storage_kill.py.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

import array_api_strict as strict
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

import tnsum
from fuzz_storage import (
    Saved,
    decoded,
    put_together,
    same_bits,
    saved,
    stored_summands,
    stored_terms,
    taken_apart,
)
from libraries import LARGE, library, network
from tnsum import Network, NetworkError, NetworkStack, NetworkSum, Topology
from topologies import BY_NAME, CASES, DTYPES, EQUAL_RANKS, Case, arrays

Array: TypeAlias = NDArray[Any]

ROOT = Path(__file__).parent.parent
FORMAT = (ROOT / "docs" / "format.md").read_text()

on_all = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
mapped_or_read = pytest.mark.parametrize("memory_map", [True, False], ids=["mapped", "read"])


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time would be that; what a power cut leaves behind cannot be tested here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def net(case: Case, which: int = 0, dtype: str = "float64", seed: int = 0) -> Network:
    return network(case, arrays(case, which, seed, dtype))


def stack(case: Case, dtype: str = "float64", n: int = 3) -> NetworkStack:
    return NetworkStack.from_networks([net(case, EQUAL_RANKS[0], dtype, k) for k in range(n)])


KINDS = {Network: "network", NetworkStack: "stack", NetworkSum: "sum"}
x, y, z = (net(BY_NAME["two_nodes"], which) for which in range(3))
stacked = stack(BY_NAME["two_nodes"])


def kinds(case: Case, dtype: str) -> Iterator[Saved]:
    """A network, a stack and a sum of everything."""
    yield net(case, 0, dtype)
    yield stack(case, dtype)
    other = {"float32": "complex128", "complex64": "float64"}.get(dtype, "float32")
    terms: list[Any] = [*(net(case, which, dtype) for which in (0, 2, 1)), stack(case, other)]
    yield tnsum.add(*terms, net(case, 0, other), terms[0], weights=[1, -2.5, 0, 1j, 3, 1])


def back(path: Path, x: Saved, **options: Any) -> Saved:
    tnsum.save(path, x)
    return tnsum.load(path, **options)


def terms_of(x: Saved) -> tuple[Network | NetworkStack, ...]:
    return x._terms if isinstance(x, NetworkSum) else (x,)


def assert_same(got: Saved, x: Saved) -> None:
    """Equal in everything that a user can see, arrays and weights to the bit, NumPy's or not."""
    assert type(got) is type(x)
    assert got.topology == x.topology
    assert list(got.topology.nodes) == list(x.topology.nodes)
    assert (got.physical_modes, got.shape) == (x.physical_modes, x.shape)
    assert got.dtype == np.dtype(str(x.dtype).removeprefix("array_api_strict."))
    assert [type(term) for term in terms_of(got)] == [type(term) for term in terms_of(x)]
    if isinstance(got, NetworkSum) and isinstance(x, NetworkSum):
        assert got.n_summands == x.n_summands
        assert_equal(got.weights, x.weights)
    for mine, theirs in zip(terms_of(got), terms_of(x), strict=True):
        assert mine.topology == theirs.topology
        assert list(mine.arrays) == list(theirs.arrays)
        for name in mine.arrays:
            assert type(mine.arrays[name]) is np.ndarray
            assert_equal(mine.arrays[name], theirs.arrays[name])


def assert_equal(got: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    native = expected.astype(expected.dtype.newbyteorder("="))
    assert (got.dtype, got.shape) == (native.dtype, native.shape)
    assert same_bits(got, native)


# round trips


@on_all
def test_everything_comes_back_to_the_bit(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for dtype in DTYPES:
        for x in kinds(case, dtype):
            assert_same(back(path, x), x)
            assert_same(tnsum.load(path, memory_map=False), x)
            check_by_the_words_of_the_format(path.read_bytes(), x)
    assert os.listdir(tmp_path) == ["x"]


def check_by_the_words_of_the_format(data: bytes, x: Saved) -> None:
    description, tensors = decoded(data)
    assert description["version"] == 1
    assert description["kind"] == KINDS[type(x)]
    assert [(node["name"], tuple(node["modes"])) for node in description["nodes"]] == [
        *x.topology.nodes.items()
    ]
    assert tuple(description["physical_modes"]) == x.physical_modes
    parts = stored_terms(data)
    assert len(tensors) == len(parts) * len(x.topology.nodes) + isinstance(x, NetworkSum)
    if isinstance(x, NetworkSum):
        found = stored_summands(data)
        for (one, _), summand in zip(found, x.summands, strict=True):
            for name, array in one.items():
                assert_equal(array, summand.arrays[name])
        assert_equal(np.asarray([weight for _, weight in found]).astype(x.weights.dtype), x.weights)
    else:
        for name, array in parts[0].items():
            assert_equal(array, x.arrays[name])


half = np.asarray(0.5, "float32")
turned = np.asarray(1j, "complex64")
WEIGHTS: dict[str, NetworkSum] = {
    "none": x + y,
    "one summand": +x,
    "one stack": stacked.sum(),
    "integers": 2 * x - 3 * y + 0 * z,
    "large integer": 2**70 * x + True * y,
    "all negative": -x - y,
    "fraction": Fraction(1, 3) * x + y / 7,
    "complex": 1j * x + (2 - 3j) * y,
    "complex ones": (1 + 0j) * x + (1 + 0j) * y,
    "one and complex": x + 1j * y + stacked.sum(),
    "complex one": +x * (1 + 0j),
    "stack of complex ones": stacked.sum([1 + 0j] * 3),
    "arrays without axes": half * x + turned * y,
    "products of arrays": (x * turned) * turned + (y * half) * half + (z * turned) * 3,
    "array": tnsum.add(x, y, z, weights=np.array([1, -0.0, 1e-320])),
    "array of float32": tnsum.add(x, y, weights=np.array([0.1, 3], "float32")),
    "array of complex64": tnsum.add(x, y, weights=np.array([0.1j, 3], "complex64")),
    "big-endian array": tnsum.add(x, y, weights=np.array([0.1, 3], ">f8")),
    "stack, array": stacked.sum(np.array([1, 2, 3])),
    "stack, ones": stacked.sum(np.ones(3)),
    "stack, all alike": 0.1 * stacked.sum(),
    "stack, without axes": stacked.sum() * half,
    "stack, array and more": 1j * stacked.sum([1, 2, 3]) + x,
    "not finite": math.nan * x + math.inf * y + complex(-math.inf, math.nan) * z,
    "sum of sums": 2 * (x + 3 * (y - z)) + (stacked.sum() + x) / 3,
    "mean": tnsum.mean(x, y, stacked, z),
    "mixed dtypes": x.astype("float32") + y.astype("complex64") + z + x.astype("complex128"),
    "float32 and a double weight": 0.1 * x.astype("float32") + y.astype("float32"),
    "stacks beside stacks": tnsum.add(stacked, stacked, stacked[:1], x, stacked[1:]),
    "other names": x + y.rename({"i": "a", "r": "b", "j": "c"}, {"A": "X", "B": "Y"}),
    "transposed": (x + 2 * y).transpose("j", "i"),
    "slice": tnsum.add(stacked[::-1], x, y).select(i=1),
}


@mapped_or_read
@pytest.mark.parametrize("s", WEIGHTS.values(), ids=WEIGHTS)
def test_weights_come_back(s: NetworkSum, memory_map: bool, tmp_path: Path) -> None:
    got = back(tmp_path / "s", s, memory_map=memory_map)
    assert_same(got, s)
    with np.errstate(all="ignore"):
        dense, expected = got.contract(), s.contract()
    # Not to the bit: products depend on where arrays lie.
    np.testing.assert_allclose(dense, expected, rtol=1e-14)
    assert dense.dtype == expected.dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_bits_of_numbers_come_back(dtype: str, tmp_path: Path) -> None:
    real = np.dtype(dtype.replace("complex64", "float32").replace("complex128", "float64"))
    info = np.finfo(real)
    special = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, info.smallest_subnormal, info.tiny]
    special += [-info.smallest_subnormal, info.max, info.min, info.eps]
    values = np.array(special, real)
    bits = values.view(f"u{real.itemsize}")
    bits[0] += 5  # a NaN with a message
    bits[1] ^= 1 << (info.nmant - 1) | 1  # one that signals
    array = np.stack([values, values[::-1]]).astype(real)
    array = array.view(dtype) if dtype.startswith("complex") else array
    x = Network({"A": (array, ("i", "j")), "B": (array.T, ("j", "k"))})
    several = NetworkStack(x.topology, {"A": array[None], "B": array.T[None]})
    for each in (x, x + x, several, several.sum()):
        assert_same(back(tmp_path / "x", each), each)
        assert_same(tnsum.load(tmp_path / "x", memory_map=False), each)


wide = np.random.default_rng(0).normal(size=(4, 6, 5)) * (1 + 0.5j)
LAYOUTS: dict[str, Any] = {
    "transposed": wide.transpose(2, 0, 1),
    "every second": wide[::2, 1::2, ::2],
    "backwards": wide[::-1, :, ::-2],
    "broadcast": np.broadcast_to(wide[:1, :1], (4, 6, 5)),
    "a number broadcast": np.broadcast_to(wide[0, 0, 0], (2, 1, 3)),
    "Fortran order": np.asfortranarray(wide),
    "sizes of one": wide[:1, :, :1].transpose(2, 1, 0),
    "read-only": np.frombuffer(wide.tobytes(), wide.dtype).reshape(wide.shape),
    "unaligned": np.frombuffer(b"..." + wide.tobytes(), wide.dtype, offset=3).reshape(4, 6, 5),
    "big-endian": wide.astype(">c16"),
    "big-endian, transposed": wide.astype(">c16").T,
    "imaginary part": wide.imag,
    "real part backwards": wide.real[::-1].T,
    "big-endian float32": wide.real.astype(">f4"),
    "strict": strict.asarray(wide),
    "strict, transposed": strict.permute_dims(strict.asarray(wide.real), (2, 1, 0)),
}


@pytest.mark.parametrize("array", LAYOUTS.values(), ids=LAYOUTS)
def test_files_do_not_depend_on_where_arrays_lie(array: Any, tmp_path: Path) -> None:
    plain = np.array(np.asarray(array), order="C")
    plain = plain.astype(plain.dtype.newbyteorder("="))
    topology = Topology({"A": ("i", "j", "k")})
    held, expected = (Network.from_topology(topology, {"A": a}) for a in (array, plain))
    twice, expected_twice = (
        NetworkStack(Topology({"A": ("j", "k")}), {"A": a}) for a in (array, plain)
    )
    pairs = (held, expected), (held + held, expected + expected), (twice, expected_twice)
    for got, wanted in pairs:
        tnsum.save(tmp_path / "got", got)
        tnsum.save(tmp_path / "wanted", wanted)
        assert (tmp_path / "got").read_bytes() == (tmp_path / "wanted").read_bytes()
        assert_same(tnsum.load(tmp_path / "got"), wanted)


def test_explicit_blocks_are_saved_as_they_look(tmp_path: Path) -> None:
    for case in CASES:
        explicit = (net(case) + 2 * net(case, 1)).to_network()
        assert_same(back(tmp_path / "x", explicit), explicit)


NAMES = ("", "/", "0/A", "weights", "__metadata__", "tnsum", '"', "'", "\\", "\n\t\0", "ä", "漢字",
         "\U0001f600", "e\u0301", "\u00e9", " ", "A", "a" * 300, "\ufffe", "{}[],:")  # fmt: skip


def test_names_are_any_text(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    nodes = {
        name: (rng.normal(size=(1, 2)), (name, NAMES[(k + 1) % len(NAMES)]))
        for k, name in enumerate(NAMES)
    }
    nodes = {name: (array[:, :1], modes) for name, (array, modes) in nodes.items()}
    x = Network(nodes, NAMES[::-2])
    for each in (x, x + x, NetworkStack.from_networks([x, x])):
        assert_same(back(tmp_path / "x", each), each)
        for name in NAMES:
            one = tnsum.load(tmp_path / "x", nodes=[name])
            assert list(one.topology.nodes) == [name]
        assert_read_by_safetensors(tmp_path / "x", each)


def test_sixty_modes_fit(tmp_path: Path) -> None:
    x = Network({"A": (np.full((1,) * 60, 2 + 1j), [f"i{k}" for k in range(60)])})
    assert_same(back(tmp_path / "x", x), x)


def test_a_sum_of_sixty_modes_fits(tmp_path: Path) -> None:
    x = Network({"A": (np.full((1,) * 60, 2 + 1j), [f"i{k}" for k in range(60)])})
    assert_same(back(tmp_path / "x", x + x), x + x)


# many nodes, many summands


def test_a_network_of_many_nodes(tmp_path: Path) -> None:
    cores = [np.full((2, 2, 2), k / 2000)[: 1 if k == 0 else 2] for k in range(1999)]
    x = tnsum.tensor_train([*cores, np.ones((2, 2, 1))])
    assert_same(back(tmp_path / "x", x), x)
    last = list(x.topology.nodes)[1000:]
    assert list(tnsum.load(tmp_path / "x", nodes=last).topology.nodes) == last


def test_a_sum_of_many_networks_has_a_short_header(tmp_path: Path) -> None:
    few, many = (tnsum.add(*[(x, z)[k % 2] for k in range(n)]) for n in (2, 5000))
    lengths = []
    for s in (few, many):
        assert_same(back(tmp_path / "s", s), s)
        lengths.append(int.from_bytes((tmp_path / "s").read_bytes()[:8], "little"))
    assert lengths[1] <= lengths[0] + 64


def test_a_sum_of_alternating_ranks_comes_back_in_order(tmp_path: Path) -> None:
    s = tnsum.add(*[(x, y)[k % 3 == 0] for k in range(600)], weights=list(range(600)))
    assert_same(back(tmp_path / "s", s), s)


@pytest.mark.parametrize(("n", "kind"), [(2**15, Network), (2**15 + 1, NetworkStack)])
def test_very_many_single_networks_come_back_as_stacks(n: int, kind: type, tmp_path: Path) -> None:
    numbers = np.arange(float(n))
    nodes = dict.fromkeys("ABCDEFGH", numbers)
    s = NetworkStack(Topology(dict.fromkeys(nodes, ())), nodes).sum(numbers)
    header, data = taken_apart(saved(s))
    description = header["__metadata__"]["tnsum"]
    header["__metadata__"]["tnsum"] = description.replace('"stacked":true', '"stacked":false')
    (tmp_path / "s").write_bytes(put_together(header, data))
    got = tnsum.load(tmp_path / "s")
    assert isinstance(got, NetworkSum)
    assert {type(term) for term in terms_of(got)} == {kind}
    assert_equal(got.weights, s.weights)
    assert_equal(np.stack([one.arrays["A"] for one in got.summands]), numbers)


# the real safetensors package


def assert_read_by_safetensors(path: Path, x: Saved) -> None:
    """The package reads the file, and finds the values that x has."""
    tensors = safetensors.numpy.load_file(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        assert sorted(file.keys()) == sorted(tensors)
    description, expected = decoded(path.read_bytes())
    assert json.loads(metadata["tnsum"]) == description
    assert set(tensors) == set(expected)
    for name in tensors:
        assert_equal(tensors[name], expected[name])
    check_by_the_words_of_the_format(path.read_bytes(), x)


@on_all
def test_safetensors_reads_what_we_write_and_we_what_it_writes(case: Case, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for dtype in ("float32", "complex128"):
        for x in kinds(case, dtype):
            tnsum.save(ours, x)
            assert_read_by_safetensors(ours, x)
            with safetensors.safe_open(ours, framework="numpy") as file:
                metadata = file.metadata()
            safetensors.numpy.save_file(safetensors.numpy.load_file(ours), theirs, metadata)
            assert_same(tnsum.load(theirs), x)
            assert_same(tnsum.load(theirs, memory_map=False), x)


@pytest.mark.parametrize("shift", range(8))
def test_numbers_that_straddle_words_are_read(shift: int, tmp_path: Path) -> None:
    case = BY_NAME["hyperedge_and_modes"]
    for dtype in ("float32", "complex128"):
        for x in kinds(case, dtype):
            header, data = taken_apart(saved(x))
            text = json.dumps(header).encode()
            text += b" " * ((shift - len(text)) % 8)
            (tmp_path / "x").write_bytes(put_together(text, data))
            got = tnsum.load(tmp_path / "x")
            assert_same(got, x)
            assert all(a.flags.aligned for term in terms_of(got) for a in term.arrays.values())
            assert_same(tnsum.load(tmp_path / "x", memory_map=False), x)


def test_the_order_of_a_header_and_its_data_does_not_matter(tmp_path: Path) -> None:
    for s in kinds(BY_NAME["two_nodes"], "float32"):
        header, data = taken_apart(saved(s))
        metadata = header.pop("__metadata__")
        names = list(header)[::-1]
        pieces = [data[slice(*header[name]["data_offsets"])] for name in names]
        ends = list(accumulate(map(len, pieces)))
        for name, piece, end in zip(names, pieces, ends, strict=True):
            header[name]["data_offsets"] = [end - len(piece), end]
        mixed = {**{name: header[name] for name in sorted(names)}, "__metadata__": metadata}
        (tmp_path / "x").write_bytes(put_together(mixed, b"".join(pieces)))
        assert_same(tnsum.load(tmp_path / "x"), s)


def test_numbers_are_aligned_in_our_files(tmp_path: Path) -> None:
    for x in kinds(BY_NAME["star3"], "float32"):
        tnsum.save(tmp_path / "x", x)
        data = (tmp_path / "x").read_bytes()
        header, rest = taken_apart(data)
        assert (len(data) - len(rest)) % 64 == 0
        for name, entry in header.items():
            if name != "__metadata__":
                assert entry["data_offsets"][0] % {"F32": 4, "F64": 8}[entry["dtype"]] == 0


def test_equal_networks_make_equal_files() -> None:
    for one, other in zip(
        kinds(BY_NAME["cp3"], "complex64"), kinds(BY_NAME["cp3"], "complex64"), strict=True
    ):
        assert saved(one) == saved(other)


# the documentation


def test_the_description_in_the_documentation_is_what_is_written() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", FORMAT, re.DOTALL)
    x = Network(
        {"A": (np.ones((2, 3), complex), ("i", "r")), "B": (np.ones((3, 2), complex), ("r", "j"))}
    )
    header, _ = taken_apart(saved(x))
    # As text: the order of keys is the documented one too.
    assert json.dumps(json.loads(example)) == json.dumps(
        json.loads(header["__metadata__"]["tnsum"])
    )


def test_the_example_in_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", FORMAT, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for each in (x, x.astype("complex64")):
        tnsum.save("network.safetensors", each)
        exec(example, {})
        assert capsys.readouterr().out == "A {'i': 3, 'r': 2}\nB {'r': 2, 'j': 2}\n"


def test_the_documentation_states_the_limits() -> None:
    from tnsum import _checks, _packing, _tensor_files

    assert f"at most\n{_tensor_files.MOST_HEADER_BYTES} bytes" in FORMAT
    assert f"at most {_checks.MOST_AXES} modes" in FORMAT
    assert f"version {_packing.VERSION} of" in FORMAT


# other libraries


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_array_api_strict(dtype: str, tmp_path: Path) -> None:
    case = BY_NAME["star3"]
    of = library("array_api_strict")
    x, y = (network(case, arrays(case, which, 0, dtype), of) for which in (0, 1))
    several = NetworkStack.from_networks([x, x])
    s = tnsum.add(x, y, several, weights=of.convert(np.array([1, 2, -1.5])))
    for each in (x, several, s, s * of.convert(np.asarray(1j))):
        assert_same(back(tmp_path / "x", each), each)


@pytest.mark.large
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_large_libraries(name: str, dtype: str, tmp_path: Path) -> None:
    of = library(name)
    for case in (BY_NAME["star3"], BY_NAME["cp3"], BY_NAME["disconnected_scalar"]):
        mine = [net(case, which, dtype) for which in (0, 1)]
        theirs = [network(case, arrays(case, which, 0, dtype), of) for which in (0, 1)]
        weights = np.array([0.5, 3 - 1j])
        several = [NetworkStack.from_networks([n, n]) for n in (mine[0], theirs[0])]
        for got, expected in (
            (theirs[0], mine[0]),
            (several[1], several[0]),
            (
                tnsum.add(*theirs, weights=of.convert(weights)),
                tnsum.add(*mine, weights=weights),
            ),
            (
                several[1].sum(of.convert(weights)) + 2 * theirs[1],
                several[0].sum(weights) + 2 * mine[1],
            ),
        ):
            assert_same(back(tmp_path / "x", got), expected)


@pytest.mark.large
def test_tensors_of_torch_with_gradients_and_lazy_signs(tmp_path: Path) -> None:
    library("torch")
    import torch

    a = torch.arange(12.0, dtype=torch.float64).reshape(3, 4) * (1 - 2j)
    a.requires_grad_()
    weight = torch.tensor(0.5, requires_grad=True)
    tensors = {
        "plain": a,
        "conjugate": a.conj(),
        "transposed conjugate": a.mH,
        "negative": a.conj().imag,
        "real": a.real,
        "every second": a[:, ::2],
        "broadcast": a[:1, :1].expand(5, 6),
    }
    for label, tensor in tensors.items():
        x = Network({"A": (tensor, ("i", "j"))})
        expected = Network(
            {"A": (tensor.detach().resolve_conj().resolve_neg().numpy(), ("i", "j"))}
        )
        assert_same(back(tmp_path / "x", x), expected)
        assert_same(back(tmp_path / "x", x * weight + x), 0.5 * expected + expected)
        assert x.arrays["A"].requires_grad, label


@pytest.mark.large
def test_what_jax_traces_is_not_saved(tmp_path: Path) -> None:
    of = library("jax")
    import jax

    path = tmp_path / "x"
    tnsum.save(path, y)
    x = network(BY_NAME["two_nodes"], arrays(BY_NAME["two_nodes"], 0), of)
    several, weights = NetworkStack.from_networks([x, x]), of.convert(np.ones(2))
    calls: list[Any] = [
        lambda: jax.jit(lambda x: tnsum.save(path, x))(x),
        lambda: jax.jit(lambda w: tnsum.save(path, w * x))(weights[0]),
        lambda: jax.grad(lambda x: tnsum.save(path, x + x))(x),
        lambda: jax.vmap(lambda w: tnsum.save(path, several.sum() * w))(weights),
    ]
    for traced in calls:
        with pytest.raises(NetworkError) as raised:
            traced()
        assert str(raised.value).startswith(
            f"{str(path)!r} cannot be saved: Arrays must be dense and have values that NumPy can hold; "
        )
        assert "was called on traced array" in str(raised.value)
    assert os.listdir(tmp_path) == ["x"]
    assert_same(tnsum.load(path), y)
