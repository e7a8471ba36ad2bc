"""A callback class as the rule of the quotas of requests, asked in a thread of its own.

The code behind the callback is somebody else's: it may raise, wait for a network, or never return. No request waits
for it and no error of it ends the broker. A client that it has not answered for is under Kafka's own rule; an answer
holds until there is another. Failures are logged (of one method once a minute) and counted, and so are the clients
that wait. At most `ANSWERS_MAX` clients are known for each type; those beyond that are under Kafka's own rule.
"""

import asyncio
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kavka_broker.core.quota.entity import Entity
from kavka_broker.core.quota.resolve import OF_A_CALLBACK, Effective, Share
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.quotas.callback import CLIENT_ID, QUOTA_TYPES, USER, ClientQuotaCallback, Cluster
from kavka_broker.quotas.resolver import KafkaRule, Standing

log = get("quotas")

ANSWERS_MAX: Final = 10_000
RESET_ASKED_MS: Final = 1_000
RETRY_SECONDS: Final = 1.0
LOGGED_AGAIN_MS: Final = 60_000
STOP_SECONDS_MAX: Final = 5.0
TAGS_LENGTH_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class CallBounds:
    """How many answers are kept of each type, and how soon a question is put again."""

    answers_max: int = ANSWERS_MAX
    reset_asked_ms: int = RESET_ASKED_MS
    retry_seconds: float = RETRY_SECONDS


BOUNDS: Final = CallBounds()
Client = tuple[str, str]
Call = Callable[[], object]


@dataclass(slots=True)
class Answer:
    """What the callback said of one client, and whether it is asked again."""

    standing: Standing
    is_stale: bool = False


class CalledRule:
    """What the callback has said of the clients of one quota type."""

    def __init__(self, quota_type: str, calls: "QuotaCalls", answers_max: int) -> None:
        self.quota_type: Final = quota_type
        self.changed: Callable[[Client | None], None] = lambda _: None  # set by the owner, which keeps what `find` said
        self._calls = calls
        self._answers_max = answers_max
        self._kafka = KafkaRule()
        self._limits: dict[Entity, float] = {}
        self._answers: dict[Client, Answer] = {}
        self._asked: set[Client] = set()

    def find(self, user: str, client_id: str) -> Standing:
        client = (user, client_id)
        known = self._answers.get(client)
        if (known is None or known.is_stale) and client not in self._asked and self._has_room(client):
            self._asked.add(client)
            self._calls.ask(self, client)
        return self._kafka.find(user, client_id) if known is None else known.standing

    def update(self, limits: Mapping[Entity, float]) -> None:
        for entity in self._limits.keys() - limits.keys():
            self._calls.removed(self.quota_type, entity)
        for entity, limit in limits.items():
            if self._limits.get(entity) != limit:
                self._calls.updated(self.quota_type, entity, limit)
        self._limits = dict(limits)
        self._kafka.update(limits)
        self._forget()

    def answered(self, client: Client, standing: Standing | None) -> None:
        """Take over what the callback has said; None where it failed, and what it said before holds."""
        self._asked.discard(client)
        known = self._answers.get(client)
        if standing is None:
            self._calls.later(self.changed, client)
            return
        self._answers[client] = Answer(standing)
        if known is None or known.standing != standing:
            self.changed(client)

    def reset(self) -> None:
        """Ask again for each client when it is heard of next."""
        self._forget()
        self.changed(None)

    @property
    def waiting(self) -> int:
        return len(self._asked)

    def _forget(self) -> None:
        for answer in self._answers.values():
            answer.is_stale = True

    def _has_room(self, client: Client) -> bool:
        return client in self._answers or len(self._answers) + len(self._asked) < self._answers_max


@dataclass(slots=True)
class Failures:
    """How often the callback failed, and which of it has been logged lately."""

    clock: Clock
    total: int = 0
    _logged_ms: dict[str, float] = field(default_factory=dict)

    def count(self, method: str, error: BaseException) -> None:
        self.total += 1
        now_ms = self.clock.monotonic_ms()
        if method not in self._logged_ms or now_ms - self._logged_ms[method] >= LOGGED_AGAIN_MS:
            self._logged_ms[method] = now_ms
            log.exception("quota_callback.failed", error, method=method)


