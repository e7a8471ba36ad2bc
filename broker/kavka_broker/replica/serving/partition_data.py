"""What the answer for one partition says."""

from kavka_broker.protocol.messages.fetch_response import PartitionData


def size_of(data: PartitionData) -> int:
    """The bytes of its records."""
    return sum(map(len, data.records)) if isinstance(data.records, list) else 0


def has_diverged(data: PartitionData) -> bool:
    """Whether it says where the reader's log parts from this one."""
    return data.diverging_epoch.end_offset >= 0


def says_more(data: PartitionData) -> bool:
    """Whether it says more than where the log is."""
    return bool(data.error_code) or has_diverged(data) or data.preferred_read_replica >= 0
