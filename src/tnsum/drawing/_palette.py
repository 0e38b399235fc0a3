"""The colours of a picture on a light and on a dark ground.

Physical nodes are green and contraction nodes blue, as in the paper; blocks of summands have colours of
their own. Text on a ground or a node has a contrast of 4.5 to 1 or more (a test computes it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tnsum.drawing._scene import Role
from tnsum.errors import NetworkError

LINE_WIDTH = 1.6
OUTLINE_WIDTH = 1.5


@dataclass(frozen=True)
class Ink:
    """How a role is painted: filled, drawn around, or both; None is nothing."""

    fill: str | None
    line: str | None


LIGHT: Mapping[Role, Ink] = MappingProxyType({
    "contraction line": Ink(None, "#6b7686"),
    "physical line": Ink(None, "#2a9468"),
    "physical node": Ink("#dcf3e6", "#2a9468"),
    "contraction node": Ink("#dfeafb", "#3572c6"),
    "fourth-order node": Ink("#fdeacb", "#c47f17"),
    "behind": Ink("#f4f6f8", "#a3acb8"),
    "dot": Ink("#6b7686", None),
    "block 0": Ink("#fde7c2", "#c47f17"),
    "block 1": Ink("#e9dff8", "#8257be"),
    "block 2": Ink("#fbdde4", "#bd4a68"),
    "text": Ink("#1f2933", None),
    "size": Ink("#4f5b69", None),
})  # fmt: skip

DARK: Mapping[Role, Ink] = MappingProxyType({
    "contraction line": Ink(None, "#8e9aab"),
    "physical line": Ink(None, "#4fc491"),
    "physical node": Ink("#12382a", "#4fc491"),
    "contraction node": Ink("#182f51", "#77aaf2"),
    "fourth-order node": Ink("#43300f", "#e5a94a"),
    "behind": Ink("#20262e", "#66717f"),
    "dot": Ink("#8e9aab", None),
    "block 0": Ink("#4a3612", "#e5a94a"),
    "block 1": Ink("#3a2a58", "#b797ea"),
    "block 2": Ink("#4e2230", "#ec8aa4"),
    "text": Ink("#e8edf3", None),
    "size": Ink("#b4bfcc", None),
})  # fmt: skip


GROUNDS = {"light": "#ffffff", "dark": "#14181d"}


def palette_of(theme: str) -> Mapping[Role, Ink]:
    """The colours for a light or a dark ground; "auto" begins with the light ones.

    Raises
    ------
    NetworkError
        There is no such theme.
    """
    if theme not in ("auto", "light", "dark"):
        raise NetworkError(f"theme must be 'auto', 'light' or 'dark'; {theme!r} came.")
    return DARK if theme == "dark" else LIGHT
