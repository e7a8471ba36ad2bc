"""`kavka apply` waits until a running cluster has done what was asked, and says where it could not."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kavka_cli.local_clusters import is_running
from kavka_cli.output import CommandError, complain, say
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store

FOLLOW_SECONDS_MAX = 30.0
POLL_SECONDS = 0.05
READ_SECONDS_MAX = 1.0


@dataclass(frozen=True, slots=True)
class Pending:
    """A resource that is not as wanted in its newest generation, and what it says."""

    resource: AnyResource
    reason: str
    message: str
    is_stalled: bool = False

    @property
    def waits_for_somebody(self) -> bool:
        """Whether a person or a time holds the change back: it is as was asked, only later."""
        return self.reason in {"RolloutHeld", "RolloutWaits", "OperatorUpgraded"}


@dataclass(slots=True)
class Watch:
    """The resources that are not ready yet. Files are read when one has changed, and once a second in any case."""

    store: Store
    wanted: frozenset[Key]
    clock: Callable[[], float] = time.monotonic
    _pending: list[Pending] = field(default_factory=list)
    _sight: tuple[int, ...] | None = None
    _read_at: float = 0.0

    def pending(self) -> list[Pending]:
        """The resources that are not ready, at most a second old."""
        sight, now = self.store.sight(), self.clock()
        if sight != self._sight or now >= self._read_at + READ_SECONDS_MAX:
            self._pending = list(_pending(self.store, self.wanted))
            self._sight, self._read_at = sight, now
        return self._pending


def follow(layout: Layout, keys: list[Key]) -> int:
    """Wait until a running cluster has done what was asked, and say where it could not; the exit code.

    A roll takes the time that it takes, and so do many resources: the wait goes on as long as there is progress.
    """
    if not keys:
        return 0
    if not is_running(layout):
        say(f'KafkaCluster "{layout.cluster}" is not running; `kavka up` will make it so')
        return 0
    deadline, said, fewest = time.monotonic() + FOLLOW_SECONDS_MAX, "", len(keys) + 1
    watch = Watch(Store(layout), frozenset(keys))
    while (pending := watch.pending()) and (began := time.monotonic()) < deadline:
        if all(change.is_stalled or change.waits_for_somebody for change in pending):
            break
        if len(pending) < fewest:
            deadline, fewest = time.monotonic() + FOLLOW_SECONDS_MAX, len(pending)
        if (rolling := next((change.message for change in pending if change.reason == "Rolling"), said)) != said:
            deadline, said = time.monotonic() + FOLLOW_SECONDS_MAX, rolling
            say(f"  {said}")
        time.sleep(max(POLL_SECONDS, 4 * (time.monotonic() - began)))  # `kavka up` needs the processor for the work
    return max([0, *map(_tell, pending)])


def _tell(pending: Pending) -> int:
    words = f"{pending.resource.identity}: {pending.reason}: {pending.message}"
    if pending.waits_for_somebody or pending.reason == "Rolling":
        say(f"{words}\nit goes on by itself; see `kavka get kvc -o wide`" if pending.reason == "Rolling" else words)
        return 0
    return complain(CommandError(words))


def _pending(store: Store, keys: frozenset[Key]) -> Iterator[Pending]:
    for resource in store.all():
        if key_of(resource) not in keys:
            continue
        is_current = resource.status.observed_generation == resource.metadata.generation
        ready, stalled = resource.status.condition("Ready"), resource.status.condition("Stalled")
        if not is_current or ready is None:
            yield Pending(resource, "NotSeen", "not looked at yet")
        elif ready.status != "True":
            yield Pending(resource, ready.reason, ready.message, stalled is not None)
        elif (held := resource.status.condition("RolloutPending")) is not None:
            yield Pending(resource, held.reason, held.message)
