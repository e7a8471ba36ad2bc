"""Why the pod of a node cannot be made: asked for late, seldom, and told with its moment."""

from typing import Any, cast

from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.live.missing_pods import PATIENCE_SECONDS, WORDS_LENGTH_MAX, Podless, newest
from tests.unit.operator.pods import Here, Scene

SETS = {number: {"metadata": {"name": f"main-nodes-{number}", "uid": f"u{number}"}} for number in range(2)}


def refused(uid: str, note: str, second: int = 0, **others: Any) -> dict[str, Any]:
    """An Event of the StatefulSet controller, as the API server has those that clients of core/v1 have made."""
    moment = f"2026-11-21T12:00:{second:02}Z"
    return {"regarding": {"uid": uid}, "note": note, "eventTime": None, "deprecatedLastTimestamp": moment, **others}


class Told:
    """An API server that has Events, and counts how often it is asked."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.events, self.asked, self.seconds = list(events), 0, 0.0
        self.refuse: ApiError | None = None
        self.podless = Podless("default", cast("Api", self), cast("Bridge", Here()), lambda: self.seconds)

    async def events_of(self, namespace: str, kind: str, reason: str) -> list[dict[str, Any]]:
        assert (namespace, kind, reason) == ("default", "StatefulSet", "FailedCreate")
        self.asked += 1
        if self.refuse is not None:
            raise self.refuse
        return self.events


def test_nobody_asks_for_a_pod_that_is_about_to_come() -> None:
    told = Told(refused("u0", "no room"))
    assert told.podless.words(SETS, {1}) == {}
    told.seconds += 0.9 * PATIENCE_SECONDS
    assert told.podless.words(SETS, {1}) == {}
    assert told.podless.words(SETS, {0, 1}) == {}
    told.seconds += 0.9 * PATIENCE_SECONDS
    assert told.podless.words(SETS, {1}) == {}, "another pod is lacking since just now"
    assert told.asked == 0


def test_the_newest_words_are_told_with_their_moment_and_asked_for_seldom() -> None:
    told = Told(refused("u0", "no room", 7), refused("u0", "no quota", 3), refused("u1", "of another", 9))
    told.podless.words(SETS, {1})
    told.seconds += PATIENCE_SECONDS
    for _ in range(3):
        assert told.podless.words(SETS, {1}) == {0: "FailedCreate at 2026-11-21T12:00:07Z: no room"}
    assert told.asked == 1
    told.seconds += PATIENCE_SECONDS
    told.events = []
    assert told.podless.words(SETS, {1}) == {}
    assert told.asked == 2
    told.events = [refused("u0", "no room")]
    told.seconds += PATIENCE_SECONDS
    assert told.podless.words(SETS, {0, 1}) == {}, "it is there"
    assert told.asked == 2


def test_an_event_that_is_repeated_has_the_moment_of_the_last_time() -> None:
    series = {"count": 3, "lastObservedTime": "2026-11-21T12:00:20.5Z"}
    events = [refused("u0", "no quota", 9), refused("u0", "no room", series=series)]
    assert newest(events, "u0") == "FailedCreate at 2026-11-21T12:00:20Z: no room"
    assert newest(events, "u1") == ""
    assert len(newest([refused("u0", "very " * 1000)], "u0")) == WORDS_LENGTH_MAX


def test_an_api_server_that_does_not_tell_is_said_so() -> None:
    told = Told()
    told.refuse = ApiError("events is forbidden", 403)
    told.podless.words(SETS, {1})
    told.seconds += PATIENCE_SECONDS
    assert told.podless.words(SETS, {1}) == {0: "why cannot be asked: events is forbidden"}


def test_the_node_says_why_it_has_no_pod() -> None:
    scene = Scene()
    scene.start()
    del scene.api.objects["Pod", "main-nodes-1-0"]
    assert scene.look().seen[1].message == "has no pod yet"
    uid = scene.api.one("StatefulSet", "main-nodes-1")["metadata"]["uid"]
    scene.api.events = [refused(uid, "exceeded quota: small")]
    scene.seconds += PATIENCE_SECONDS
    words = "has no pod yet: FailedCreate at 2026-11-21T12:00:00Z: exceeded quota: small"
    assert (scene.look().seen[1].state, scene.look().seen[1].message) == ("Starting", words)
