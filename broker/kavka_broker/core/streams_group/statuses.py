"""The statuses in the answer to a heartbeat: what keeps an application from its work, and is no error of a request."""

from enum import IntEnum
from typing import NamedTuple

__all__ = ["Status", "StatusCode"]


class StatusCode(IntEnum):
    """The code of a status, by Kafka's numbers (StreamsGroupHeartbeatResponse)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """A status, with a sentence for the application's log."""

    code: StatusCode
    detail: str
