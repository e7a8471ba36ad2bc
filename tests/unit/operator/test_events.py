"""Events of Kubernetes: what they say, how many there may be, and that nothing waits for them."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace as Bag
from typing import Any, cast

from kavka_operator.platform.kubernetes.live import events as events_module
from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Document
from kavka_operator.platform.kubernetes.live.events import (
    BURST_MAX,
    NOTE_BYTES_MAX,
    REFILL_SECONDS,
    SAME_MAX,
    SAME_SECONDS,
    WAITING_MAX,
    Events,
    Herald,
    event_of,
)
from kavka_operator.reconcile.notices import Notice

KEY = ("Topic", "shop", "orders")
NOW = datetime(2026, 11, 21, 12, 0, 0, 5000, tzinfo=UTC)
CREATED = Notice("TopicCreated", 'create topic "orders"')


class Scene:
    """A herald whose Events are kept, with a clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds, self.omitted = 1000.0, 0
        self.made: list[Document] = []
        events = Bag(put=self.made.append, leave_out=self.leave_out, instance="operator-1")
        self.herald = Herald(cast("Events", events), lambda: self.seconds, lambda: NOW)

    def leave_out(self) -> None:
        self.omitted += 1

    def say(self, words: str = "done", uid: str = "u") -> None:
        self.herald.announce(KEY, uid, Notice("TopicCreated", words))


def test_an_event_names_the_resource_and_who_says_it() -> None:
    event = event_of(KEY, "u", CREATED, NOW, "operator-1")
    assert event["regarding"]["uid"] == "u"
    assert event["metadata"]["generateName"] == "orders-", "the API server takes no name that ends with a dot"
    assert (event["metadata"]["namespace"], event["regarding"]["name"]) == ("shop", "orders")
    assert (event["type"], event["reason"], event["note"]) == ("Normal", "TopicCreated", 'create topic "orders"')
    assert event["eventTime"] == "2026-11-21T12:00:00.005000Z"
    assert event_of(KEY, "u", Notice("BadConfig", "no", is_warning=True), NOW, "o")["type"] == "Warning"


def test_a_note_and_a_name_are_as_long_as_the_api_server_takes_them() -> None:
    event = event_of(KEY, "u", Notice("BadConfig", "x" + "ß" * 2000), NOW, "i" * 200)
    assert len(event["note"].encode()) == NOTE_BYTES_MAX - 1, "no character is cut in two"
    assert len(event["reportingInstance"]) == 128


def test_the_same_is_said_again_only_after_a_while() -> None:
    scene = Scene()
    scene.say()
    scene.say()
    scene.say("otherwise")
    scene.say(uid="made again")
    assert len(scene.made) == 3
    scene.seconds += SAME_SECONDS - 1.0
    scene.say()
    assert len(scene.made) == 3
    scene.seconds += 1.0
    scene.say()
    assert (len(scene.made), scene.omitted) == (4, 0)


def test_a_cluster_has_so_many_events_at_once_and_then_one_now_and_then() -> None:
    scene = Scene()
    for number in range(BURST_MAX + 5):
        scene.say(str(number))
    assert (len(scene.made), scene.omitted) == (BURST_MAX, 5)
    scene.seconds += 2 * REFILL_SECONDS
    for number in range(200, 205):
        scene.say(str(number))
    assert (len(scene.made), scene.omitted) == (BURST_MAX + 2, 8)
    scene.seconds += 1e6
    for number in range(300, 300 + 2 * BURST_MAX):
        scene.say(str(number))
    assert len(scene.made) == 2 * BURST_MAX + 2, "a long rest saves no more than a burst"


def test_what_was_left_out_for_want_of_room_may_be_said_later() -> None:
    scene = Scene()
    for number in range(BURST_MAX + 1):
        scene.say(str(number))
    scene.seconds += REFILL_SECONDS
    scene.say(str(BURST_MAX))
    assert (len(scene.made), scene.omitted) == (BURST_MAX + 1, 1)


def test_what_is_remembered_is_bounded() -> None:
    scene = Scene()
    for number in range(SAME_MAX + 50):
        scene.seconds += REFILL_SECONDS
        scene.say(str(number))
    assert len(scene.herald.said) == SAME_MAX


class Server:
    """An `Api` that takes Events, or refuses them."""

    def __init__(self, *refusals: str) -> None:
        self.made: list[str] = []
        self.refusals = list(refusals)

    async def announce(self, event: Document) -> None:
        if self.refusals:
            raise ApiError(self.refusals.pop(0), 403)
        self.made.append(event["note"])


async def played(server: Server, notes: list[str], told: list[str]) -> int:
    """Let Events with these notes be made; how many were left out."""
    omitted: list[int] = []
    events = Events(
        cast("Api", server), asyncio.get_running_loop(), "operator-1", lambda: omitted.append(1), told.append
    )
    for note in notes:
        events.put(event_of(KEY, "u", Notice("Done", note), NOW, "operator-1"))
    running = asyncio.create_task(events.run())
    for _ in range(3 * len(notes) + 10):
        await asyncio.sleep(0)
    running.cancel()
    return len(omitted)


def test_events_are_made_in_their_order() -> None:
    server, told = Server(), list[str]()
    assert asyncio.run(played(server, ["a", "b", "c"], told)) == 0
    assert (server.made, told) == (["a", "b", "c"], [])


def test_refused_events_are_counted_and_each_reason_is_told_once() -> None:
    server, told = Server("forbidden", "forbidden", "terminating"), list[str]()
    assert asyncio.run(played(server, ["a", "b", "c", "d"], told)) == 3
    assert server.made == ["d"]
    assert [words.partition(": ")[2] for words in told] == ["forbidden", "terminating"]


def test_events_that_find_no_room_are_counted() -> None:
    server = Server()
    assert asyncio.run(played(server, [str(number) for number in range(WAITING_MAX + 7)], [])) == 7
    assert len(server.made) == WAITING_MAX


def test_an_event_at_the_end_of_the_process_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    events = Events(cast("Any", None), loop, "o", lambda: None, print)
    events.put(event_of(KEY, "u", CREATED, NOW, "o"))
    assert events_module.CONTROLLER == "kavka.dev/operator"
