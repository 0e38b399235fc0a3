"""What a network, stack, sum, accumulator or classifier is, in one line and as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tnsum._arrays import dtype_name
from tnsum._packing import CLASSIFIER, KINDS, Saved
from tnsum.compression._accumulator import SumAccumulator
from tnsum.network import NetworkStack
from tnsum.summation import NetworkSum
from tnsum.topology import short

if TYPE_CHECKING:
    from tnsum.fusion._classifier import ImageClassifier

_SHOWN_NODES = 6
# The classes of a confusion matrix that fits onto a screen.
_MOST_COLUMNS = 15
_SHOWN_MISTAKES = 3
_NO_OBJECTS = (
    "accuracy for new objects: not known; folders class/object/image, with two or more objects of each "
    "class, would tell"
)


def in_one_line(x: Saved) -> str:
    """For instance: sum of 3 networks of order 3, shape (6, 5, 4), float64, 118 parameters."""
    several = "" if KINDS[type(x)] == "network" else f" of {n_networks(x)} networks"
    return (
        f"{KINDS[type(x)]}{several} of order {x.order}, shape {short(x.shape)}, {dtype_name(x.dtype)}, "
        f"{x.n_parameters} parameters"
    )


def n_networks(x: Saved) -> int:
    """How many networks it stands for."""
    if isinstance(x, NetworkSum | SumAccumulator):
        return x.n_summands
    return len(x) if isinstance(x, NetworkStack) else 1


def n_parameters_of_nodes(x: Saved) -> dict[str, int]:
    """The entries that are held of each node; the zeros of a sum's blocks are not."""
    if isinstance(x, SumAccumulator):
        pairs = zip(x._tree, x._widths.n_sums, strict=True)
        return {branch.name: n for branch, n in pairs}
    terms: tuple[Any, ...] = x._terms if isinstance(x, NetworkSum) else (x,)
    nodes = x.topology.nodes
    return {name: sum(int(term.arrays[name].size) for term in terms) for name in nodes}


def as_values(x: Saved) -> dict[str, Any]:
    """All that is known of `x` without its entries, ready for JSON."""
    topology, held_by = x.topology, n_parameters_of_nodes(x)
    physical = set(topology.physical_modes)
    sizes, more = _sizes_of(x), dict[str, int]()
    if isinstance(x, SumAccumulator):
        more = {"max_rank": x.max_rank, "seed": x.seed}
    return {
        "kind": KINDS[type(x)],
        "networks": n_networks(x),
        "order": x.order,
        "shape": list(x.shape),
        "dtype": dtype_name(x.dtype),
        "parameters": x.n_parameters,
        **more,
        "nodes": [
            {"name": name, "modes": list(held), "parameters": held_by[name]}
            for name, held in topology.nodes.items()
        ],
        "modes": [
            {
                "name": mode,
                "size": sizes[mode],
                "physical": mode in physical,
                "nodes": list(dict.fromkeys(topology.holders(mode))),
            }
            for mode in (*topology.physical_modes, *topology.contraction_modes)
        ],
    }


def _sizes_of(x: Saved) -> Mapping[str, int]:
    """The size of each mode; the ranks of an accumulator are the largest that it may give."""
    if not isinstance(x, SumAccumulator):
        return x.sizes
    physical = dict(zip(x.topology.physical_modes, x.shape, strict=True))
    return {mode: physical.get(mode, x.max_rank) for mode in x.topology.modes}


def node_rows(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The rows of a table of nodes."""
    sizes = {mode["name"]: mode["size"] for mode in values["modes"]}
    return [
        (
            node["name"],
            ", ".join(f"{mode}={sizes[mode]}" for mode in node["modes"]),
            str(node["parameters"]),
        )
        for node in values["nodes"]
    ]


def mode_rows(values: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The rows of a table of modes."""
    return [
        (
            mode["name"],
            "physical" if mode["physical"] else "contraction",
            str(mode["size"]),
            _some(mode["nodes"]),
        )
        for mode in values["modes"]
    ]


def _some(names: list[str]) -> str:
    """Names in a cell of a table, cut short when they are many."""
    if len(names) <= _SHOWN_NODES:
        return ", ".join(names)
    return f"{', '.join(names[:_SHOWN_NODES])}, ... {len(names)} in all"


# classifiers


def classifier_in_one_line(x: ImageClassifier) -> str:
    """For instance: classifier of 8 classes, images of 32 x 32 x 3, 278 features, ..."""
    return (
        f"classifier of {len(x.classes_)} classes, images of {' x '.join(map(str, x.image_shape_))}, "
        f"{x.features_.n_features} features, {len(x.machine_.vectors)} support vectors"
    )


def expectation(x: ImageClassifier) -> str:
    """What to expect of a classifier, and how that is known."""
    found = x.validation_
    of_what = "new objects" if found.n_objects else "new images of the same objects"
    shown = f" of {found.n_objects} objects" if found.n_objects else ""
    lines = [
        f"expected accuracy for {of_what}: {100 * found.accuracy:.1f} % +- "
        f"{100 * found.standard_error:.1f} % (one standard error), by {found.n_folds}-fold "
        f"cross-validation of {found.n_images} images{shown}"
    ]
    if not found.n_objects:
        lines.append(_NO_OBJECTS)
    kernel = f"gamma {found.gamma:g}, C {found.C:g}"
    return "\n".join([*lines, f"kernel exp(-gamma |x - y|^2) with {kernel}"])


def classifier_as_values(x: ImageClassifier) -> dict[str, Any]:
    """All that is known of a classifier without its arrays, ready for JSON."""
    found = x.validation_
    n_images = found.confusion.sum(axis=1).tolist()
    rows = zip(x.classes_.tolist(), n_images, x.machine_.counts, strict=True)
    return {
        "kind": CLASSIFIER,
        "classes": [{"name": name, "images": n, "support_vectors": m} for name, n, m in rows],
        "image_shape": list(x.image_shape_),
        "features": x.features_.n_features,
        "support_vectors": len(x.machine_.vectors),
        "gamma": found.gamma,
        "C": found.C,
        "expected_accuracy": found.accuracy,
        "standard_error": found.standard_error,
        "folds": found.n_folds,
        "objects": found.n_objects,
        "seed": x.seed,
        "confusion": found.confusion.tolist(),
    }


def confusion_table(x: ImageClassifier) -> tuple[list[str], list[list[str]], str]:
    """The columns and rows of a table of what was taken for what, and a line below it."""
    names, confusion = x.classes_.tolist(), x.validation_.confusion
    n_images, are_few = confusion.sum(axis=1), len(names) <= _MOST_COLUMNS
    rows = []
    for k, name in enumerate(names):
        right = f"{100 * confusion[k, k] / max(1, n_images[k]):.1f} %"
        counts = [str(n) if n else "." for n in confusion[k]] if are_few else [_mistakes(x, k)]
        rows.append([str(k + 1), name, str(n_images[k]), right, *counts])
    numbers = [f"#{k + 1}" for k in range(len(names))]
    columns = ["#", "class", "#images", "#right", *(numbers if are_few else ["taken for"])]
    how = "Numbers in columns say how many images were taken for that class, when held back."
    return columns, rows, how if are_few else ""


def _mistakes(x: ImageClassifier, k: int) -> str:
    """What images of class k are most often taken for."""
    counts = x.validation_.confusion[k].copy()
    counts[k] = 0
    worst = counts.argsort(kind="stable")[::-1][:_SHOWN_MISTAKES]
    return ", ".join(f"{x.classes_[j]} {counts[j]}" for j in worst if counts[j])
