"""Networks as einsum equations: NumPy and opt_einsum against the oracle, and the exact way back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import opt_einsum
import pytest
from hypothesis import given, settings

import tnsum.interop.einsum
from libraries import LIBRARIES_AND_DTYPES, library, network, rounding
from oracle import dense, relative_error
from raising import unreached
from tnsum import Network, NetworkError, NetworkStack
from tnsum.interop.einsum import to_einsum
from topologies import BY_NAME, CASES, DTYPES, Case, any_cases, arrays

SMALL = [case for case in CASES if case.order <= 12]
on_small = pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
on_all = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

TWO = network(BY_NAME["two_nodes"], arrays(BY_NAME["two_nodes"], 0))


def renamed(x: Network) -> Network:
    """The network with modes of long names, which must be lettered."""
    return x.rename(modes={mode: f"mode {k}" for k, mode in enumerate(x.topology.modes)})


def same(x: Network, y: Network) -> None:
    """Assert equal topologies, and arrays that are the same objects."""
    assert x.topology == y.topology
    assert all(x.arrays[name] is y.arrays[name] for name in x.arrays)


@pytest.mark.parametrize("dtype", DTYPES)
@on_small
def test_einsum_of_the_equation_is_the_dense_array(case: Case, dtype: str) -> None:
    held = arrays(case, 0, dtype=dtype)
    wanted = dense(case.nodes, case.physical_modes, held)
    for x in (network(case, held), renamed(network(case, held))):
        equation, operands = to_einsum(x)
        got = np.einsum(equation, *operands, optimize=True)
        assert relative_error(got, wanted) < rounding(dtype)
        assert got.dtype == dtype


@settings(deadline=None)
@given(any_cases())
def test_einsum_of_any_equation_is_the_dense_array(case: Case) -> None:
    held = arrays(case, 0)
    equation, operands = to_einsum(network(case, held))
    got = np.einsum(equation, *operands, optimize=True)
    assert relative_error(got, dense(case.nodes, case.physical_modes, held)) < 1e-12


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
def test_arrays_of_every_library_stay_as_they_are(name: str, dtype: str) -> None:
    case = BY_NAME["hyperedge_and_modes"]
    x = network(case, arrays(case, 0, dtype=dtype), library(name))
    _, operands = to_einsum(x)
    assert all(a is b for a, b in zip(operands, x.arrays.values(), strict=True))


@pytest.mark.large
def test_torch_takes_the_equations() -> None:
    torch = library("torch")
    from torch import einsum

    for case in SMALL:
        held = arrays(case, 0)
        equation, operands = to_einsum(network(case, held, torch))
        got = torch.to_numpy(einsum(equation, *operands))
        assert relative_error(got, dense(case.nodes, case.physical_modes, held)) < 1e-12


@on_all
def test_from_einsum_is_the_way_back(case: Case) -> None:
    x = network(case, arrays(case, 0))
    equation, operands = to_einsum(x)
    back = Network.from_einsum(equation, *operands)
    letters = dict(zip(x.topology.modes, back.topology.modes, strict=True))
    nodes = {name: f"node{k}" for k, name in enumerate(x.arrays)}
    same(x.rename(letters, nodes), back)


@pytest.mark.parametrize(
    "equation",
    ["ir,rj->ij", "rj,ir->ji", "irs,rj->ij", "ir,jr,kr->kij", "ii->i", "itrt,rj->ij", "ab,ba->", "->",
     "zA,Ab,,b->z", "éß,ßж->жé"],
)  # fmt: skip
def test_letters_are_kept(equation: str) -> None:
    operands = [np.ones((2,) * len(term)) for term in equation.split("->")[0].split(",")]
    x = Network.from_einsum(equation, *operands)
    got, same_operands = to_einsum(x)
    assert got == equation
    assert all(a is b for a, b in zip(operands, same_operands, strict=True))


def test_one_long_name_makes_all_modes_be_lettered_anew() -> None:
    x = TWO.rename(modes={"r": "rank"})
    assert to_einsum(x)[0] == "ab,bc->ac"
    assert to_einsum(TWO.rename(modes={"r": ""}))[0] == "ab,bc->ac"
    # A sign that no einsum takes for a letter.
    assert to_einsum(TWO.rename(modes={"r": "1"}))[0] == "ab,bc->ac"
    assert to_einsum(TWO)[0] == "ir,rj->ij"


def train(order: int) -> Network:
    """A train of so many nodes, entries near one."""
    rng = np.random.default_rng(order)
    held = [rng.uniform(0.8, 1.2, (1 if k == 0 else 2, 2, 1 if k == order - 1 else 2)) / 2
            for k in range(order)]  # fmt: skip
    return tnsum.tensor_train(held).select({f"i{k}": 0 for k in range(3, order)})


def test_52_modes_fit_into_the_letters_of_numpy() -> None:
    x = train(50)
    assert len(x.topology.modes) == 52
    equation, operands = to_einsum(x)
    assert set(equation) - set(",->") == set(map(chr, [*range(65, 91), *range(97, 123)]))
    got = np.einsum(equation, *operands, optimize="greedy")
    assert relative_error(got, x.contract()) < 1e-12


def test_more_modes_have_letters_that_opt_einsum_takes() -> None:
    x = train(300)
    equation, operands = to_einsum(x)
    letters = set(equation) - set(",->")
    assert len(letters) == len(x.topology.modes) == 302
    assert all(letter.isalpha() for letter in letters)
    got = opt_einsum.contract(equation, *operands)
    assert relative_error(got, x.contract()) < 1e-12
    back = Network.from_einsum(equation, *operands)
    assert relative_error(back.contract(), x.contract()) < 1e-12


def crowd() -> Network:
    """More modes than there are letters in Unicode."""
    held = {f"n{k}": [f"m{k}_{m}" for m in range(60)] for k in range(2300)}
    one = np.ones((1,) * 60)
    return Network({name: (one, modes) for name, modes in held.items()}, ())


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: to_einsum(TWO + TWO),  # type: ignore[arg-type]
     "to_einsum takes a Network; NetworkSum came. Say x.to_network() first, for the explicit blocks."),
    (lambda: to_einsum(NetworkStack.from_networks([TWO])),  # type: ignore[arg-type]
     "to_einsum takes a Network; NetworkStack came. Say x[k] for one network, or x.sum().to_network()."),
    (lambda: to_einsum("ij->ji"), "to_einsum takes a Network; str came."),  # type: ignore[arg-type]
    (lambda: to_einsum(crowd()),
     "An einsum equation has a letter for each mode: there are {letters} letters, the network has "
     "138000 modes. Contract parts of it first."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], message: str
) -> None:
    # How many letters there are depends on Python's version of Unicode.
    n_letters = 52 + sum(chr(c).isalpha() for c in range(0xC0, 0x110000))
    with pytest.raises(NetworkError) as raised:
        call()
    assert str(raised.value) == message.replace("{letters}", str(n_letters))


def test_every_raise_is_reached() -> None:
    assert not unreached([Path(tnsum.interop.einsum.__file__)], [call for call, _ in ERRORS])
