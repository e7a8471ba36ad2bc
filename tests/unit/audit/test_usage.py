"""The use of topics and the delays by quotas: summed up by minute, exact in sum, bounded in kinds, never lost."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.audit.buffer import HELD_MAX, Journal
from kavka_broker.core.audit.chain import Chain, Kind
from kavka_broker.core.audit.events import KINDS_MAX
from kavka_broker.core.audit.keys import HmacKey
from kavka_broker.core.audit.usage import (
    MINUTE_MS,
    OTHERS,
    PAIRS_MAX,
    READ,
    TOPICS_MAX,
    WRITE,
    Throttling,
    Use,
    UseWindow,
)
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX

KEY = HmacKey(bytes(range(32)))
ALICE = '{"user": "alice"}'
LIMIT = ("produce", ALICE, 1024.0)


def test_use_is_summed_up_by_client_and_topic() -> None:
    window = UseWindow(0)
    window.wrote("alice", "::1", "app", "orders", 100, 3)
    window.wrote("alice", "::1", "app", "orders", 50, 1)
    window.read("alice", "::1", "app", "orders", 70)
    window.wrote("alice", "::1", "app", "bills", 1, 1)
    assert window.take(9) == [
        (Use("User:alice", "::1", "app", WRITE, "orders", 150, 4), 2),
        (Use("User:alice", "::1", "app", READ, "orders", 70, None), 1),
        (Use("User:alice", "::1", "app", WRITE, "bills", 1, 1), 1),
    ]
    assert window.take(10) == []
    assert window.start_ms == 10


def test_delays_are_summed_up_by_client_and_quota_with_the_last_limit() -> None:
    window = UseWindow(0)
    window.throttled("alice", "::1", "app", LIMIT, 300)
    window.throttled("alice", "::1", "app", (*LIMIT[:2], 2048.0), 200)
    expected = Throttling("User:alice", "::1", "app", "produce", ALICE, 2048.0, 500, 300)
    assert window.take(9) == [(expected, 2)]


BATCHES = st.lists(st.tuples(st.integers(0, PAIRS_MAX + 50), st.integers(1, 9)), max_size=50)


@given(batches=BATCHES, is_full=st.booleans())
def test_no_byte_is_lost_to_the_bound(batches: list[tuple[int, int]], *, is_full: bool) -> None:
    window = UseWindow(0)
    for number in range(PAIRS_MAX if is_full else 0):
        window.wrote("a", "::1", "c", str(number), 1, 1)
    for number, size in batches:
        window.wrote("b", "::1", "c", str(number), size, size)
        window.read("b", "::1", "c", str(number), size)
        window.throttled("b", "::1", "c", ("fetch", str(number), 1.0), size)
    taken = window.take(1)
    uses = [use for use, _ in taken if isinstance(use, Use)]
    filled, wanted = (PAIRS_MAX if is_full else 0), sum(size for _, size in batches)
    assert sum(use.size_bytes for use in uses) == filled + 2 * wanted
    assert sum(use.records or 0 for use in uses) == filled + wanted
    assert sum(found.throttle_time_ms for found, _ in taken if isinstance(found, Throttling)) == wanted
    assert len(uses) <= PAIRS_MAX + TOPICS_MAX + 2
    named = {(use.operation, use.topic) for use in uses if use.principal != "User:a"}
    assert named == {(operation, str(number)) for number, _ in batches for operation in (READ, WRITE)}


def test_a_topic_in_use_is_named_though_there_is_no_room_for_its_client() -> None:
    """It was told under the topic `(others)`, and then named as one that can be deleted."""
    window = UseWindow(0)
    for number in range(PAIRS_MAX):
        window.wrote(f"client-{number}", "::1", "c", "orders", 1, 1)
    for client in ("payroll", "other", "payroll"):
        window.wrote(client, "::1", "c", "precious", 100, 2)
    window.wrote("client-7", "::1", "c", "orders", 1, 1)
    taken = window.take(1)
    assert taken[PAIRS_MAX:] == [(Use("User:(others)", "", "", WRITE, "precious", 300, 6), 3)]
    assert taken[7] == (Use("User:client-7", "::1", "c", WRITE, "orders", 2, 2), 2)


def test_topics_beyond_the_bound_are_told_as_others() -> None:
    window = UseWindow(0)
    for number in range(PAIRS_MAX + TOPICS_MAX + 5):
        window.read("a", "::1", "c", f"topic-{number}", 10)
    window.read("b", "::1", "c", f"topic-{PAIRS_MAX}", 10)
    taken = window.take(1)
    assert len(taken) == PAIRS_MAX + TOPICS_MAX + 1
    assert taken[PAIRS_MAX] == (Use("User:(others)", "", "", READ, f"topic-{PAIRS_MAX}", 20, None), 2)
    assert taken[-1] == (Use("User:(others)", "", "", READ, OTHERS, 50, None), 5)


def test_long_names_are_cut() -> None:
    window = UseWindow(0)
    window.wrote("a" * 1000, "::1", "b" * 1000, "c" * 249, 1, 1)
    window.throttled("a" * 1000, "::1", "b" * 1000, LIMIT, 1)
    texts = [part for found, _ in window.take(1) for part in found if isinstance(part, str)]
    assert max(map(len, texts)) == len("User:") + NAME_CHARACTERS_MAX


def test_names_that_begin_alike_stay_apart() -> None:
    """A certificate's name may have 1,024 characters: cut alone, two users would be one to an auditor."""
    window, long = UseWindow(0), "CN=" + "a" * 500
    for user in (f"{long},OU=a", f"{long},OU=b"):
        window.wrote(user, "::1", "app", "orders", 1, 1)
    (one, _), (other, _) = window.take(1)
    assert isinstance(one, Use)
    assert isinstance(other, Use)
    assert one.principal != other.principal


