"""Networks from and to HOTTBOX: the same arrays and names, and the tensor that it reconstructs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
import tnsum
from libraries import library, network, rounding
from raising import check_message, check_missing, unreached
from test_peers import peer
from tnsum import ModeError, Network, NetworkError, TopologyError
from tnsum.interop import hottbox as module
from tnsum.interop.hottbox import from_hottbox, to_hottbox
from topologies import CASES, DTYPES, Case, arrays

pytestmark = pytest.mark.large

CLASSES = {"tucker": "TensorTKD", "cp": "TensorCPD", "tensor_train": "TensorTT"}


def hottbox_class(kind: str) -> Any:
    return getattr(peer("hottbox.core"), CLASSES[kind])


def random(seed: int, *shape: int, dtype: str = "float64") -> Any:
    rng = np.random.default_rng([seed, *shape])
    phases = rng.uniform(-0.5, 0.5, shape) * 1j if dtype.startswith("complex") else 0
    return (rng.uniform(0.5, 1.5, shape) * np.exp(phases)).astype(dtype)


def theirs_and_ours(
    kind: str, order: int = 3, dtype: str = "float64", **names: Any
) -> tuple[Any, Network]:
    """The same tensor, as HOTTBOX's class and as our builder make it; sizes and ranks differ."""
    sizes = [3 + k % 3 for k in range(order)]
    made = hottbox_class(kind)
    if kind == "tucker":
        ranks = [2 + k % 2 for k in range(order)]
        factors = [random(k, sizes[k], ranks[k], dtype=dtype) for k in range(order)]
        core = random(9, *ranks, dtype=dtype)
        return made(fmat=factors, core_values=core, **names), tnsum.tucker(core, factors)
    if kind == "cp":
        factors = [random(k, n, 3, dtype=dtype) for k, n in enumerate(sizes)]
        return made(fmat=factors, core_values=np.ones(3), **names), tnsum.cp(factors)
    ranks = [1, *(2 + k % 2 for k in range(order - 1)), 1]
    x = tnsum.tensor_train(
        [random(k, ranks[k], sizes[k], ranks[k + 1], dtype=dtype) for k in range(order)]
    )
    return made(core_values=list(x.arrays.values()), **names), x


def held(theirs: Any) -> list[Any]:
    """The arrays that a tensor of HOTTBOX holds, but for the values of a CP core."""
    if type(theirs).__name__ == "TensorTT":
        return list(theirs._core_values)
    core = [theirs._core_values] if type(theirs).__name__ == "TensorTKD" else []
    return [*core, *theirs.fmat]


# HOTTBOX cannot have a train of order one.
ORDERS = [(kind, k) for kind in CLASSES for k in (1, 2, 3, 5)
          if k > 1 or kind != "tensor_train"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "order"), ORDERS)
def test_round_trips_are_exact(kind: str, order: int, dtype: str) -> None:
    theirs, ours = theirs_and_ours(kind, order, dtype)
    x = from_hottbox(theirs)
    assert x.dtype == dtype
    assert x.topology == ours.topology
    dense = theirs.reconstruct().data
    assert oracle.relative_error(x.contract(), dense) < rounding(dtype)
    assert oracle.relative_error(ours.contract(), dense) < rounding(dtype)
    for array, own in zip(held(theirs), x.arrays.values(), strict=True):
        assert own is array
    back = to_hottbox(ours, kind)
    assert type(back) is type(theirs)
    assert back.mode_names == theirs.mode_names == [f"mode-{k}" for k in range(order)]
    for array, again in zip(held(theirs), held(back), strict=True):
        np.testing.assert_array_equal(array, again)
        assert again.dtype == dtype
    again = from_hottbox(back)
    assert again.topology == ours.topology
    for name, array in ours.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    # What HOTTBOX itself makes of our tensor, its imaginary part too, without a warning.
    assert oracle.relative_error(back.reconstruct().data, ours.contract()) < rounding(dtype)


