"""What all tests share: the same examples in every run.

A change is judged by what it does, not by the luck of a draw. `--hypothesis-profile hunt` draws others.
"""

from hypothesis import settings

settings.register_profile("same", derandomize=True)
settings.register_profile("hunt", derandomize=False, print_blob=True)
settings.load_profile("same")
