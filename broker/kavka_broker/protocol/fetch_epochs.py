"""The epochs by which client and broker agree on a fetch session (KIP-227, FetchMetadata)."""

from typing import Final

NO_SESSION: Final = 0
EPOCH_NEW: Final = 0
EPOCH_LIMIT: Final = 2**31 - 1


def next_epoch(epoch: int) -> int:
    """The epoch of the fetch after the one with `epoch`: it wraps to 1, since 0 asks for a new session."""
    return 1 if epoch == EPOCH_LIMIT else epoch + 1
