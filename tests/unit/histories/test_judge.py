"""Hand-written histories: one for each anomaly, and clean ones that look suspicious and are allowed.

The writer of a history here names each value, and `x` and `y` are partitions.
"""

from collections.abc import Mapping, Sequence

import pytest

from tests.histories.anomalies import ALLOWED, FATAL
from tests.histories.judge import anomalies, fatal
from tests.histories.operations import (
    CommitOffset,
    FetchOffset,
    History,
    Key,
    Kind,
    Operation,
    Outcome,
    Poll,
    Send,
    Step,
)

X, Y = ("x", 0), ("y", 0)
KEYS = {"x": X, "y": Y}
OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


def s(text: str) -> Send:
    """`x a 3`: send a to x, acknowledged at 3; without the offset no answer said where."""
    key, value, *offset = text.split()
    return Send(KEYS[key], value, int(offset[0]) if offset else None)


def p(text: str) -> Poll:
    """`x 0a 1b y 0c`: what was read of each partition."""
    found: dict[Key, list[tuple[int, str]]] = {}
    key = X
    for word in text.split():
        if word in KEYS:
            key = KEYS[word]
        else:
            found.setdefault(key, []).append((int(word[:-1]), word[-1]))
    return Poll(found)


def c(offset: int) -> CommitOffset:
    return CommitOffset("g", X, offset)


def txn(process: str, *steps: Step, outcome: Outcome = OK, at: float = 0.0, transactional_id: str = "") -> Operation:
    asked = None if outcome is FAIL else at + 1
    return Operation(process, Kind.TRANSACTION, steps, outcome, at, at + 2, asked, transactional_id=transactional_id)


def send(process: str, *steps: Step, outcome: Outcome = OK) -> Operation:
    return Operation(process, Kind.SEND, steps, outcome)


def poll(process: str, text: str, at: float = 9.0, outcome: Outcome = OK) -> Operation:
    return Operation(process, Kind.POLL, (p(text),), outcome, at, at + 1)


def told(process: str, offset: int, at: float = 9.0) -> Operation:
    """The group's offset of x, as its coordinator told it."""
    return Operation(process, Kind.POLL, (FetchOffset("g", X, offset),), OK, at, at + 1)


def choose(process: str, kind: Kind, *keys: Key) -> Operation:
    return Operation(process, kind, keys=keys)


def at_the_end(text: str) -> Mapping[Key, Mapping[int, str]]:
    return {X: {}, Y: {}} | {key: dict(records) for key, records in p(text).records.items()}


SENT = [send("p", s("x a 0"), s("x b 1"), s("x c 2"), s("x d 3"))]

