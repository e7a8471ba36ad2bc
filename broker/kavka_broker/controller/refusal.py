"""Why a node does not start."""


class CannotStart(Exception):
    """The metadata on the disk is not one that this broker can go on with; the message says why and what to do."""
