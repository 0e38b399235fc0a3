"""The paper's experiment: images classified by what the sum of their networks has in common.

`reproduce` runs it, or goes on with it, and writes results, figures and a report. The paper's numbers
are in `paper.json` and nowhere else.
"""

from tnsum.experiments._points import Point, Summary
from tnsum.experiments._reproduce import reproduce
from tnsum.experiments._results import Reproduction
from tnsum.experiments._settings import Settings

__all__ = ["Point", "Reproduction", "Settings", "Summary", "reproduce"]
