"""Processes that share the splits, and end when the one that started them does.

A process that is killed tells nobody, and those of joblib wait minutes for more to do. But an orphan
gets another parent, which it can see.
"""

from __future__ import annotations

import os
import time
from functools import cache
from threading import Thread

from tnsum.experiments._methods import Prepared
from tnsum.experiments._outcomes import Outcome, outcome_of
from tnsum.experiments._splits import Split

_SECONDS = 1.0


def outcome_in_process(parent: int, split: Split, known: Prepared, seed: int) -> Outcome:
    """What comes out of a split, in a process that `parent` has started."""
    _end_with(parent)
    return outcome_of(split, known, seed)


@cache
def _end_with(parent: int) -> None:
    """Have this process end when its parent has, on systems where that can be seen."""
    if os.getppid() == parent:
        Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(1)
