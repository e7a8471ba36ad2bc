"""Why a node does not start."""


class CannotStart(Exception):
    """Metadata on the disk that this node cannot go on with; the message says why and what to do."""
