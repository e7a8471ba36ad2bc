"""Answers with an error, made from the definitions of messages; a broker is the oracle of their shape."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.protocol.catalog import request_class, response_class
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Struct, says
from kavka_broker.protocol.messages import index
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.offset_fetch_request import OffsetFetchRequest
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.request.registry import APIS
from kavka_pytest.error_answers import (
    answer_to,
    is_naming,
    is_struct,
    places,
    places_defined,
    rows_of,
    struct_of,
    way_to,
)
from kavka_pytest.fault_plan import Place
from tests.support.in_process import running

CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER
DESCRIBE_LOG_DIRS = 35
"""Its oldest versions name log directories, of which no request can know."""


def versions_of(key: int) -> range:
    low, high = request_class(key).VERSIONS
    return range(low, high + 1)


def filled(kind: type[Struct], version: int, numbers: "count[int]") -> Any:
    """A message with two elements in each array, and no value twice."""
    made: Any = kind()
    for row in rows_of(kind, version):
        inner = row[2].removeprefix("[]")
        if is_struct(row):
            if row[2].startswith("[]"):
                setattr(made, row[1], [filled(struct_of(kind, row), version, numbers) for _ in range(2)])
        elif inner in ("string", "uuid", "int32", "int64"):
            values = [value_of(inner, next(numbers)) for _ in range(2)]
            setattr(made, row[1], values if row[2].startswith("[]") else values[0])
        elif inner == "int8":
            setattr(made, row[1], [1] if row[2].startswith("[]") else 1)
    return made


def value_of(kind: str, number: int) -> str | bytes | int:
    return f"name-{number}" if kind == "string" else number.to_bytes(16, "big") if kind == "uuid" else number


def request_of(key: int, version: int) -> Any:
    """A request that a broker answers part by part."""
    request = filled(request_class(key), version, count(1_000_000 * version + 10_000 * key))  # no name comes twice
    for name, value in (("acks", 1), ("timeout_ms", 1_000), ("session_id", 0), ("session_epoch", -1)):
        if hasattr(request, name):
            setattr(request, name, value)
    if isinstance(request, MetadataRequest) and version >= 12:
        for topic in request.topics or ():
            topic.name = None  # it is asked for by its id
    return request


Names = list[tuple[tuple[tuple[str, Any], ...], Any]]


def names_in(part: Struct, way: tuple[str, ...]) -> Names:
    """What names the elements on a way, level by level."""
    if not way:
        return []
    elements = getattr(part, way[0])
    found = [(names_of(element), names_in(element, way[1:])) for element in elements]
    return sorted(found, key=repr)


def names_of(element: Struct) -> tuple[tuple[str, Any], ...]:
    """Its naming fields that are set; where a coordinator is, is not its name."""
    rows = [row for row in type(element).SCHEMA if is_naming(row) and row[1] != "host"]
    named = [(row[1], getattr(element, row[1])) for row in rows]
    return tuple((name, value) for name, value in named if value not in ("", bytes(16), None))


def cut(ours: Names, theirs: Names) -> Names:
    """Ours as far down as theirs go: a broker that refuses a whole group names none of its partitions."""
    if not theirs:
        return []
    inner = dict(theirs)
    return [(name, cut(parts, inner.get(name, []))) for name, parts in ours]


@pytest.mark.parametrize("key", sorted(index.REQUESTS))
def test_every_answer_carries_its_error_and_can_be_sent(key: int) -> None:
    for version in versions_of(key):
        request = request_of(key, version)
        room = places(request, version)
        assert room == places_defined(key, version)
        for place in room:
            answer = answer_to(request, version, CODE, place, "why")
            assert answer is not None
            again = decode(response_class(key), version, encode(answer, version))
            assert says(again, CODE) or "partition_error_code=6" in repr(again)
            way = way_to(response_class(key), request, version, place)
            assert way is not None
            assert names_in(again, way) == names_in(answer, way)


def test_answers_name_what_the_broker_names(tmp_path: Path) -> None:
    assert asyncio.run(compare_with_a_broker(tmp_path / "node")) > 70


async def compare_with_a_broker(directory: Path) -> int:
    """Send a request of each API and version, and compare; in how many answers the broker names parts."""
    compared = 0
    async with running(directory) as inside:
        for key in [key for key, api in sorted(APIS.items()) if "broker" in api.on and key != DESCRIBE_LOG_DIRS]:
            for version in range(APIS[key].versions[0], APIS[key].versions[1] + 1):
                request, kind = request_of(key, version), response_class(key)
                way = way_to(kind, request, version, Place.PARTS)
                ours = answer_to(request, version, CODE, Place.PARTS)
                if not way or ours is None:
                    continue
                client = await inside.connect()
                theirs = names_in(await client.call(request, kind, version), way)
                assert theirs == cut(names_in(ours, way), theirs), (key, version)
                compared += bool(theirs)
                client.close()
    return compared


def test_there_is_no_room_where_a_request_names_nothing() -> None:
    assert places(MetadataRequest(topics=None), 12) == frozenset()
    assert places(MetadataRequest(topics=None), 13) == {Place.TOP}
    assert places(ProduceRequest(acks=1), 9) == frozenset()
    assert answer_to(MetadataRequest(topics=None), 12, CODE, Place.TOP) is None


def test_produce_without_an_answer_has_no_room() -> None:
    request = request_of(0, 9)
    assert places(request, 9) == {Place.TOP}
    request.acks = 0
    assert places(request, 9) == frozenset()


@pytest.mark.parametrize(("version", "tops"), [(7, 1), (8, 2)])
def test_an_error_at_the_top_is_as_far_up_as_the_version_can(version: int, tops: int) -> None:
    request = filled(OffsetFetchRequest, version, count(1))
    answer: Any = answer_to(request, version, ErrorCode.NOT_COORDINATOR, Place.TOP)
    found = [answer.error_code] if version < 8 else [group.error_code for group in answer.groups]
    assert found == [ErrorCode.NOT_COORDINATOR] * tops
    assert all(not group.topics for group in answer.groups)


def test_what_is_unknown_beside_an_error_is_minus_one() -> None:
    answer: Any = answer_to(request_of(1, 11), 11, CODE, Place.PARTS)
    part = answer.responses[0].partitions[0]
    assert (part.high_watermark, part.last_stable_offset, part.log_start_offset) == (-1, -1, -1)
    assert part.records == b""
