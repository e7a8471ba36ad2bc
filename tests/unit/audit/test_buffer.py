"""From what happens to the entries of a chain: counted, bounded, in order, and read again from records."""

import json

import pytest

from kavka_broker.core.audit.buffer import BATCH_EVENTS_MAX, HELD_MAX, PRINCIPALS_MAX, Journal, Policy
from kavka_broker.core.audit.chain import HEAD_MS, Chain, Entry, Kind
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.cloud_events import entry_of, headers_of
from kavka_broker.core.audit.events import (
    ADDRESSES_MAX,
    KINDS_MAX,
    REFUSALS_MAX,
    Changed,
    Denied,
    LoggedIn,
    Tally,
    Window,
)
from kavka_broker.core.audit.keys import HmacKey
from kavka_broker.core.audit.verification import verify
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX

KEY = HmacKey(bytes(range(32)))


def journal() -> Journal:
    return Journal(Chain("1-7", KEY), 0)


def deny(window: Window, resource: str, number: int) -> None:
    """Refuse one of 50 principals, so that none of them has more refusals than a window tells apart."""
    window.denied(f"User:{number % 50}", "::1", "WRITE", "topic", resource)


def test_a_window_counts_what_is_the_same() -> None:
    window = Window(5)
    for _ in range(3):
        window.logged_in("alice", "10.0.0.1", "EXTERNAL")
    window.logged_in(None, "10.0.0.1", "EXTERNAL")
    expected = [
        Tally(LoggedIn("alice", "10.0.0.1", "EXTERNAL"), 3, 5, 9),
        Tally(LoggedIn(None, "10.0.0.1", "EXTERNAL"), 1, 5, 9),
    ]
    assert window.take(9) == expected
    assert window.take(12) == []


def test_changes_take_no_room_of_others() -> None:
    window = Window(0)
    for number in range(10):
        window.changed("User:a", "::1", "cli", Change("CREATE", "topic", f"t{number}"))
    for number in range(KINDS_MAX):
        deny(window, str(number), number)
    assert len({tally.happening for tally in window.take(1)}) == KINDS_MAX + 10


def test_what_a_window_has_no_room_for_is_counted_by_its_operation() -> None:
    window = Window(0)
    for number in range(KINDS_MAX + 5):
        deny(window, str(number), number)
    deny(window, "0", 0)  # known, so there is room
    window.logged_in("bob", "::1", "EXTERNAL")
    window.logged_in(None, "::1", "EXTERNAL")
    window.changed("User:a", "::1", "cli", Change("CREATE", "topic", "t"))
    taken = {tally.happening: tally.times for tally in window.take(1)}
    assert sum(taken.values()) == KINDS_MAX + 9
    assert list(taken.items())[KINDS_MAX:] == [
        (Denied("User:(others)", "", "WRITE", "topic", "(others)"), 5),
        (LoggedIn("(others)", "", "EXTERNAL"), 1),
        (LoggedIn(None, "", "EXTERNAL"), 1),
        (Changed("User:a", "::1", "cli", Change("CREATE", "topic", "t")), 1),  # of changes there were not so many
    ]
    assert taken[Denied("User:0", "::1", "WRITE", "topic", "0")] == 2


def test_one_principal_takes_no_room_of_others() -> None:
    window = Window(0)
    for number in range(3 * KINDS_MAX):
        window.denied("User:nobody", "10.0.0.1", "DESCRIBE", "group", str(number))
    window.denied("User:nobody", "10.0.0.1", "DESCRIBE", "group", "0")  # told apart already
    window.denied("User:nobody", "10.0.0.2", "READ", "topic", "secret")
    window.denied("User:bob", "10.0.0.3", "READ", "topic", "orders")
    taken = {tally.happening: tally.times for tally in window.take(1)}
    assert len(taken) == REFUSALS_MAX + 3
    assert taken[Denied("User:nobody", "10.0.0.1", "DESCRIBE", "group", "0")] == 2
    assert list(taken.items())[REFUSALS_MAX:] == [
        (Denied("User:nobody", "10.0.0.1", "DESCRIBE", "group", "(others)"), 3 * KINDS_MAX - REFUSALS_MAX),
        (Denied("User:nobody", "10.0.0.2", "READ", "topic", "(others)"), 1),
        (Denied("User:bob", "10.0.0.3", "READ", "topic", "orders"), 1),
    ]
    window.denied("User:nobody", "10.0.0.1", "DESCRIBE", "group", "again")
    assert [tally.happening for tally in window.take(2)] == [
        Denied("User:nobody", "10.0.0.1", "DESCRIBE", "group", "again")
    ]


