"""The order of the examples in the gallery: that in which a newcomer wants them."""

from __future__ import annotations

_ORDER = (
    "pictures.py", "image_fusion.py", "many_trains.py", "operator_of_pairs.py", "averaging_models.py",
    "streaming.py",
)  # fmt: skip


class NewcomersOrder:
    """A key to sort file names by; sphinx-gallery makes one for each folder."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, name: str) -> int:
        return _ORDER.index(name)