#: name: operations, what is there at the end if it was read, the group's offsets. Each has this one fatal anomaly.
BROKEN: dict[str, tuple[str, Sequence[Operation], str | None, int | None]] = {
    "two readers disagree": (
        "inconsistent-offsets",
        [*SENT, poll("r", "x 0a"), poll("q", "x 1b")],
        "x 0a 1b 2d 3c",
        None,
    ),
    "an acknowledged value is elsewhere": (
        "inconsistent-offsets",
        [send("p", s("x a 0"), s("x b 1"))],
        "x 0b 1a",
        None,
    ),
    "a value is there twice": ("duplicate", [send("p", s("x a 0"))], "x 0a 1a", None),
    "a value that nobody sent": ("phantom", [send("p", s("x a 0"))], "x 0a 1z", None),
    "a value in another partition": ("phantom", [send("p", s("x a 0"), s("y b 0"))], "x 0a 1b y 0b", None),
    "readers have passed over a value": ("lost-write", [*SENT, poll("r", "x 0a 2c")], None, None),
    "a value is gone that was read": ("lost-write", [send("p", s("x a"), outcome=INFO), poll("r", "x 0a")], "", None),
    "a value behind the end": ("unseen", [send("p", s("x a 0"), s("x b 1"))], "x 0a", None),
    "an aborted value is read": ("aborted-read", [txn("p", s("x a 0"), outcome=FAIL), poll("r", "x 0a")], None, None),
    "an aborted value is there at the end": ("aborted-read", [txn("p", s("x a 0"), outcome=FAIL)], "x 0a", None),
    "a value is read too early": (
        "dirty-read",
        [txn("p", s("x a 0"), at=20.0), poll("r", "x 0a", at=3.0)],
        "x 0a",
        None,
    ),
    "a transaction reads its own value": ("precommitted-read", [txn("p", s("x a 0"), p("x 0a"))], "x 0a", None),
    "a poll passes over a value": ("int-poll-skip", [*SENT, poll("r", "x 0a 2c 3d")], "x 0a 1b 2c 3d", None),
    "a poll goes back": ("int-nonmonotonic-poll", [*SENT, poll("r", "x 0a 1b 0a")], "x 0a 1b 2c 3d", None),
    "the next poll passes over a value": (
        "poll-skip",
        [*SENT, choose("r", Kind.ASSIGN, X), poll("r", "x 0a 1b"), poll("r", "x 3d")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "a poll behind a failed one goes too far": (
        "poll-skip",
        [*SENT, poll("r", "x 0a"), poll("r", "x 1b", outcome=FAIL), poll("r", "x 3d")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "the next poll goes back": (
        "nonmonotonic-poll",
        [*SENT, choose("r", Kind.ASSIGN, X), poll("r", "x 0a 1b"), choose("r", Kind.ASSIGN, X, Y), poll("r", "x 1b")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "a transaction's values change places": (
        "int-nonmonotonic-send",
        [txn("p", s("x a 1"), s("x b 0"))],
        "x 0b 1a",
        None,
    ),
    "a producer's values change places": (
        "nonmonotonic-send",
        [send("p", s("x a 1")), send("p", s("x b 0"))],
        "x 0b 1a",
        None,
    ),
    "two transactions read each other": (
        "G1c",
        [txn("p", s("x a 0"), p("y 0b")), txn("q", s("y b 0"), p("x 0a"))],
        "x 0a y 0b",
        None,
    ),
    "three transactions read each other": (
        "G1c",
        [txn("p", s("x a 0"), p("x 1c")), txn("q", s("y b 0"), p("x 0a")), txn("r", s("x c 1"), p("y 0b"))],
        "x 0a 1c y 0b",
        None,
    ),
    "a process reads what it sends later": ("G1c-process", [poll("p", "x 0a"), send("p", s("x a 0"))], "x 0a", None),
    "half of an acknowledged commit is gone": ("torn-transaction", [txn("p", s("x a 0"), s("y b 0"))], "x 0a", None),
    "half of a commit of unknown fate is gone": (
        "torn-transaction",
        [txn("p", s("x a"), s("y b"), outcome=INFO)],
        "x 0a",
        None,
    ),
    "values without their offset": ("torn-offset", [txn("p", s("x a 0"), c(1))], "x 0a", -1),
    "an offset without its values": ("torn-offset", [txn("p", s("x a 0"), c(1), outcome=FAIL)], "", 1),
    "the offset of the transaction before": (
        "torn-offset",
        [txn("p", s("x a 0"), c(1)), txn("p", s("x b 1"), c(2), at=5.0)],
        "x 0a 1b",
        1,
    ),
    "the offset of a producer that was fenced": (
        "torn-offset",
        [txn("p", s("x a"), c(1), outcome=INFO, transactional_id="t"), txn("q", s("x b"), c(2), transactional_id="t")],
        "x 0a 1b",
        1,
    ),
    "a reader is over before what it reads begins": (
        "G1c-realtime",
        [
            txn("p", s("x a 0"), p("y 0b"), at=0.0),
            txn("q", p("x 0a"), at=5.0),
            txn("r", s("y b 0"), at=10.0),
        ],
        "x 0a y 0b",
        None,
    ),
    "a group is told what a later commit has replaced": (
        "stale-offset",
        [txn("p", s("x a 0"), c(1)), txn("p", s("x b 1"), c(2), at=5.0), told("p", 1)],
        "x 0a 1b",
        2,
    ),
    "a group is told nothing behind a commit": ("stale-offset", [txn("p", s("x a 0"), c(1)), told("q", -1)], "x 0a", 1),
    "a group is told what a fenced producer has committed": (
        "stale-offset",
        [
            txn("p", s("x a"), c(1), outcome=INFO, transactional_id="t"),
            txn("q", s("x b"), c(2), at=3.0, transactional_id="t"),
            told("q", 1),
        ],
        "x 0a 1b",
        2,
    ),
    "a group is told an offset that was aborted": (
        "aborted-offset",
        [txn("p", s("x a 0"), c(1), outcome=FAIL), told("q", 1)],
        "",
        -1,
    ),
    "a group is told an offset before its commit": (
        "aborted-offset",
        [txn("p", s("x a 0"), c(1), at=20.0), told("q", 1)],
        "x 0a",
        1,
    ),
}

#: name: the allowed anomaly, if it has a name; operations; what is there at the end; the group's offset.
ALLOWED_HISTORIES: dict[str, tuple[str, Sequence[Operation], str | None, int | None]] = {
    "transactions append in different orders": (
        "G0",
        [txn("p", s("x a 0"), s("y b 1")), txn("q", s("x c 1"), s("y d 0"))],
        "x 0a 1c y 0d 1b",
        None,
    ),
    "a later transaction of a producer comes in between": (
        "G0-process",
        [txn("p", s("x a 1")), txn("p", s("y b 0")), txn("q", s("y c 1"), s("x d 0"))],
        "x 0d 1a y 0b 1c",
        None,
    ),
    "a transaction reads another that appended behind it": (
        "G1c-ww",
        [txn("p", s("x a 0"), p("y 0b")), txn("q", s("y b 0"), s("x c 1"))],
        "x 0a 1c y 0b",
        None,
    ),
    "what begins later is appended before": (
        "G0-realtime",
        [
            txn("p", s("x a 1"), s("y b 0"), at=0.0),
            txn("q", s("y c 1"), at=1.0),
            txn("r", s("x d 0"), at=4.0),
        ],
        "x 0d 1a y 0b 1c",
        None,
    ),
    "a reader has one value of a transaction and not the other": (
        "G-single",
        [
            txn("p", s("x a 0"), s("y b 0")),
            txn("p", s("x c 1"), s("y d 1"), at=2.0),
            poll("r", "x 0a 1c y 0b"),
        ],
        "x 0a 1c y 0b 1d",
        None,
    ),
    "a reader is behind what was over": (
        "G-single-realtime",
        [txn("p", s("x a 0")), txn("q", s("x b 1"), at=3.0), poll("r", "x 0a", at=20.0)],
        "x 0a 1b",
        None,
    ),
    "two readers have half of two transactions each": (
        "G2",
        [
            txn("p", s("x a 0"), s("y b 0")),
            txn("q", p("x 0a"), s("y d 1"), at=2.0),
            txn("r", p("y 0b"), s("x c 1"), at=2.0),
        ],
        "x 0a 1c y 0b 1d",
        None,
    ),
    "values of others are between": (
        "int-send-skip",
        [txn("p", s("x a 0"), s("x b 2")), send("q", s("x c 1"))],
        "x 0a 1c 2b",
        None,
    ),
    "a rebalance passes over": (
        "poll-skip under subscribe",
        [*SENT, choose("r", Kind.SUBSCRIBE, X), poll("r", "x 0a"), poll("r", "x 2c")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "a rebalance goes back": (
        "nonmonotonic-poll under subscribe",
        [*SENT, choose("r", Kind.SUBSCRIBE, X), poll("r", "x 0a 1b"), poll("r", "x 0a 1b 2c")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "nobody has come so far": ("unseen before the end", [*SENT, poll("r", "x 0a 1b")], None, None),
    "markers and aborted records take offsets": (
        "",
        [txn("p", s("x a 0")), txn("p", s("x b 2"), outcome=FAIL), txn("p", s("x c 4")), poll("r", "x 0a 4c")],
        "x 0a 4c",
        None,
    ),
    "a poll that failed is repeated": (
        "",
        [*SENT, poll("r", "x 0a"), poll("r", "x 1b 2c", outcome=FAIL), poll("r", "x 1b 2c 3d")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "a poll of unknown end is not repeated": (
        "",
        [*SENT, poll("r", "x 0a"), poll("r", "x 1b 2c", outcome=INFO), poll("r", "x 3d")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "a partition that was given up is read from its beginning": (
        "",
        [*SENT, poll("r", "x 0a 1b"), choose("r", Kind.ASSIGN, Y), choose("r", Kind.ASSIGN, X), poll("r", "x 0a")],
        "x 0a 1b 2c 3d",
        None,
    ),
    "a commit of unknown fate counts": ("", [txn("p", s("x a"), s("y b"), c(1), outcome=INFO)], "x 0a y 0b", 1),
    "a commit of unknown fate does not count": ("", [txn("p", s("x a"), s("y b"), c(1), outcome=INFO)], "", -1),
    "a group is told an offset of unknown fate": ("", [txn("p", s("x a"), c(1), outcome=INFO), told("q", 1)], "", -1),
    "a group is told the offset before while another is committed": (
        "",
        [txn("p", s("x a 0"), c(1)), txn("p", s("x b 1"), c(2), at=8.5), told("q", 1)],
        "x 0a 1b",
        2,
    ),
    "an offset of unknown fate": ("", [txn("p", c(1), outcome=INFO)], "", 1),
    "no offset of unknown fate": ("", [txn("p", c(1), outcome=INFO)], "", -1),
    "either of two offsets at once": ("", [txn("p", s("x a"), c(1)), txn("q", s("x b"), c(2), at=1.0)], "x 0b 1a", 1),
    "one partition of a commit is read before the other": (
        "",
        [txn("p", s("x a 0"), s("y b 0")), poll("r", "x 0a", at=1.5), poll("q", "y 0b", at=20.0)],
        "x 0a y 0b",
        None,
    ),
    "an aborted transaction that nobody reads": ("", [txn("p", s("x a 0"), s("y b 0"), c(1), outcome=FAIL)], "", -1),
    "a send that was refused": ("", [send("p", s("x a"), outcome=FAIL), send("p", s("x b 0"))], "x 0b", None),
    "a transaction reads others": (
        "",
        [txn("p", s("x a 0")), txn("q", p("x 0a"), s("y b 0"), at=5.0)],
        "x 0a y 0b",
        None,
    ),
}


def history(operations: Sequence[Operation], finals: str | None, offset: int | None) -> History:
    ends = {} if finals is None else at_the_end(finals)
    return History(operations, ends, {} if offset is None else {("g", X): offset})


@pytest.mark.parametrize("name", BROKEN)
def test_a_history_with_one_anomaly_is_found(name: str) -> None:
    anomaly, operations, finals, offset = BROKEN[name]
    found = fatal(history(operations, finals, offset))
    assert anomaly in {one.name for one in found}, found
    assert {one.name for one in found} - {anomaly} <= IMPLIED.get(anomaly, set()), found


#: Anomalies that come with another: a value that is lost, say, may tear its transaction.
IMPLIED: dict[str, set[str]] = {
    "inconsistent-offsets": {"nonmonotonic-send", "duplicate"},
    "phantom": {"duplicate"},
    "lost-write": {"int-poll-skip"},
    "dirty-read": {"G1c-realtime"},
    "G1c-realtime": {"dirty-read"},
    "int-poll-skip": {"lost-write"},
    "torn-transaction": {"lost-write", "unseen"},
}


@pytest.mark.parametrize("name", ALLOWED_HISTORIES)
def test_a_history_that_looks_suspicious_is_allowed(name: str) -> None:
    anomaly, operations, finals, offset = ALLOWED_HISTORIES[name]
    found = anomalies(history(operations, finals, offset))
    assert not [one for one in found if one.is_fatal], found
    assert anomaly in {one.name for one in found} if anomaly else not found, found


def test_every_anomaly_has_a_history() -> None:
    assert {anomaly for anomaly, *_ in BROKEN.values()} == {*FATAL}
    assert {anomaly for anomaly, *_ in ALLOWED_HISTORIES.values() if anomaly} == {*ALLOWED}


def test_a_cycle_is_told_with_its_operations_and_reasons() -> None:
    _, operations, finals, _ = BROKEN["two transactions read each other"]
    (found,) = fatal(history(operations, finals, None))
    assert str(found).splitlines() == [
        "G1c: each of these is before the next, and the last before the first",
        "  T1 = txn of p at 0 [send a to x-0@0; poll b at y-0@0] ok",
        "  T2 = txn of q at 0 [send b to y-0@0; poll a at x-0@0] ok",
        "  T1 is before T2 (wr): it read a of x-0",
        "  T2 is before T1 (wr): it read b of y-0",
    ]


def test_a_value_that_is_sent_twice_is_no_history() -> None:
    with pytest.raises(AssertionError, match="a is sent twice"):
        fatal(History([send("p", s("x a")), send("q", s("x a"))]))


def test_a_long_chain_of_transactions_is_judged() -> None:
    """A chain, and a cycle through all of it: nothing recurses, and the shortest cycle is told."""
    count = 1_000
    operations = [
        Operation(
            f"p{number}",
            Kind.TRANSACTION,
            (Send(X, f"v{number}", number), Poll({X: [(number - 1, f"v{number - 1}")]}))
            if number
            else (Send(X, "v0", 0),),
        )
        for number in range(count)
    ]
    assert not fatal(History(operations))
    first = Operation("p0", Kind.TRANSACTION, (Send(X, "v0", 0), Poll({X: [(count - 1, f"v{count - 1}")]})))
    (found,) = fatal(History([first, *operations[1:]]))
    assert found.name == "G1c"
    assert len(str(found).splitlines()) == 1 + 2 * count