FORMATS = {
    "lone_summed_once": "cp", "two_nodes": "cp", "tensor_train5": "tensor_train",
    "star2": "tucker", "star3": "tucker", "star4": "tucker", "star5": "tucker", "cp3": "cp",
    "cp4": "cp",
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_topologies_of_a_format_are_recognised_and_all_others_refused(
    case: Case, dtype: str
) -> None:
    peer("hottbox.core")
    given_arrays = arrays(case, 1, dtype=dtype)
    x = network(case, given_arrays)
    if case.name not in FORMATS:
        with pytest.raises(NetworkError, match=r"to_hottbox needs a|A TensorTT of HOTTBOX"):
            to_hottbox(x)
        return
    theirs = to_hottbox(x)
    assert type(theirs).__name__ == CLASSES[FORMATS[case.name]]
    assert theirs.mode_names == list(case.physical_modes)
    expected = oracle.dense(case.nodes, case.physical_modes, given_arrays)
    assert oracle.relative_error(theirs.reconstruct().data, expected) < rounding(dtype)
    back = from_hottbox(theirs)
    assert back.physical_modes == case.physical_modes
    assert oracle.relative_error(back.contract(), expected) < rounding(dtype)


def test_kind_chooses_between_two_formats() -> None:
    peer("hottbox.core")
    for own in ("cp", "tensor_train"):
        x = theirs_and_ours(own, 2)[1]
        for kind in ("cp", "tensor_train"):
            theirs = to_hottbox(x, kind)
            assert type(theirs) is hottbox_class(kind)
            assert oracle.relative_error(theirs.reconstruct().data, x.contract()) < 1e-14
        assert type(to_hottbox(x)) is hottbox_class(own)
        assert type(to_hottbox(x.rename(nodes={next(iter(x.arrays)): "A"}))) is hottbox_class("cp")


def test_sums_of_converted_tensors_equal_those_of_hottbox() -> None:
    for kind in ("tucker", "cp"):
        theirs, ours = theirs_and_ours(kind)
        total = from_hottbox(theirs) + 1 * from_hottbox(theirs)
        assert oracle.relative_error(total.contract(), (theirs + theirs).reconstruct().data) < 1e-13
        assert oracle.relative_error((total + ours).contract(), 3 * ours.contract()) < 1e-13


# Core values of CP


@pytest.mark.parametrize("dtype", DTYPES)
def test_core_values_are_multiplied_into_the_first_factor(dtype: str) -> None:
    factors = [random(k, n, 3, dtype=dtype) for k, n in enumerate((4, 5, 3))]
    values = random(7, 3, dtype=dtype)
    theirs = hottbox_class("cp")(fmat=factors, core_values=values)
    x = from_hottbox(theirs)
    assert x.dtype == dtype
    # HOTTBOX's own reconstruction drops the imaginary part of its core.
    expected = np.einsum("r,ar,br,cr->abc", values, *factors)
    assert oracle.relative_error(x.contract(), expected) < rounding(dtype)
    np.testing.assert_array_equal(x.arrays["factor0"], theirs.fmat[0] * values)
    assert x.arrays["factor1"] is theirs.fmat[1]
    back = to_hottbox(x)
    np.testing.assert_array_equal(back._core_values, np.ones(3))
    assert back._core_values.dtype == np.real(values).dtype
    assert oracle.relative_error(back.reconstruct().data, expected) < rounding(dtype)


def test_core_values_of_integers_are_taken() -> None:
    factors = [random(k, 4, 3) for k in range(2)]
    made = hottbox_class("cp")
    theirs = made(fmat=factors, core_values=np.arange(3))
    expected = theirs.reconstruct().data
    assert oracle.relative_error(from_hottbox(theirs).contract(), expected) < 1e-14
    theirs = made(fmat=factors, core_values=np.ones(3, int))
    assert from_hottbox(theirs).arrays["factor0"] is theirs.fmat[0]


# Names


@pytest.mark.parametrize("kind", CLASSES)
def test_names_that_were_given_are_kept_and_defaults_are_ours(kind: str) -> None:
    theirs, _ = theirs_and_ours(kind, mode_names=["year", "mode-1", "day"])
    assert from_hottbox(theirs).physical_modes == ("year", "i1", "day")
    theirs.set_mode_names({1: "month"})
    assert from_hottbox(theirs).physical_modes == ("year", "month", "day")
    theirs.reset_mode_name()
    assert from_hottbox(theirs).physical_modes == ("i0", "i1", "i2")
    # The default of another position is a name like others.
    theirs.set_mode_names({0: "mode-2"})
    assert from_hottbox(theirs).physical_modes == ("mode-2", "i1", "i2")
    theirs.set_mode_index({0: ["a", "b", "c"]})
    assert from_hottbox(theirs).physical_modes == ("mode-2", "i1", "i2")


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    "names", [("i2", "i0", "i1"), ("i0", "row", "i2"), ("r", "r0", "r1"), ("mode-1", "", "x y")]
)
def test_names_of_physical_modes_come_back(kind: str, names: tuple[str, ...]) -> None:
    _, ours = theirs_and_ours(kind)
    free = {mode: f"c{k}" for k, mode in enumerate(ours.topology.contraction_modes)}
    x = ours.rename(modes={**dict(zip(ours.physical_modes, names, strict=True)), **free})
    back = from_hottbox(to_hottbox(x))
    assert back.physical_modes == names
    for name, array in ours.arrays.items():
        np.testing.assert_array_equal(back.arrays[name], array)
    assert oracle.relative_error(back.contract(), x.contract()) < 1e-15


