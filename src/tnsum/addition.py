"""add, mean, and what the operators of networks mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tnsum._typing import Array, Scalar
from tnsum._weights import checked_weight, checked_weights, inverse, multiplied
from tnsum.alignment import Term, aligned, count
from tnsum.errors import NetworkError
from tnsum.network import Network, NetworkStack
from tnsum.node_arrays import Summable
from tnsum.summation import NetworkSum


def add(
    *summands: Network | NetworkStack | NetworkSum, weights: Sequence[Scalar] | Array | None = None
) -> NetworkSum:
    """The lazy sum of networks, sums and stacks, with one weight for each argument.

    Parameters
    ----------
    *summands : Network, NetworkSum or NetworkStack
        Of isomorphic topologies and equal physical sizes; ranks may differ. Physical modes are
        paired by name if all names agree, by position if none does; a sum speaks in the names of its
        first summand. A stack stands for all its networks.
    weights : sequence of numbers or array, optional
        One for each argument, ones by default. They may be complex, and arrays that carry gradients.

    Notes
    -----
    Nothing is computed: ranks add up, and nothing is compressed. `add(*networks)` takes time linear in
    their number; a loop of `s = s + x` copies the list of summands in every step. The dtype is the
    result type of all summands; weights do not change its precision, but a complex weight makes the
    sum complex.

    Raises
    ------
    NetworkError
        No summand came, one is not a network, they are of different array libraries or devices, or
        there is not one weight for each.
    ModeError
        Physical modes cannot be paired, or differ in size.
    TopologyError
        Topologies differ; the message names where.

    Examples
    --------
    >>> import numpy as np
    >>> x = Network.from_einsum("ir,rj->ij", np.ones((2, 1)), np.ones((1, 2)))
    >>> y = Network.from_einsum("as,sb->ab", np.eye(2), np.eye(2))
    >>> add(x, y, weights=[1, 10]).contract()
    array([[11.,  1.],
           [ 1., 11.]])
    """
    for k, summand in enumerate(summands):
        if not isinstance(summand, Summable):
            advice = ""
            if isinstance(summand, list | tuple):
                advice = " Pass the networks one by one: tnsum.add(*networks)."
            raise NetworkError(
                f"Summand {k} must be a Network, NetworkSum or NetworkStack; "
                f"{type(summand).__name__} came.{advice}"
            )
    if not summands:
        raise NetworkError(
            "A sum must have at least one summand; none came. The shape of an empty sum is unknown."
        )
    scalars: Sequence[Scalar] = (1,) * len(summands)
    if weights is not None:
        scalars = checked_weights(weights, len(summands), summands[0]._some_array)
    return _flat(list(zip(summands, scalars, strict=True)))


def mean(*summands: Network | NetworkStack | NetworkSum) -> NetworkSum:
    """The lazy mean of networks: their sum with equal weights; a stack counts as all its networks.

    Raises
    ------
    NetworkError, ModeError, TopologyError
        As for `add`.
    """
    n = sum(len(x) if isinstance(x, NetworkStack) else 1 for x in summands)
    return add(*summands, weights=[1 / n] * len(summands) if n else None)


def sum_of_two(a: Any, weight: Scalar, b: Any, other_weight: Scalar) -> NetworkSum:
    """`weight * a + other_weight * b`, or without b: what the operators of networks mean."""
    pairs = [(a, weight)] + ([(b, other_weight)] if isinstance(b, Summable) else [])
    for x, _ in pairs:
        if isinstance(x, NetworkStack):
            raise TypeError(
                "A stack is many networks, not one: say stack.sum() for the sum of its networks, "
                "NetworkStack.concatenate for one longer stack."
            )
    return _flat([(x, checked_weight(w, 0, x._some_array)) for x, w in pairs])


def quotient(x: Any, weight: Scalar) -> NetworkSum:
    """`x / weight`."""
    beside = x._some_array
    return sum_of_two(x, inverse(weight, beside), None, 1)


def as_sum(x: object) -> NetworkSum:
    """A network as the sum of itself, a sum as it is."""
    if isinstance(x, NetworkSum):
        return x
    if isinstance(x, Network):
        return NetworkSum._unchecked(x.topology, [x], [1])
    advice = " Say stack.sum() first." if isinstance(x, NetworkStack) else ""
    raise NetworkError(f"A Network or NetworkSum must come; {type(x).__name__} came.{advice}")


def _flat(pairs: Sequence[tuple[Any, Scalar]]) -> NetworkSum:
    terms: list[Term] = []
    weights: list[Scalar] = []
    n_before = 0
    for summand, weight in pairs:
        if isinstance(summand, NetworkSum):
            own, own_weights = summand._terms, summand._weights
        else:
            own, own_weights = (summand,), (1,)
        # The terms of one sum agree with each other already.
        terms += aligned(own, terms[0], n_before) if terms else own
        one = type(weight) is int and weight == 1
        weights += own_weights if one else [multiplied(w, weight) for w in own_weights]
        n_before += summand.n_summands if isinstance(summand, NetworkSum) else count(summand)
    total = NetworkSum._unchecked(terms[0].topology, terms, weights)
    total._n_summands = n_before
    return total
