"""Describes share groups (KIP-932): their members, where their share partitions begin, and how far behind they are.

kafka-python knows ShareGroupDescribe and DescribeShareGroupOffsets by number and has no messages for them: its classes
are made from the schemas in `schemas`.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import kafka.errors
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import FindCoordinatorRequest

SCHEMAS: Final = f"{__package__}.schemas"
GROUPS_AT_ONCE: Final = 500
"""Groups in one request, whose answer has all their members and partitions."""
GROUP_KEY: Final = 0
UNKNOWN_THERE: Final = (kafka.errors.IncompatibleBrokerVersion, kafka.errors.UnsupportedVersionError)
"""The errors of brokers that do not know the request. Such a broker has no share groups to describe."""

Send = Callable[[Any, int | None], Any]
PartitionKey = tuple[str, int]


class ShareGroupDescribeRequest(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The request for the states and members of share groups."""


class ShareGroupDescribeResponse(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The states and members of share groups."""


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The request for the start offsets of share groups."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The start offsets and lags of share groups."""


@dataclass(slots=True)
class ShareGroup:
    """A share group as its coordinator describes it; None where the coordinator refuses. `lags` has each partition of
    the group, with None where its lag is not known; Kafka before 4.2 tells none.
    """

    state: str | None = None
    members: tuple[tuple[str, str], ...] | None = None  # client id and host
    starts: Mapping[PartitionKey, int] | None = None
    lags: dict[PartitionKey, int | None] = field(default_factory=dict)


def describe_share_groups(send: Send, names: Sequence[str]) -> dict[str, ShareGroup]:
    """Return the share groups of these names. One that its coordinator does not describe has None in each place."""
    found = {name: ShareGroup() for name in names}
    with contextlib.suppress(*UNKNOWN_THERE):
        for coordinator, some in _by_coordinator(send, names):
            _read_members(send(ShareGroupDescribeRequest(group_ids=some), coordinator), found)
            make = DescribeShareGroupOffsetsRequest.Group
            asked = [make(group_id=name, topics=None) for name in some]
            _read_offsets(send(DescribeShareGroupOffsetsRequest(groups=asked), coordinator), found)
    return found


def _by_coordinator(send: Send, names: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Give the groups of each coordinator, some at once; those without one are left out."""
    for begin in range(0, len(names), GROUPS_AT_ONCE):
        some = list(names[begin : begin + GROUPS_AT_ONCE])
        answer = send(FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=some, min_version=4), None)
        by_node: dict[int, list[str]] = {}
        for told in answer.coordinators:
            if not told.error_code:
                by_node.setdefault(told.node_id, []).append(told.key)
        yield from by_node.items()


def _read_members(answer: Any, found: Mapping[str, ShareGroup]) -> None:
    for told in _without_errors(answer.groups):
        group = found[told.group_id]
        group.state = told.group_state
        group.members = tuple((member.client_id, member.client_host.lstrip("/")) for member in told.members)


def _read_offsets(answer: Any, found: Mapping[str, ShareGroup]) -> None:
    for told in _without_errors(answer.groups):
        group, starts = found[told.group_id], dict[PartitionKey, int]()
        for topic in told.topics:
            for partition in topic.partitions:
                key = topic.topic_name, partition.partition_index
                is_told = not partition.error_code
                group.lags[key] = partition.lag if is_told and partition.lag >= 0 else None
                if is_told and partition.start_offset >= 0:
                    starts[key] = partition.start_offset
        group.starts = starts


def _without_errors(told: Iterable[Any]) -> Iterator[Any]:
    return (element for element in told if not element.error_code)