class QuotaCalls:
    """The thread in which a callback runs, and the rules that it answers for.

    What waits for the thread is kept by its subject: of an entity, or of the cluster, only the latest news.
    """

    def __init__(
        self, callback: ClientQuotaCallback, loop: AbstractEventLoop, clock: Clock, bounds: CallBounds = BOUNDS
    ) -> None:
        self._callback = callback
        self._bounds = bounds
        self._clock = clock
        self._loop = loop
        self._calls: dict[object, Call] = {}
        self._news = threading.Condition()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="quota callback", daemon=True)
        self._reset_asked_ms = clock.monotonic_ms()
        self.failures = Failures(clock)
        self.rules: Final = {quota_type: CalledRule(quota_type, self, bounds.answers_max) for quota_type in QUOTA_TYPES}

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """Have the callback closed. One that does not return is left alone: its thread ends with the process."""
        with self._news:
            self._is_ending = True
            self._news.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, STOP_SECONDS_MAX)
        if self._thread.is_alive():
            log.error("quota_callback.not_closed", waited_seconds=STOP_SECONDS_MAX)

    @property
    def waiting(self) -> int:
        """Return how many clients wait for an answer."""
        return sum(rule.waiting for rule in self.rules.values())

    def ask(self, rule: "CalledRule", client: Client) -> None:
        def call() -> None:
            self._tell(rule.answered, client, self._standing(rule.quota_type, client))

        self._put((rule.quota_type, client), call)

    def later(self, function: Callable[[Client], None], client: Client) -> None:
        """Call the function in a while, on the loop."""
        self._loop.call_later(self._bounds.retry_seconds, function, client)

    def updated(self, quota_type: str, entity: Entity, limit: float) -> None:
        call = partial(self._try, "update_quota", self._callback.update_quota, quota_type, entity, limit)
        self._put((quota_type, entity), call)

    def removed(self, quota_type: str, entity: Entity) -> None:
        call = partial(self._try, "remove_quota", self._callback.remove_quota, quota_type, entity)
        self._put((quota_type, entity), call)

    def cluster_changed(self, cluster: Cluster) -> None:
        def call() -> None:
            if self._try("update_cluster_metadata", self._callback.update_cluster_metadata, cluster):
                self._tell_all_to_reset()

        self._put(Cluster, call)

    def _put(self, subject: object, call: Call) -> None:
        with self._news:
            self._calls[subject] = call
            self._news.notify()

    # --- in the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_ending:
            call = self._next()
            if call is not None:
                call()
            if self._clock.monotonic_ms() - self._reset_asked_ms >= self._bounds.reset_asked_ms:
                self._reset_asked_ms = self._clock.monotonic_ms()
                self._ask_for_reset()
        self._try("close", self._callback.close)

    def _next(self) -> Call | None:
        with self._news:
            if not self._calls and not self._is_ending:
                self._news.wait(self._bounds.reset_asked_ms / 1000)
            subject = next(iter(self._calls), None)
            return self._calls.pop(subject) if subject is not None else None

    def _ask_for_reset(self) -> None:
        asked = [
            self._try("quota_reset_required", self._callback.quota_reset_required, quota_type)
            for quota_type in self.rules
        ]
        if any(asked):
            self._tell_all_to_reset()

    def _tell_all_to_reset(self) -> None:
        for rule in self.rules.values():
            self._tell(rule.reset)

    def _standing(self, quota_type: str, client: Client) -> Standing | None:
        tags = self._try("quota_metric_tags", self._tags, quota_type, *client)
        if not isinstance(tags, dict):
            return None
        if not tags:
            return Standing(None, Share(*client))
        entity = entity_of(tags)
        share = Share(*(part if isinstance(part, str) else None for part in (entity.user, entity.client_id)))
        failed = self.failures.total
        limit = self._try("quota_limit", self._limit, quota_type, tags)
        if self.failures.total > failed:
            return None
        if not isinstance(limit, float):
            return Standing(None, share)
        return Standing(Effective(entity, OF_A_CALLBACK, limit, ()), share)

    def _tags(self, quota_type: str, user: str, client_id: str) -> dict[str, str]:
        """Ask for the tags of a client. Raises TypeError where they are no texts, and whatever the callback raises."""
        tags = dict(self._callback.quota_metric_tags(quota_type, user, client_id))
        if not all(isinstance(text, str) for pair in tags.items() for text in pair):
            raise TypeError(f"{tags!r} are no tags; return names and values as texts")
        return tags

    def _limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        """Ask for a limit. Raises ValueError or OverflowError where it is none, and whatever the callback raises."""
        limit: object = self._callback.quota_limit(quota_type, dict(tags))
        if limit is None:
            return None
        if not isinstance(limit, (int, float)) or not limit >= 0:
            raise ValueError(f"{limit!r} is no limit; return a number from 0, or None")
        return float(limit)

    def _try(self, method: str, call: Callable[..., object], *arguments: object) -> object:
        """Call a method of the callback; None where it raised."""
        try:
            return call(*arguments)
        except Exception as error:  # noqa: BLE001 - it is not our code
            self.failures.count(method, error)
            return None

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def entity_of(tags: Mapping[str, str]) -> Entity:
    """The entity that a metric shows for these tags: user and client id as they are, other tags in the user's place."""
    if set(tags) <= {USER, CLIENT_ID}:
        return Entity(tags.get(USER), tags.get(CLIENT_ID))
    return Entity(",".join(f"{name}={value}" for name, value in sorted(tags.items()))[:TAGS_LENGTH_MAX])