def test_a_window_ends_with_its_minute_or_a_clock_that_goes_back() -> None:
    window = UseWindow(MINUTE_MS + 5)
    assert not window.is_due(2 * MINUTE_MS - 1)
    assert window.is_due(2 * MINUTE_MS)
    assert window.is_due(MINUTE_MS - 1)


def test_another_interval_ends_windows_sooner() -> None:
    window = UseWindow(2_500, 1_000)
    assert not window.is_due(2_999)
    assert window.is_due(3_000)
    window.take(3_000)
    assert not window.is_due(3_999)


def journal() -> Journal:
    kept = Journal(Chain("1-7", KEY), 0)
    kept.use.wrote("alice", "::1", "app", "orders", 100, 3)
    return kept


def test_use_waits_for_the_end_of_its_minute() -> None:
    kept = journal()
    kept.close_window(MINUTE_MS - 1)
    assert kept.waiting == 0
    kept.close_window(MINUTE_MS)
    entry = next(entry for entry in kept.batch(MINUTE_MS) if entry.kind is Kind.EVENT)
    event = json.loads(entry.value)
    assert (event["start_time"], event["end_time"], event["count"]) == (0, MINUTE_MS, 1)
    assert event["unmapped"] == {"kafka": {"bytes": 100, "records": 3}}


def test_use_is_counted_on_while_the_topic_takes_nothing() -> None:
    kept = journal()
    kept.window.denied("User:a", "::1", "WRITE", "topic", "t")
    kept.close_window(1)
    for minute in range(1, 4):
        kept.use.wrote("alice", "::1", "app", "orders", 100, 3)
        kept.close_window(minute * MINUTE_MS)
    assert kept.waiting == 1
    kept.batch(3 * MINUTE_MS)
    kept.close_window(3 * MINUTE_MS + 1)
    (entry,) = kept.batch(3 * MINUTE_MS + 1)
    assert json.loads(entry.value)["unmapped"] == {"kafka": {"bytes": 400, "records": 12}}


def test_use_takes_no_room_that_refusals_need() -> None:
    kept = journal()
    for second in range(HELD_MAX // KINDS_MAX):
        for number in range(KINDS_MAX):
            kept.window.denied(f"User:{number % 50}", "::1", "WRITE", "topic", f"{second}-{number}")
        kept.close_window(MINUTE_MS + second)
    assert kept.dropped_total == 1  # the use was first to wait; it is the next minutes' that do not
    kept.use.wrote("alice", "::1", "app", "orders", 100, 3)
    kept.close_window(2 * MINUTE_MS)
    assert (kept.waiting, kept.dropped_total) == (HELD_MAX, 1)


def test_the_last_use_is_told_though_others_wait() -> None:
    kept = journal()
    kept.window.denied("User:a", "::1", "WRITE", "topic", "t")
    kept.close_window(1)
    kept.close_window(2, is_last=True)
    events = [json.loads(entry.value) for entry in kept.batch(3, is_last=True) if entry.kind is Kind.EVENT]
    assert [event["api"]["operation"] for event in events] == ["WRITE", "WRITE"]
    assert events[1]["unmapped"]["kafka"]["bytes"] == 100