def test_contraction_modes_make_way_for_given_names() -> None:
    theirs, ours = theirs_and_ours("tucker", mode_names=["r1", "r2", "r1-"])
    x = from_hottbox(theirs)
    assert x.topology.nodes["core"] == ("r0", "r1_", "r2_")
    assert x.topology.nodes["factor0"] == ("r1", "r0")
    assert oracle.relative_error(x.contract(), ours.contract()) < 1e-15


@given(
    st.lists(st.text(st.sampled_from("i012_- rmode"), max_size=7), min_size=3, max_size=3,
             unique=True)
)  # fmt: skip
def test_any_names_come_back_or_are_refused(names: list[str]) -> None:
    _, ours = theirs_and_ours("tucker")
    free = {mode: f"contraction {k}" for k, mode in enumerate(ours.topology.contraction_modes)}
    x = ours.rename(modes={**dict(zip(ours.physical_modes, names, strict=True)), **free})
    defaults = [f"mode-{k}" for k in range(3)]
    changed = [name.strip().replace("_", "-") != name for name in names]
    if any(changed) or any(name == default for name, default in zip(names, defaults, strict=True)):
        with pytest.raises(ModeError, match="HOTTBOX would change the name"):
            to_hottbox(x)
    else:
        assert from_hottbox(to_hottbox(x)).physical_modes == tuple(names)


# Errors

A, B = np.ones((2, 3)), np.ones((3, 4))
pair = Network({"A": (A, ("i", "r")), "B": (B, ("r", "j"))})
TAKES = "from_hottbox takes a TensorTKD, TensorCPD or TensorTT of HOTTBOX; "
DENSE = " came. A dense Tensor is an array: tensor.data."
KIND = "kind must be one of tucker, cp, tensor_train or None; "
CHANGE = (" of a physical mode: it writes '-' for '_', strips blanks, and 'mode-0' is its default "
          "for the mode at position 0. Choose another with x.rename.")  # fmt: skip
NEEDS = (", physical modes in the order of its nodes; a network of order 2 with nodes ('A', 'B') came. "
         "If only the order is wrong, mend it with x.transpose(...).")  # fmt: skip


def named(*names: str) -> Any:
    return theirs_and_ours("tucker", mode_names=list(names))[0]


def other_library() -> Network:
    strict = library("array_api_strict")
    return Network({k: (strict.convert(pair.arrays[k]), m) for k, m in pair.topology.nodes.items()})


Row = tuple[Callable[[], Any], type[Exception], str]

