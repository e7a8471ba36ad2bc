"""Client instances: who was asked for what, and when each may ask and push again (KIP-714).

An instance is a client by the uuid that it was given at first. It may push once an interval, and once right after it
has asked, since it waits between half and one and a half intervals before its first push. What a client asks or pushes
too early is THROTTLING_QUOTA_EXCEEDED. All of this is soft: an instance that is forgotten begins again.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.telemetry.subscription import Attributes, Demand, Subscription, demand
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.uuids import ONE, ZERO, to_text

INSTANCES_MAX: Final = 16_384
EXPIRY_MS_MIN: Final = 60_000
EXPIRY_INTERVALS: Final = 3
NEVER_MS: Final = float("-inf")
assert EXPIRY_INTERVALS > 1.5, "an instance waits so many intervals for its first push, and would be forgotten"
MAY_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
ACCEPTED: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""What a client may compress a push with, the best first; it may also leave it plain."""


@dataclass(frozen=True, slots=True)
class Push:
    """What is judged of a push."""

    subscription_id: int
    compression: int
    size_bytes: int
    is_last: bool  # the client says that it ends


class Instance:
    """One client instance."""

    __slots__ = ("attributes", "demand", "expires_ms", "instance_id", "is_ending", "last_ask_ms", "last_error",
                 "last_push_ms", "subscription_id", "version")  # fmt: skip

    def __init__(self, instance_id: bytes, attributes: Attributes, wanted: Demand, version: int) -> None:
        assert len(instance_id) == len(ZERO), f"{instance_id.hex()} is no uuid"
        self.instance_id = instance_id
        self.attributes = attributes
        self.demand = wanted
        self.subscription_id = wanted.subscription_id(instance_id)
        self.version = version
        self.last_ask_ms = self.last_push_ms = NEVER_MS
        self.last_error = ErrorCode.NONE
        self.is_ending = False
        self.expires_ms = NEVER_MS

    def take_ask(self, now_ms: int) -> bool:
        """Whether the client may ask now; if so, it has."""
        if now_ms - max(self.last_ask_ms, self.last_push_ms) < self.demand.interval_ms:
            return False
        self.last_ask_ms = now_ms
        return True

    def take_push(self, now_ms: int) -> bool:
        """Whether the client may push now; if so, it has."""
        may = self.last_ask_ms > self.last_push_ms or now_ms - self.last_push_ms >= self.demand.interval_ms
        if may:
            self.last_push_ms = now_ms
        return may


