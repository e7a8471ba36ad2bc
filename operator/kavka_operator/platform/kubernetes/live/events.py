"""Notices as Events of Kubernetes (events.k8s.io/v1), which `kubectl describe` shows under their resource.

An Event is worth less than the work that it tells of. So the thread of a cluster never waits for one; what would say
the same again within `SAME_SECONDS` is left out, and so is what goes beyond a cluster's allowance or finds no room. All
that is left out is counted. One request is made at a time, and what the API server refuses is not tried again.
"""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kavka_operator.api import API_VERSION, GROUP
from kavka_operator.api.kinds import Key
from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Document
from kavka_operator.reconcile.notices import Notice

SAME_SECONDS = 600.0
SAME_MAX = 1000
"""Events of a cluster that are remembered, so that none is said twice."""
BURST_MAX = 100
"""Events of a cluster that may come at once; after them one every `REFILL_SECONDS`."""
REFILL_SECONDS = 2.0
WAITING_MAX = 1000
"""Events of all clusters that may wait for the API server."""
NOTE_BYTES_MAX, INSTANCE_LENGTH_MAX = 1024, 128
"""What the API server takes."""
CONTROLLER, ACTION = f"{GROUP}/operator", "Reconcile"


@dataclass(slots=True)
class Events:
    """The way of all clusters' Events to the API server.

    `instance` names this process; `leave_out` is told of each Event that is not made, `tell` why one was refused.
    """

    api: Api
    loop: asyncio.AbstractEventLoop
    instance: str
    leave_out: Callable[[], None]
    tell: Callable[[str], None]
    _waiting: asyncio.Queue[Document] = field(default_factory=lambda: asyncio.Queue(WAITING_MAX))
    _refusal: str = ""

    def put(self, event: Document) -> None:
        """Let an Event be made soon; from any thread."""
        with suppress(RuntimeError):  # the process ends
            self.loop.call_soon_threadsafe(self._take, event)

    def _take(self, event: Document) -> None:
        try:
            self._waiting.put_nowait(event)
        except asyncio.QueueFull:
            self.leave_out()

    async def run(self) -> None:
        """Make Events until cancelled; those that wait then are lost."""
        while True:
            event = await self._waiting.get()
            try:
                await self.api.announce(event)
            except ApiError as error:
                self.leave_out()
                self._note(str(error))

    def _note(self, refusal: str) -> None:
        """Tell why Events are refused, when that is another reason than before."""
        if refusal != self._refusal:
            self._refusal = refusal
            self.tell(f"an Event cannot be made: {refusal}")


@dataclass(slots=True)
class Herald:
    """Announces what has become of the resources of one cluster, within bounds. The cluster's thread alone asks it."""

    events: Events
    clock: Callable[[], float]
    now: Callable[[], datetime]
    said: dict[Hashable, float] = field(default_factory=dict)  # when, by the clock
    _allowance: float = float(BURST_MAX)
    _counted_at: float | None = None

    def announce(self, key: Key, uid: str, notice: Notice) -> None:
        """Make an Event of a notice, unless the same was said a while ago, or too much."""
        words = (key, uid, notice)
        if self.clock() < self.said.get(words, -SAME_SECONDS) + SAME_SECONDS:
            return
        if not self._may_speak():
            self.events.leave_out()
            return
        self._remember(words)
        self.events.put(event_of(key, uid, notice, self.now(), self.events.instance))

    def _remember(self, words: Hashable) -> None:
        self.said.pop(words, None)
        self.said[words] = self.clock()
        if len(self.said) > SAME_MAX:
            del self.said[next(iter(self.said))]

    def _may_speak(self) -> bool:
        """Whether the cluster has an Event left, which is taken."""
        now = self.clock()
        passed = now - self._counted_at if self._counted_at is not None else 0.0
        self._allowance = min(self._allowance + passed / REFILL_SECONDS, float(BURST_MAX))
        self._counted_at = now
        if self._allowance < 1.0:
            return False
        self._allowance -= 1.0
        return True


def event_of(key: Key, uid: str, notice: Notice, now: datetime, instance: str) -> Document:
    """The Event that says a notice."""
    kind, namespace, name = key
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name}-", "namespace": namespace},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": CONTROLLER,
        "reportingInstance": instance[:INSTANCE_LENGTH_MAX],
        "action": ACTION,
        "reason": notice.reason,
        "type": "Warning" if notice.is_warning else "Normal",
        "note": notice.words.encode()[:NOTE_BYTES_MAX].decode(errors="ignore"),
        "regarding": {"apiVersion": API_VERSION, "kind": kind, "namespace": namespace, "name": name, "uid": uid},
    }
