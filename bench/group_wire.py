"""The few bytes of protocol of a member of a KIP-848 or a share group, beside those of `bench.wire`."""

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from bench.flexible_wire import NO_TAGS, NULL, Reader, counted, frame, text

HEARTBEAT: Final = 68
HEARTBEAT_VERSION: Final = 1
SHARE_HEARTBEAT: Final = 76
SHARE_HEARTBEAT_VERSION: Final = 1
REBALANCE_TIMEOUT_MS: Final = 300_000
#: Errors that end by themselves: the coordinator has yet to be found, or to read its log.
NOT_YET: Final = frozenset({14, 15, 16})

Owned = Mapping[bytes, Collection[int]]
"""Partitions by the id of their topic."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to a heartbeat. `assigned` is None where the member's assignment has not changed."""

    error: int
    epoch: int
    interval_ms: int
    assigned: Owned | None


def heartbeat_frame(group: str, member: str, epoch: int, topic: str | None, owned: Owned | None) -> bytes:
    """A heartbeat; with a `topic` it says everything of its member, as the one that joins does."""
    names = NULL if topic is None else counted(1) + text(topic)
    timeout_ms = -1 if topic is None else REBALANCE_TIMEOUT_MS
    body = text(group) + text(member) + struct.pack(">i", epoch) + NULL + NULL + struct.pack(">i", timeout_ms)
    return frame(HEARTBEAT, HEARTBEAT_VERSION, body + names + NULL + NULL + _partitions(owned) + NO_TAGS)


def share_heartbeat_frame(group: str, member: str, epoch: int, topic: str | None) -> bytes:
    """A heartbeat of a member of a share group, which is answered as that of a consumer group is."""
    names = NULL if topic is None else counted(1) + text(topic)
    body = text(group) + text(member) + struct.pack(">i", epoch) + NULL + names + NO_TAGS
    return frame(SHARE_HEARTBEAT, SHARE_HEARTBEAT_VERSION, body)


def _partitions(owned: Owned | None) -> bytes:
    if owned is None:
        return NULL
    parts = [
        topic_id + counted(len(indexes)) + struct.pack(f">{len(indexes)}i", *indexes) + NO_TAGS
        for topic_id, indexes in owned.items()
    ]
    return counted(len(parts)) + b"".join(parts)


def heard_in(body: memoryview) -> Heard:
    reader = Reader(body)
    reader.skip_tags()
    _, error = reader.unpack(">ih")
    reader.skip_text()
    reader.skip_text()
    epoch, interval_ms, is_assigned = reader.unpack(">iib")
    if is_assigned < 0:
        return Heard(error, epoch, interval_ms, None)
    assigned = {}
    for _ in range(reader.count()):
        (topic_id,) = reader.unpack("16s")
        count = reader.count()
        assigned[bytes(topic_id)] = set(reader.unpack(f">{count}i"))
        reader.skip_tags()
    return Heard(error, epoch, interval_ms, assigned)
