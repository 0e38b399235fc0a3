"""The errors that tnsum raises for wrong networks, modes and files.

Each message says what must hold, what came, and what to do.
"""


class NetworkError(ValueError):
    """A network, a sum of networks or an operation on them is not possible as asked."""


class TopologyError(NetworkError):
    """Two networks have topologies that no renaming of nodes and modes makes equal."""


class ModeError(NetworkError):
    """A mode is unknown, named twice, or has a size that does not fit."""


class UnsuitableError(NetworkError):
    """What was named is not for this: a folder without images, images of one class only.

    Nothing is damaged: something else must be named, or more of it. A command was misused then.
    """