ERRORS: list[Row] = [
    (lambda: from_hottbox(A), NetworkError, TAKES + "ndarray" + DENSE),
    (lambda: from_hottbox(peer("hottbox.core").Tensor(A)), NetworkError, TAKES + "Tensor" + DENSE),
    (lambda: from_hottbox(pair), NetworkError, TAKES + "Network" + DENSE),
    (lambda: from_hottbox(hottbox_class("cp")([np.ones((2, 2), int)] * 2, np.ones(2))), NetworkError,
     "Node 'factor0' must be of dtype float32, float64, complex64 or complex128; int64 came. Convert it "
     "first, for instance with astype('float64')."),
    (lambda: from_hottbox(hottbox_class("cp")([A, A], np.ones((3, 2)))), NetworkError,
     "There must be one weight per component: factor 0 has 3 columns, weights of shape (3, 2) came."),
    (lambda: from_hottbox(hottbox_class("tensor_train")([np.ones((3, 1))])), NetworkError,
     "Core 0 of a tensor train must have 3 axes; shape (3, 1) came."),
    (lambda: from_hottbox(named("a")), ModeError,
     "A tensor of HOTTBOX must have one name per mode; one of order 3 came with names ['a']. Make it "
     "anew with mode_names that are as many."),
    (lambda: from_hottbox(named("a", "b", "a")), ModeError,
     "Every mode needs a name of its own; HOTTBOX's names ['a', 'b', 'a'] make two modes 'a'. Rename "
     "one with tensor.set_mode_names."),
    (lambda: from_hottbox(named("i2", "b", "mode-2")), ModeError,
     "Every mode needs a name of its own; HOTTBOX's names ['i2', 'b', 'mode-2'] make two modes 'i2'. "
     "Rename one with tensor.set_mode_names."),
    (lambda: to_hottbox(A), NetworkError,  # type: ignore[arg-type]
     "to_hottbox takes a Network; ndarray came."),
    (lambda: to_hottbox(tnsum.NetworkStack.from_networks([pair])),  # type: ignore[arg-type]
     NetworkError,
     "to_hottbox takes a Network; NetworkStack came. Say x[k] for one network, or "
     "x.sum().to_network()."),
    (lambda: to_hottbox(pair, "tt"), NetworkError, KIND + "'tt' came."),
    (lambda: to_hottbox(pair, ["cp"]), NetworkError,  # type: ignore[arg-type]
     KIND + "['cp'] came."),
    (lambda: to_hottbox(other_library()), NetworkError,
     "HOTTBOX knows arrays of NumPy only; those of the network are of array_api_strict. Say "
     "tnsum.interop.to_library(x, 'numpy') first."),
    (lambda: to_hottbox(pair.rename({"i": "row_1"})), ModeError,
     "HOTTBOX would change the name 'row_1'" + CHANGE),
    (lambda: to_hottbox(pair.rename({"i": "row "})), ModeError,
     "HOTTBOX would change the name 'row '" + CHANGE),
    (lambda: to_hottbox(pair.rename({"i": "mode-0"})), ModeError,
     "HOTTBOX would change the name 'mode-0'" + CHANGE),
    (lambda: to_hottbox(tnsum.tensor_train([np.ones((1, 3, 1))])), NetworkError,
     "A TensorTT of HOTTBOX must be of order 2 at least; a network of order 1 came. Hand over the "
     "vector x.contract() itself."),
    (lambda: to_hottbox(pair, "tucker"), TopologyError, "to_hottbox needs a Tucker network" + NEEDS),
    (lambda: to_hottbox(tnsum.tensor_ring([np.ones((1, 2, 1))] * 2)), TopologyError,
     "to_hottbox needs a Tucker network or CP network or tensor train" +
     NEEDS.replace("'A', 'B'", "'node0', 'node1'")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    peer("hottbox.core")
    check_message(call, error, message)


def test_every_raise_is_in_the_table() -> None:
    assert not unreached([Path(module.__file__)], [call for call, *_ in ERRORS])


@pytest.mark.parametrize("call", [lambda: from_hottbox(A), lambda: to_hottbox(pair)])
def test_without_hottbox_the_error_says_how_to_install_it(call: Callable[[], Any]) -> None:
    check_missing("hottbox", "hottbox.core", call)