class Instances:
    """The instances that this broker has heard of lately; the one not heard of for longest makes room."""

    def __init__(self, instances_max: int = INSTANCES_MAX) -> None:
        assert instances_max >= 1, instances_max
        self._instances_max = instances_max
        self._by_id: OrderedDict[bytes, Instance] = OrderedDict()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._version = 0
        self.displaced_total = 0
        """Instances that were forgotten for the sake of others, and begin again."""

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def is_subscribed(self) -> bool:
        """Whether there is a subscription, whichever clients it matches."""
        return bool(self._subscriptions)

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        """Hold to other subscriptions; an instance learns of them when it is heard of next, and begins again."""
        if tuple(subscriptions) != self._subscriptions:
            self._subscriptions = tuple(subscriptions)
            self._version += 1

    def forget(self, instance_id: bytes) -> None:
        """Forget an instance, whose connection has ended."""
        self._by_id.pop(instance_id, None)

    def expire(self, now_ms: int) -> None:
        """Forget the instances that were not heard of for long."""
        for instance_id in [instance.instance_id for instance in self._by_id.values() if instance.expires_ms <= now_ms]:
            del self._by_id[instance_id]

    def knows(self, instance_id: bytes) -> bool:
        """Whether the instance is remembered."""
        return instance_id in self._by_id

    def asked(
        self, instance_id: bytes, attributes: Attributes, now_ms: Callable[[], int]
    ) -> Generator[int, None, Instance]:
        """Return the instance that asks for its subscription; yields what each step costs.

        Raises BrokerError where it asks too early.
        """
        instance = yield from self._heard_of(instance_id, attributes, now_ms)
        if not instance.take_ask(now_ms()) and instance.last_error not in MAY_ASK_AGAIN:
            raise _too_early(instance_id)
        assert instance.instance_id == instance_id, f"{instance_id.hex()} is taken for {instance.instance_id.hex()}"
        instance.last_error = ErrorCode.NONE
        return instance

    def pushed(
        self, instance_id: bytes, attributes: Attributes, push: Push, bytes_max: int, now_ms: Callable[[], int]
    ) -> Generator[int, None, Instance]:
        """Return the instance whose push is taken; yields what steps cost. Raises BrokerError where it is refused."""
        if instance_id in (ZERO, ONE):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{to_text(instance_id)} is no client instance id")
        instance = yield from self._heard_of(instance_id, attributes, now_ms)
        try:
            _check(instance, push, bytes_max, now_ms())
        except BrokerError as refusal:
            instance.last_error = refusal.code
            raise
        finally:
            instance.is_ending = push.is_last
        assert instance.instance_id == instance_id, f"{instance_id.hex()} is taken for {instance.instance_id.hex()}"
        instance.last_error = ErrorCode.NONE
        return instance

    def _heard_of(
        self, instance_id: bytes, attributes: Attributes, now_ms: Callable[[], int]
    ) -> Generator[int, None, Instance]:
        """Return the instance as the subscriptions are now; they may change while a new one is judged."""
        while (instance := self._current(instance_id, now_ms())) is None:
            before, version = self._by_id.get(instance_id), self._version
            known = before.attributes if before is not None and before.expires_ms > now_ms() else attributes
            wanted = yield from demand(self._subscriptions, known)
            if version == self._version and self._current(instance_id, now_ms()) is None:
                self._keep(Instance(instance_id, known, wanted, version), now_ms())
        self._keep(instance, now_ms())
        return instance

    def _current(self, instance_id: bytes, now_ms: int) -> Instance | None:
        """The instance where it is remembered, and holds to the subscriptions of now."""
        instance = self._by_id.get(instance_id)
        if instance is None or instance.expires_ms <= now_ms or instance.version != self._version:
            return None
        return instance

    def _keep(self, instance: Instance, now_ms: int) -> None:
        """Remember an instance that was heard of now."""
        instance_id = instance.instance_id
        self._by_id[instance_id] = instance
        self._by_id.move_to_end(instance_id)
        if len(self._by_id) > self._instances_max:
            self._by_id.popitem(last=False)
            self.displaced_total += 1
        assert len(self._by_id) <= self._instances_max, len(self._by_id)
        assert instance.version == self._version, f"{to_text(instance_id)} holds to former subscriptions"
        instance.expires_ms = now_ms + max(EXPIRY_MS_MIN, EXPIRY_INTERVALS * instance.demand.interval_ms)


def _check(instance: Instance, push: Push, bytes_max: int, now_ms: int) -> None:
    """Check a push in Kafka's order. Raises BrokerError."""
    name = to_text(instance.instance_id)
    if instance.is_ending:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"client instance {name} said before that it ends")
    if not instance.take_push(now_ms) and not push.is_last:
        raise _too_early(instance.instance_id)
    if push.subscription_id != instance.subscription_id:
        problem = f"client instance {name} has another subscription; ask for it"
        raise BrokerError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, problem)
    if push.compression not in tuple(Compression):
        problem = f"{push.compression} is no codec; the client was told which are taken"
        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, problem)
    if push.size_bytes > bytes_max:
        problem = f"{push.size_bytes} bytes of metrics, telemetry.max.bytes is {bytes_max}"
        raise BrokerError(ErrorCode.TELEMETRY_TOO_LARGE, problem)


def _too_early(instance_id: bytes) -> BrokerError:
    problem = f"client instance {to_text(instance_id)} comes before its interval is over"
    return BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, problem)
