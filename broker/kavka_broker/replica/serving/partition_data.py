"""What the answer for one partition says."""

from kavka_broker.protocol.messages.fetch_response import PartitionData


def size_of(data: PartitionData) -> int:
    """Return the bytes of its records."""
    return sum(map(len, data.records)) if isinstance(data.records, list) else 0


def has_diverged(data: PartitionData) -> bool:
    """Whether the data says where the reader's log parts from this one."""
    return data.diverging_epoch.end_offset >= 0


def says_more(data: PartitionData) -> bool:
    """Whether the data says more than the log's offsets."""
    return bool(data.error_code) or has_diverged(data) or data.preferred_read_replica >= 0
