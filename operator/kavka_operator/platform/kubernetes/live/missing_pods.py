"""Why the pod of a node cannot be made, as by a quota of its namespace or an admission rule.

A StatefulSet does not say it; only the Events of its controller do. They are asked for where a node has had no pod for
`PATIENCE_SECONDS`, at most once in as long. The words have the moment of the refusal, as an Event outlives its cause.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kavka_operator.api.stored_resources import part
from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.objects.names import Document, uid_of

PATIENCE_SECONDS = 5.0
KIND, REASON = "StatefulSet", "FailedCreate"
WORDS_LENGTH_MAX = 500
TIMES = ("deprecatedLastTimestamp", "eventTime", "deprecatedFirstTimestamp")


@dataclass(slots=True)
class Podless:
    """The nodes of a cluster that have a StatefulSet and no pod. `clock` counts seconds."""

    namespace: str
    api: Api
    bridge: Bridge
    clock: Callable[[], float]
    _since: dict[int, float] = field(default_factory=dict)
    _asked_at: float | None = None
    _words: dict[int, str] = field(default_factory=dict)

    def words(self, sets: Mapping[int, Document], pods: Collection[int]) -> dict[int, str]:
        """Reasons why nodes have had no pod for a while, by their ids, where they were told."""
        now = self.clock()
        lacking = [number for number in sets if number not in pods]
        self._since = {number: self._since.get(number, now) for number in lacking}
        late = [number for number in lacking if now - self._since[number] >= PATIENCE_SECONDS]
        if late and (self._asked_at is None or now - self._asked_at >= PATIENCE_SECONDS):
            self._asked_at = now
            self._words = self._ask({number: sets[number] for number in late})
        return {number: words for number, words in self._words.items() if number in late}

    def _ask(self, sets: Mapping[int, Document]) -> dict[int, str]:
        try:
            events = self.bridge.wait(self.api.events_of(self.namespace, KIND, REASON))
        except ApiError as error:
            return dict.fromkeys(sets, f"why cannot be asked: {error}"[:WORDS_LENGTH_MAX])
        return {number: words for number, found in sets.items() if (words := newest(events, uid_of(found)))}


def newest(events: Collection[Mapping[str, Any]], uid: str) -> str:
    """The words of the newest of the Events of an object, with their moment; empty where there is none."""
    told = [(_moment(event), str(event.get("note", ""))) for event in events if _regards(event, uid)]
    if not told:
        return ""
    moment, note = max(told)
    return " ".join(f"{REASON} at {moment}: {note}".split())[:WORDS_LENGTH_MAX]


def _regards(event: Mapping[str, Any], uid: str) -> bool:
    return part(event, "regarding").get("uid") == uid


def _moment(event: Mapping[str, Any]) -> str:
    """The moment at which an Event was last repeated, to the second."""
    repeated = part(event, "series").get("lastObservedTime")
    found = repeated or next((event[name] for name in TIMES if event.get(name)), "")
    return f"{str(found)[:19]}Z"