def test_one_principal_with_very_many_addresses_takes_no_room_of_others() -> None:
    window = Window(0)
    for number in range(KINDS_MAX):
        window.denied("User:ANONYMOUS", f"2001:db8::{number:x}", "CONNECT", "listener", "CLIENTS")
    window.denied("User:ANONYMOUS", f"2001:db8::{REFUSALS_MAX:x}", "CONNECT", "listener", "INSIDE")
    taken = [(tally.happening, tally.times) for tally in window.take(1)]
    assert len(taken) == REFUSALS_MAX + ADDRESSES_MAX + 1
    assert taken[REFUSALS_MAX - 1][0][-1] == "CLIENTS"
    assert taken[REFUSALS_MAX] == (
        Denied("User:ANONYMOUS", f"2001:db8::{REFUSALS_MAX:x}", "CONNECT", "listener", "(others)"),
        2,
    )
    assert taken[-1] == (
        Denied("User:ANONYMOUS", "", "CONNECT", "listener", "(others)"),
        KINDS_MAX - REFUSALS_MAX - ADDRESSES_MAX,
    )


def test_events_about_refusals_are_counted_by_principal_of_so_many() -> None:
    kept = journal()
    for number in range(PRINCIPALS_MAX + 2):
        kept.window.denied(f"User:{number}", "::1", "WRITE", "topic", "t")
        kept.window.denied(f"User:{number}", "::1", "WRITE", "topic", "t")
    kept.window.denied("User:0", "::1", "WRITE", "topic", "u")
    kept.window.logged_in("alice", "::1", "EXTERNAL")
    kept.close_window(1)
    while kept.waiting:
        kept.batch(1)
    assert len(kept.refusal_events) == PRINCIPALS_MAX + 1
    assert [kept.refusal_events[f"User:{name}"] for name in ("0", "1", PRINCIPALS_MAX - 1, "(others)")] == [2, 1, 1, 2]


def test_long_names_are_cut() -> None:
    window = Window(0)
    window.denied("User:" + "a" * 1000, "::1", "WRITE", "topic", "b" * 1000)
    (tally,) = window.take(1)
    assert max(map(len, tally.happening)) == len("User:") + NAME_CHARACTERS_MAX  # type: ignore[arg-type]


def test_names_that_begin_alike_stay_apart() -> None:
    window, long = Window(0), "CN=" + "a" * 500
    for name in (f"{long},OU=a", f"{long},OU=b"):
        window.denied(f"User:{name}", "::1", "WRITE", "topic", "orders")
        window.logged_in(name, "::1", "TLS", "TLS")
        window.changed(f"User:{name}", "::1", "app", Change("ALTER_CONFIGS", "topic", "orders", name, name, name))
    assert len(window.take(1)) == 2 * len(("denied", "logged in", "changed"))


def test_a_clock_that_goes_back_ends_no_window_before_its_start() -> None:
    window = Window(100)
    window.logged_in("a", "::1", "L")
    assert window.take(50)[0][2:] == (100, 100)


def test_a_journal_writes_a_chain_that_verifies() -> None:
    kept, entries, now_ms = journal(), [], 0
    for number in range(3 * BATCH_EVENTS_MAX):
        kept.window.denied("User:a", "::1", "WRITE", "topic", str(number))
    kept.close_window(1)
    while kept.waiting:
        now_ms += HEAD_MS // 2
        entries += kept.batch(now_ms)
    entries += kept.batch(now_ms, is_last=True)
    verdict = verify(entries, [KEY])
    assert verdict.damage is None
    assert (verdict.events, verdict.lost, verdict.is_ended) == (3 * BATCH_EVENTS_MAX, 0, True)
    assert [entry.kind for entry in entries if entry.kind is not Kind.EVENT] == [Kind.HEAD, Kind.HEAD, Kind.END]


def test_nothing_to_tell_is_no_batch_until_a_head_is_due() -> None:
    kept = journal()
    assert [entry.kind for entry in kept.batch(0)] == [Kind.HEAD]
    assert kept.batch(HEAD_MS - 1) == []
    assert [entry.kind for entry in kept.batch(HEAD_MS)] == [Kind.HEAD]


def test_what_finds_no_room_is_lost_and_counted_in_the_chain() -> None:
    kept = journal()
    windows = HELD_MAX // KINDS_MAX
    for window in range(windows + 1):
        for number in range(KINDS_MAX):
            deny(kept.window, f"{window}-{number}", number)
        kept.close_window(window)
    assert (kept.waiting, kept.dropped_total, kept.usage) == (HELD_MAX, KINDS_MAX, 1.0)
    assert kept.admit(1), "nobody is refused"
    entries = kept.batch(9)
    assert [entry.kind for entry in entries[:2]] == [Kind.HEAD, Kind.LOSS]
    assert entries[1].lost == KINDS_MAX
    assert verify(entries, [KEY]).lost == KINDS_MAX
    assert kept.batch(10)[0].kind is Kind.EVENT


def rejecting() -> Journal:
    return Journal(Chain("1-7", KEY), 0, policy=Policy.REJECT)


def change(number: int) -> Change:
    return Change("CREATE", "topic", str(number))


