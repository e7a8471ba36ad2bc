"""What the regular expressions take for usual has the row that parsing gives it, and is what a broker writes."""

import json
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kavka_audit.lake.fast_parser import usual_line
from kavka_audit.lake.rows import row_of
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.events import Changed, Denied, Happening, LoggedIn
from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.core.audit.usage import Throttling, Use
from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_operator.kafka.records import PackedRecord
from tests.unit.analytics.trail import NOW_MS, At, Record, chain_of

ALICE = ("User:alice", "10.0.0.1")
HAPPENINGS: list[Happening] = [
    Use(*ALICE, "app", "WRITE", "orders", 100, 3),
    Use(*ALICE, "app", "READ", "orders", 0, None),
    Use("User:", "", "", "READ", "orders", 2**59, None),
    Throttling(*ALICE, "app", "produce", entity_key(Entity("alice", "app")), 1024.5, 500, 300),
    Throttling(*ALICE, "app", "fetch", entity_key(Entity(DEFAULT, None)), 1e15, 500, 300),
    Throttling("User:(others)", "", "(others)", "fetch", "", 0.0, 0, 0),
    Denied("User:bob", "10.0.0.1", "WRITE", "topic", "orders"),
    Denied("User:CN=bob,O=b", "::1", "CONNECT", "cluster", "kafka-cluster"),
    LoggedIn(None, "10.0.0.1", "EXTERNAL"),
    LoggedIn("alice", "10.0.0.1", "EXTERNAL"),
    LoggedIn("alice", "", "kafka listener "),
    Changed(*ALICE, "admin", Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", "9", "8")),
    Changed(*ALICE, "admin", Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", None, None)),
    Changed(*ALICE, "admin", Change("DELETE", "topic", "orders")),
]
ODD: list[Happening] = [
    Use("User:jürgen", "10.0.0.1", 'a "quoted" \\ name', "WRITE", "orders", 100, 3),
    Use(*ALICE, "line\nbreak\x7f", "READ", "orders", 10**18, None),
    Throttling(*ALICE, "app", "produce", entity_key(Entity('"', None)), 1e300, 500, 300),
    Changed(*ALICE, "admin", Change("ALTER_CONFIGS", "topic", "orders", "k", '{"a": 1}', "")),
]


def records_of(happenings: Sequence[Happening]) -> list[Record]:
    """The records of a chain that tells this, without its head."""
    entries = chain_of(1, [At(happening, times=2) for happening in happenings])[1][1:]
    return [Record(3, place, headers_of(entry), entry.value) for place, entry in enumerate(entries)]


USUAL = records_of(HAPPENINGS)


class Raw(NamedTuple):
    """A record with headers of any bytes."""

    partition: int
    offset: int
    headers: Sequence[tuple[str, bytes | None]]
    value: bytes | None
    packed_headers: bytes


def check(record: Record | Raw) -> bool:
    """Whether the record is usual; if so, its row is that of `row_of`."""
    if (line := usual_line(record)) is None:
        return False
    assert "\n" not in line
    found = {name: value for name, value in json.loads(line).items() if value is not None}
    assert found == {name: value for name, value in row_of(record).items() if value is not None}
    return True


@pytest.mark.parametrize("record", USUAL, ids=lambda record: f"{record.offset}")
def test_what_a_broker_writes_is_usual(record: Record) -> None:
    assert check(record)


@pytest.mark.parametrize("record", records_of(ODD), ids=lambda record: f"{record.offset}")
def test_odd_names_and_numbers_are_left_to_parsing(record: Record) -> None:
    assert not check(record)
    assert row_of(record)["kind"] == "event"


SNIPPETS = [
    b"", b"0", b"-", b"1e5", b"01", b"1.0", b'"', b"\\", b'\\"', b"\n", b" ", b",", b":", b"{", b"}", b"[]",
    b"null", b"true", b"\xff", b"\xc3\xbc", b"\xed\xa0\x80", b'"count":7,', b'"bytes":1,', b'{"ip":"x"},',
    b"14", b"999999999999999999", b"\x14", b"\x16", b"\x02", b"\x80\x01", b"ce_sequence", b"\x00",
]  # fmt: skip


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a piece of them replaced, dropped, or written twice."""
    for _ in range(chance.randrange(1, 3)):
        begin = chance.randrange(len(data) + 1)
        end = min(len(data), begin + chance.choice((0, 1, 1, 2, 5, 20)))
        piece = chance.choice([*SNIPPETS, data[begin:end] * 2, bytes([chance.randrange(256)])])
        data = data[:begin] + piece + data[end:]
    return data


@settings(max_examples=3_000, deadline=None)
@given(st.sampled_from(USUAL), st.integers(0, 2**32))
def test_a_damaged_event_that_is_usual_has_the_row_that_parsing_gives(record: Record, seed: int) -> None:
    value = damaged(record.value or b"", random.Random(seed))
    check(record._replace(value=value))


@settings(max_examples=1_000, deadline=None)
@given(st.sampled_from(USUAL), st.integers(0, 2**32))
def test_damaged_headers_that_are_usual_are_read_as_they_stand(record: Record, seed: int) -> None:
    packed = damaged(record.packed_headers, random.Random(seed))
    whole = Raw(record.partition, record.offset, headers_in(packed), record.value, packed)
    check(whole)


def test_headers_that_are_less_than_their_number_are_left_to_parsing() -> None:
    record = USUAL[0]
    packed = b"\x16" + record.packed_headers[1:]  # eleven
    assert not check(Raw(record.partition, record.offset, headers_in(packed), record.value, packed))


def headers_in(packed: bytes) -> list[tuple[str, bytes | None]]:
    """The headers as the operator's consumer takes them apart; where it cannot, none, of which no row comes."""
    try:
        return PackedRecord(0, 0, 0, None, packed).headers
    except ValueError:
        return []


ODD_VALUES = [0, 10**18 - 1, 10**18, NOW_MS, NOW_MS + 3_600_000, NOW_MS + 3_600_001, {}, [], {"a": None}, "14"]
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(ODD_VALUES)
)


@settings(max_examples=2_000, deadline=None)
@given(st.sampled_from(USUAL), st.integers(0, 2**32), VALUES, st.booleans())
def test_an_event_with_another_value_that_is_usual_has_the_row_that_parsing_gives(
    record: Record, seed: int, value: object, is_dropped: bool
) -> None:
    event, chance = json.loads(record.value or b""), random.Random(seed)
    place: Any = event
    while True:
        key: Any = chance.choice([*place] if isinstance(place, dict) else [*range(len(place))])
        if not place[key] or not isinstance(place[key], dict | list) or chance.random() < 0.2:
            break
        place = place[key]
    if is_dropped:
        del place[key]
    else:
        place[key] = value
    check(record._replace(value=json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")))


@example([("ce_sequence", b"7")])
@given(
    st.lists(
        st.tuples(
            st.sampled_from([name for name, _ in USUAL[0].headers]),
            st.sampled_from([b"7", b"007", b"", None, b"2" * 19]),
        ),
        min_size=1,
        max_size=2,
    )
)
def test_other_headers_that_are_usual_are_read_as_they_stand(changes: list[tuple[str, bytes | None]]) -> None:
    check(USUAL[0]._replace(headers=[*(dict(USUAL[0].headers) | dict(changes)).items()]))
    check(USUAL[0]._replace(headers=[*USUAL[0].headers, *changes]))
