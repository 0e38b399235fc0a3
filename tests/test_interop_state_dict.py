"""Networks as state dicts: the same arrays under names, and the parameters of PyTorch's modules."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnsum.interop.state_dict
from libraries import LIBRARIES_AND_DTYPES, library, network
from oracle import dense, relative_error
from raising import check_message, unreached
from tnsum import ModeError, Network, NetworkError, NetworkStack, Topology
from tnsum.interop.state_dict import from_state_dict, to_state_dict
from topologies import BY_NAME, CASES, DTYPES, Case, arrays

TWO = network(BY_NAME["two_nodes"], arrays(BY_NAME["two_nodes"], 0))
STACK = NetworkStack.from_networks([TWO, TWO, TWO])
STATE = to_state_dict(TWO)
PAIR = TWO.topology

on_all = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.mark.parametrize("dtype", DTYPES)
@on_all
def test_the_way_back_is_exact(case: Case, dtype: str) -> None:
    x = network(case, arrays(case, 0, dtype=dtype))
    for prefix in ("", "layer.", "a.b.", "A"):
        state = to_state_dict(x, prefix)
        assert type(state) is dict
        assert list(state) == [prefix + name for name in case.nodes]
        back = from_state_dict(dict(reversed(state.items())), x.topology, prefix)
        assert back.topology == x.topology
        assert list(back.arrays) == list(x.arrays)
        assert all(back.arrays[name] is state[prefix + name] is x.arrays[name] for name in x.arrays)


@pytest.mark.parametrize(("name", "dtype"), LIBRARIES_AND_DTYPES)
def test_arrays_of_every_library_stay_as_they_are(name: str, dtype: str) -> None:
    case = BY_NAME["star3"]
    x = network(case, arrays(case, 0, dtype=dtype), library(name))
    state = to_state_dict(x, "x.")
    back = from_state_dict(state, x.topology, "x.")
    assert all(back.arrays[k] is x.arrays[k] is state["x." + k] for k in x.arrays)


def test_a_stack_has_a_state_dict_and_the_way_back_that_it_names() -> None:
    state = to_state_dict(STACK)
    back = NetworkStack(STACK.topology, state)
    assert len(back) == 3
    assert all(back.arrays[name] is state[name] is STACK.arrays[name] for name in STACK.arrays)


def test_the_dict_is_the_callers_own() -> None:
    state = to_state_dict(TWO)
    state.clear()
    assert set(TWO.arrays) == {"A", "B"}


def test_entries_outside_the_prefix_are_ignored() -> None:
    others: dict[Any, Any] = {"A": None, "bias": 3, "nodesA": "", 7: "", ("nodes.A",): 1}
    state = {**others, **to_state_dict(TWO, "nodes."), "last": None}
    x = from_state_dict(state, PAIR, "nodes.")
    assert all(x.arrays[name] is TWO.arrays[name] for name in TWO.arrays)


def test_two_networks_share_a_state_dict() -> None:
    y = TWO.astype("float32")
    state = {**to_state_dict(TWO, "x."), **to_state_dict(y, "y.")}
    assert from_state_dict(state, PAIR, "x.").dtype == "float64"
    assert from_state_dict(state, PAIR, "y.").dtype == "float32"


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: to_state_dict(STATE), NetworkError,  # type: ignore[arg-type]
     "to_state_dict takes a Network or a NetworkStack; dict came."),
    (lambda: to_state_dict(TWO + TWO), NetworkError,  # type: ignore[arg-type]
     "to_state_dict takes a Network or a NetworkStack; NetworkSum came. Say x.to_network() first."),
    (lambda: to_state_dict(TWO, None), NetworkError,  # type: ignore[arg-type]
     "prefix must be a string; NoneType came."),
    (lambda: from_state_dict(STATE, PAIR, 3), NetworkError,  # type: ignore[arg-type]
     "prefix must be a string; int came."),
    (lambda: from_state_dict([1], PAIR), NetworkError,  # type: ignore[arg-type]
     "A state dict must be a mapping from names to arrays; list came. Say dict(...) of a ParameterDict, "
     "module.state_dict() of a module."),
    (lambda: from_state_dict(STATE, TWO), NetworkError,  # type: ignore[arg-type]
     "topology must be a Topology, such as x.topology; Network came."),
    (lambda: from_state_dict({"x.A": STATE["A"], "x.C": 1, "B": 1}, PAIR, "x."), NetworkError,
     "A state dict must have an entry for every node; ('x.B',) did not come. Those that begin with "
     "'x.' are ('x.A', 'x.C')."),
    (lambda: from_state_dict({}, PAIR), NetworkError,
     "A state dict must have an entry for every node; ('A', 'B') did not come. Those that begin with "
     "'' are ()."),
    (lambda: from_state_dict({**to_state_dict(TWO, "x."), "x.bias": 1, "y": 1}, PAIR, "x."),
     NetworkError,
     "Entries of a state dict that begin with 'x.' must be nodes of the topology; ('x.bias',) came too. "
     "Leave them out, or give the nodes a prefix of their own."),
    (lambda: from_state_dict({**STATE, 7: 1}, PAIR), NetworkError,  # type: ignore[dict-item]
     "Entries of a state dict that begin with '' must be nodes of the topology; (7,) came too. "
     "Leave them out, or give the nodes a prefix of their own."),
    (lambda: from_state_dict({"A": STATE["A"], "B": None}, PAIR), NetworkError,
     "Node 'B' must be an array of NumPy, PyTorch, JAX or another library of the array API standard; "
     "NoneType came. Convert it first, for instance with numpy.asarray."),
    (lambda: from_state_dict(to_state_dict(STACK), PAIR), ModeError,
     "Node 'A' must have one axis per mode: it has modes ('i', 'r') and an array of shape (3, 3, 2)."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_the_message_says_what_must_hold_and_what_came(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    check_message(call, error, message)


def test_every_raise_is_reached() -> None:
    assert not unreached([Path(tnsum.interop.state_dict.__file__)], [call for call, *_ in ERRORS])


# PyTorch


def module(x: Network) -> Any:
    """A module that contracts the network of its parameters."""
    import torch

    class Contraction(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.nodes = torch.nn.ParameterDict(to_state_dict(x))
            self.bias = torch.nn.Parameter(torch.zeros(x.shape, dtype=x.dtype))
            self.topology = x.topology

        def forward(self) -> Any:
            return from_state_dict(dict(self.nodes), self.topology).contract() + self.bias

    return Contraction()


@pytest.mark.large
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", ["star3", "grid3x3", "cp3", "lone_trace", "disconnected_scalar"])
def test_a_module_trains_a_network(name: str, dtype: str) -> None:
    of, case = library("torch"), BY_NAME[name]
    import torch

    held = arrays(case, 0, dtype=dtype)
    x = network(case, held, of)
    model = module(x)
    assert all(model.nodes[k].data_ptr() == x.arrays[k].data_ptr() for k in x.arrays)
    out = model()
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    wanted = dense(case.nodes, case.physical_modes, held)
    assert relative_error(of.to_numpy(out), wanted) < tolerance
    out.abs().square().sum().backward()
    # The derivative of |X|^2 by the nodes, along the nodes themselves: 2 n |X|^2 for n nodes.
    along = sum(torch.vdot(p.grad.flatten(), p.detach().flatten()) for p in model.nodes.values())
    total = 2 * len(held) * np.sum(np.abs(wanted) ** 2)
    assert float(along.real) == pytest.approx(total, rel=tolerance)
    # Neither ends at the module's state dict, which has other entries too.
    kept = from_state_dict(model.state_dict(keep_vars=True), x.topology, "nodes.")
    assert all(kept.arrays[k] is model.nodes[k] for k in x.arrays)
    named = from_state_dict(dict(model.named_parameters()), x.topology, "nodes.")
    assert all(named.arrays[k] is model.nodes[k] for k in x.arrays)


@pytest.mark.large
def test_modules_save_and_load_networks() -> None:
    of, case = library("torch"), BY_NAME["tensor_train5"]
    x, y = (network(case, arrays(case, 0, seed), of) for seed in (0, 1))
    wanted = {name: array.clone() for name, array in y.arrays.items()}
    model = module(x)
    model.load_state_dict({**to_state_dict(y, "nodes."), "bias": model.bias.detach()})
    back = from_state_dict(model.state_dict(), x.topology, prefix="nodes.")
    assert back.topology == y.topology
    assert all((back.arrays[name] == wanted[name]).all() for name in wanted)
    assert not any(array.requires_grad for array in back.arrays.values())
    # load_state_dict writes to the parameters, and those are the arrays of x.
    assert all((x.arrays[name] == wanted[name]).all() for name in wanted)


@pytest.mark.large
def test_names_that_parameter_dicts_refuse_are_renamed_as_the_docstring_says() -> None:
    of = library("torch")
    import torch

    topology = Topology({"a.b": ("i", "r"), "keys": ("r", "j")})
    x = Network.from_topology(
        topology, {"a.b": of.convert(np.eye(2)), "keys": of.convert(np.eye(2))}
    )
    with pytest.raises(KeyError):
        torch.nn.ParameterDict(to_state_dict(x))
    renamed = x.rename(nodes={"a.b": "a_b", "keys": "keys_"})
    state = torch.nn.ParameterDict(to_state_dict(renamed)).state_dict()
    assert from_state_dict(state, renamed.topology).shape == (2, 2)


@pytest.mark.large
def test_a_parameter_dict_must_be_made_a_dict() -> None:
    of, case = library("torch"), BY_NAME["two_nodes"]
    x = network(case, arrays(case, 0), of)
    with pytest.raises(NetworkError, match=r"ParameterDict came\. Say dict\(\.\.\.\)"):
        from_state_dict(module(x).nodes, PAIR)
