"""Why a node does not start."""


class CannotStart(Exception):
    """Metadata on the disk with which this node cannot start; the message says why and what to do."""
