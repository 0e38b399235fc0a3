"""Networks, stacks and sums as JAX pytrees, without importing JAX.

A class says here how it is taken apart; once JAX has been imported by somebody, the next network
that is built makes it known there.
"""

import sys
from collections.abc import Callable
from typing import Any

_waiting: list[tuple[type, Callable[[Any], Any], Callable[[Any, Any], Any]]] = []


def register(
    cls: type,
    flatten: Callable[[Any], tuple[Any, Any]],
    unflatten: Callable[[Any, Any], Any],
) -> None:
    """Make `cls` a pytree: flatten gives (children, static), unflatten takes (static, children)."""
    _waiting.append((cls, flatten, unflatten))
    tell_jax()


def tell_jax() -> None:
    """Register what waits, if JAX is imported."""
    if not _waiting or "jax" not in sys.modules:
        return
    tree_util = getattr(sys.modules["jax"], "tree_util", None)
    while tree_util is not None and _waiting:
        tree_util.register_pytree_node(*_waiting.pop())
