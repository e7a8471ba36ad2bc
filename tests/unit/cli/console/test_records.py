"""Records for the page: what a form asks for, which records match, and where a search ends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kavka_operator.live_views import records as module
from kavka_operator.live_views.records import (
    WINDOW_RECORDS,
    BadQueryError,
    Query,
    Reader,
    Search,
    document_of,
    query_of,
)


def record(offset: int, value: bytes | None = b"v", key: bytes | None = b"k", **others: Any) -> Any:
    fields = {"partition": 0, "timestamp": 1000 + offset, "headers": (), **others}
    return SimpleNamespace(offset=offset, key=key, value=value, **fields)


class TopicPartition(NamedTuple):
    """A partition as the library names it."""

    topic: str
    partition: int


@dataclass
class Client:
    """A consumer of partitions whose offsets begin at 0. `gaps` are offsets without a record."""

    ends: Mapping[int, int]
    make: Callable[[int, int], Any] = lambda partition, offset: record(offset, partition=partition)
    at_once: int = 3
    gaps: frozenset[int] = frozenset()
    _positions: dict[TopicPartition, int] = field(default_factory=dict)
    _paused: set[TopicPartition] = field(default_factory=set)

    @property
    def partition_ends(self) -> dict[TopicPartition, int]:
        return {TopicPartition("t", number): end for number, end in self.ends.items()}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._positions = dict.fromkeys(partitions, -1)  # what is paused stays so, as in the library

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._positions[partition] = offset

    def pause(self, *partitions: TopicPartition) -> None:
        self._paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._paused.difference_update(partitions)

    def position(self, partition: TopicPartition) -> int:
        return self._positions[partition]

    def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        assert timeout_ms > 0
        found = {}
        for at in sorted(self._positions.keys() - self._paused):
            first = self._positions[at]
            offsets = range(first, min(self.ends[at.partition], first + self.at_once))
            self._positions[at] = first + len(offsets)
            found[at] = [self.make(at.partition, offset) for offset in offsets if offset not in self.gaps]
        return found


def searched(
    client: Client, window: int = WINDOW_RECORDS, bounds: Mapping[str, Any] = MappingProxyType({}), **query: Any
) -> tuple[str, list[tuple[int, int]], int]:
    """Why a search ended, what it found by partition and offset, and how many records it looked at."""
    reader = Reader(client, Search(Query("t", **query), **bounds), lambda: False, window)
    ends = client.partition_ends
    ended = reader.read_newest(ends) if reader.search.query.at == "newest" else reader.read_from(ends)
    found = [(shown["partition"], shown["offset"]) for shown in reader.search.records()]
    return ended, found, reader.search.scanned


def test_the_newest_come_first_and_no_more_is_read_than_they_need() -> None:
    client = Client({0: 1000}, at_once=500)
    assert searched(client, count=5) == ("count", [(0, offset) for offset in range(999, 994, -1)], 6), "2 and 4"


def test_of_few_records_all_are_shown() -> None:
    assert searched(Client({0: 3, 1: 0, 2: 1}), count=50) == ("end", [(0, 2), (0, 1), (2, 0), (0, 0)], 4)


def test_the_newest_of_several_partitions_are_those_of_the_greatest_times() -> None:
    def make(partition: int, offset: int) -> Any:
        return record(offset, partition=partition, timestamp=offset + 100 * partition)

    assert searched(Client({0: 40, 1: 40}, make), count=3)[1] == [(1, 39), (1, 38), (1, 37)]


def test_offsets_without_records_are_passed_over() -> None:
    """As compaction leaves them, and the markers of transactions: the newest are further back than their number."""
    every_tenth = frozenset(range(100)) - set(range(0, 100, 10))
    client = Client({0: 100}, gaps=every_tenth)
    assert searched(client, count=4) == ("count", [(0, at) for at in (90, 80, 70, 60)], 6), "60 and older"
    assert searched(client, count=50) == ("end", [(0, at) for at in range(90, -1, -10)], 10)
    assert searched(Client({0: 100, 1: 5}, gaps=every_tenth), count=2)[1] == [(0, 90), (0, 80)]
    assert searched(Client({0: 100}, gaps=frozenset(range(100))), count=2) == ("end", [], 0)


def test_a_search_goes_backwards_until_it_has_found_enough() -> None:
    def make(_: int, offset: int) -> Any:
        return record(offset, b"needle" if offset in {10, 90, 93} else b"hay")

    client = Client({0: 100}, make, at_once=50)
    assert searched(client, 4, value=b"needle", count=2) == ("count", [(0, 93), (0, 90)], 12), "4 and 8, from the end"
    assert searched(client, 4, value=b"needle", count=50) == ("end", [(0, 93), (0, 90), (0, 10)], 100)


def test_a_bound_leaves_out_what_is_oldest() -> None:
    def make(_: int, offset: int) -> Any:
        return record(offset, b"needle" if offset in {10, 99} else b"hay")

    assert searched(Client({0: 100}, make), 4, {"scanned_max": 10}, value=b"needle") == ("scanned", [(0, 99)], 10)


def test_the_newest_have_no_hole_where_time_or_bytes_end_within_a_window() -> None:
    """A window is read forwards: what was read of one that is not finished is older than what was not."""
    times = iter([False, False, True])  # windows of 2 and of 4 records, of which a poll brings 3
    reader = Reader(Client({0: 100}), Search(Query("t")), lambda: next(times))
    assert reader.read_newest({TopicPartition("t", 0): 100}) == "seconds"
    assert [shown["offset"] for shown in reader.search.records()] == [99, 98]
    client = Client({0: 100}, lambda _, offset: record(offset, b"x" * 10))
    assert searched(client, bounds={"bytes_max": 50}, count=50) == ("bytes", [(0, 99), (0, 98)], 5)


def test_from_a_place_it_goes_on_until_it_has_found_enough() -> None:
    client = Client({0: 100})
    assert searched(client, at="offset", offset=40, count=4)[:2] == ("count", [(0, at) for at in (40, 41, 42, 43)])
    assert searched(client, at="offset", offset=98, count=4)[:2] == ("end", [(0, 98), (0, 99)])
    assert searched(client, at="oldest", count=1)[:2] == ("count", [(0, 0)])


def test_bytes_are_bounded_and_what_is_beyond_the_end_is_not_shown() -> None:
    client = Client({0: 100}, lambda _, offset: record(offset, b"x" * 9))
    assert searched(client, bounds={"bytes_max": 25}, at="oldest")[::2] == ("bytes", 3)
    reader = Reader(client, Search(Query("t", at="oldest")), lambda: False)
    assert reader.read_from({TopicPartition("t", 0): 2}) == "end"
    assert reader.search.scanned == 2, "what comes meanwhile is not read"


def test_a_partition_that_does_not_answer_ends_with_the_time() -> None:
    times = iter([False, False, True])
    reader = Reader(Client({0: 5}, at_once=0), Search(Query("t", at="oldest")), lambda: next(times))
    assert reader.read_from({TopicPartition("t", 0): 5}) == "seconds"


def test_keys_and_values_are_matched_as_bytes() -> None:
    query = Query("t", key="é".encode(), value=b"b")
    assert query.matches(record(0, b"abc", "caf\u00e9".encode()))
    assert not query.matches(record(0, b"abc", b"cafe"))
    assert not query.matches(record(0, None, "é".encode()))


def test_a_long_value_is_cut_at_a_whole_character() -> None:
    shown = document_of(record(0, "é".encode() * module.VALUE_BYTES_MAX, b"\xff", headers=[("h", b"1")] * 30))
    assert shown["value"] == "é" * (module.VALUE_BYTES_MAX // 2)
    assert (shown["isCut"], shown["valueBytes"]) == (True, 2 * module.VALUE_BYTES_MAX)
    assert shown["key"] == {"base64": "/w=="}
    assert (len(shown["headers"]), shown["headersOmitted"]) == (module.HEADERS_MAX, 10)
    assert document_of(record(0, None, None))["value"] is None
    odd = document_of(record(0, b"\xff" * (module.VALUE_BYTES_MAX + 5)))
    assert set(odd["value"]) == {"base64"}


def test_a_form_is_read() -> None:
    fields = {"topic": "t", "at": "offset", "where": " 12 ", "partition": "3", "key": "k", "value": "", "count": "7"}
    assert query_of(fields) == Query("t", "offset", 12, None, 3, b"k", b"", 7)
    assert query_of({"topic": "t"}) == Query("t")
    assert query_of({"topic": "t", "at": "time", "where": "2026-11-28T19:00:00Z"}).begin_ms == 1_795_892_400_000


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "topic"),
        ({"topic": "t", "at": "elsewhere"}, "at: write one of"),
        ({"topic": "t", "count": "201"}, "at most 200"),
        ({"topic": "t", "count": "-1"}, "not a number"),
        ({"topic": "t", "partition": "²"}, "not a number"),
        ({"topic": "t", "at": "offset"}, "an offset"),
        ({"topic": "t", "at": "offset", "where": "9" * 40}, "not a number"),
        ({"topic": "t", "at": "time", "where": "soon"}, "is not a time"),
        ({"topic": "t", "at": "time", "where": "now"}, "-5m"),
        ({"topic": "t", "key": "x" * 1001}, "characters"),
    ],
)
def test_a_form_that_says_nothing_is_refused_by_its_field(fields: dict[str, str], words: str) -> None:
    with pytest.raises(BadQueryError, match=words):
        query_of(fields)