def test_where_nothing_may_be_lost_a_full_journal_admits_nothing_and_a_written_one_does_again() -> None:
    kept, told = rejecting(), 0
    while kept.admit(100):
        for _ in range(100):
            kept.window.changed("User:a", "::1", "cli", change(told))
            told += 1
        kept.end(100)
        kept.close_window(told)
    assert (kept.is_full, told, kept.dropped_total, kept.usage) == (True, HELD_MAX, 0, 1.0)
    seen = []
    while kept.held:
        kept.close_window(told)
        entries = kept.batch(told)
        kept.written()
        seen += [json.loads(entry.value)["resources"][0]["name"] for entry in entries if entry.kind is Kind.EVENT]
        assert all(entry.kind is not Kind.LOSS for entry in entries)
    assert seen == [str(number) for number in range(told)]
    assert kept.admit(1)
    assert kept.told["change"] == told


@pytest.mark.parametrize("policy", Policy)
def test_a_batch_takes_room_until_it_is_written(policy: Policy) -> None:
    kept = Journal(Chain("1-7", KEY), 0, policy=policy, held_max=BATCH_EVENTS_MAX)
    for number in range(BATCH_EVENTS_MAX):
        kept.window.changed("User:a", "::1", "cli", change(number))
    kept.close_window(1)
    kept.batch(1)
    kept.window.changed("User:a", "::1", "cli", change(-1))
    kept.close_window(2)
    assert (kept.waiting, kept.dropped_total) == ((0, 1) if policy is Policy.PERMIT else (1, 0))
    assert kept.is_full is (policy is Policy.REJECT)
    kept.written()
    assert not kept.is_full


def test_logins_and_refusals_take_no_room_of_changes_nor_changes_of_theirs() -> None:
    """In simulation a change that was let in had no name, for there had been many logins: seed 323022."""
    window = Window(0, changes_max=2)
    for number in range(KINDS_MAX + 1):
        deny(window, str(number), number)
    for number in range(3):
        window.changed("User:a", "::1", "cli", change(number))
    window.changed("User:a", "::1", "cli", change(1))
    taken = {tally.happening: tally.times for tally in window.take(1)}
    named = {happening.change.resource: count for happening, count in taken.items() if isinstance(happening, Changed)}
    assert named == {"0": 1, "1": 2, "(others)": 1}
    assert sum(isinstance(happening, Denied) for happening in taken) == KINDS_MAX + 1
    window.changed("User:a", "::1", "cli", change(7))
    (tally,) = window.take(2)
    assert isinstance(tally.happening, Changed)
    assert tally.happening.change.resource == "7"


def test_a_promise_counts_until_the_request_has_ended() -> None:
    kept = rejecting()
    assert kept.admit(HELD_MAX)
    assert not kept.admit(1)
    kept.let_in(5)  # who mends the topic is let in
    kept.end(HELD_MAX)
    assert kept.admit(1)


def test_refusals_do_not_fill_a_journal_that_is_written() -> None:
    """A user that asks for what it may not cannot have others refused."""
    kept = rejecting()
    for second in range(5):
        for number in range(3 * KINDS_MAX):
            deny(kept.window, f"{second}-{number}", number)
        assert not kept.is_full
        assert kept.admit(KINDS_MAX)
        kept.end(KINDS_MAX)
        kept.close_window(second)
        while kept.waiting:
            kept.batch(second)
    assert kept.told["denied"] == 5 * 3 * KINDS_MAX


def test_the_last_window_is_told_whole_although_there_is_no_room() -> None:
    kept = rejecting()
    for second in range(4):
        for number in range(KINDS_MAX):
            kept.window.changed("User:a", "::1", "cli", change(second * KINDS_MAX + number))
        kept.close_window(second)
    kept.close_window(5, is_last=True)
    entries: list[Entry] = []
    while not entries or entries[-1].kind is not Kind.END:
        entries += kept.batch(6, is_last=True)
    assert verify(entries, [KEY]).events == 4 * KINDS_MAX


def test_entries_are_read_again_from_records() -> None:
    kept = journal()
    kept.window.denied("User:alice", "10.0.0.1", "WRITE", "topic", "ордера")
    kept.close_window(1)
    entries = kept.batch(2)
    assert [entry_of(headers_of(entry), entry.value) for entry in entries] == entries
    assert len(entries) == 2
    event = json.loads(entries[1].value)
    assert (event["metadata"]["uid"], event["resources"][0]["name"]) == ("1-7-1", "ордера")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ce_type", b"com.example"),
        ("ce_type", b"dev.kavka.audit.rumour"),
        ("ce_source", b""),
        ("ce_sequence", b"-1"),
        ("ce_sequence", b"9" * 30),
        ("ce_chaintime", "٣".encode()),
        ("ce_chainlost", None),
        ("ce_chainprevious", b"00"),
        ("ce_chainhash", b"z" * 64),
        ("ce_chainsignature", b"\xff"),
        ("ce_chainkeyid", b"z" * 16),
    ],
)
def test_a_foreign_record_is_refused_by_its_header(name: str, text: bytes | None) -> None:
    (entry,) = journal().batch(0)
    headers = [*headers_of(entry), (name, text)]
    with pytest.raises(ValueError, match=f"^{name}: "):
        entry_of(headers, b"")
