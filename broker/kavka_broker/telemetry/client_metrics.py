"""The pushes of clients: who may push is a rule of the core; here a push is unpacked, read, kept and passed on.

Nothing is unpacked of a client that nobody asks for metrics. Unpacking and reading run in a thread, one push at a time,
whose time counts in the client's request percentage as time on the loop does. Both are bounded: a push that unpacks to
more than `telemetry.max.bytes` is TELEMETRY_TOO_LARGE, one that cannot be read INVALID_RECORD, after which a client
stops pushing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kavka_broker.core.metadata.image.configs import Configs, ResourceType
from kavka_broker.core.telemetry.instances import INSTANCES_MAX, Instance, Instances, Push
from kavka_broker.core.telemetry.otlp import Pushed, decode, with_attributes
from kavka_broker.core.telemetry.series import AllSeries, Source, gathered, source
from kavka_broker.core.telemetry.subscription import SUBSCRIPTIONS_MAX, Attributes, Demand, Subscription, subscription
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.slices import Cost, LoopTime, Work, sliced
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.records.compression import TooLarge, decompress
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.telemetry.forward import Forward

log = get("telemetry")

T = TypeVar("T")

ADDED_BYTES_MAX = 4 * 1024 * 1024
"""Of attributes, to one push that is passed on."""
TOLD_AGAIN_MS = 5 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A push as a thread has read it."""

    pushed: Pushed
    forwarded: bytes | None  # None where it is too large, or nothing is passed on


class ClientMetrics:
    """Client instances and what they have pushed."""

    def __init__(
        self,
        bytes_max: int,
        configs: Configs,
        clock: Clock,
        new_instance_id: Callable[[], bytes],
        forward: Forward | None = None,
    ) -> None:
        self.configs = configs
        self.bytes_max = bytes_max
        self.decode: Callable[[bytes | bytearray | memoryview], Pushed] = decode
        self.instances = Instances()
        self.series = AllSeries()
        self.forward = forward
        self.results: Counter[str] = Counter()  # pushes by Kafka's name of the answer's code
        self.asks: Counter[str] = Counter()  # subscriptions that were asked for, likewise
        self._displaced_told = 0
        self._displaced_told_ms: int | None = None
        self._clock = clock
        self._new_instance_id = new_instance_id
        self.by_connection: dict[Hashable, bytes] = {}
        self._unpacking = asyncio.Semaphore(1)

    def apply(self, records: Sequence[Message]) -> None:
        """Follow committed records, which the image holds already."""
        kind = ResourceType.CLIENT_METRICS
        configs = [record for record in records if type(record) is ConfigRecord]  # of thousands hardly any is one
        if any(record.resource_type == kind for record in configs):
            self.follow()

    def follow(self) -> None:
        """Hold to the subscriptions of the image. Those that Kafka took and that are refused here ask nobody."""
        found: list[Subscription] = []
        for name, values in self.configs.client_metrics().items():
            try:
                found.append(subscription(name, values))
            except BrokerError as refusal:
                log.warning("telemetry.subscription.ignored", name=name, reason=refusal.message)
        if len(found) > SUBSCRIPTIONS_MAX:
            log.warning("telemetry.subscriptions.limited", followed=SUBSCRIPTIONS_MAX, subscriptions=len(found))
        self.instances.subscribe(found[:SUBSCRIPTIONS_MAX])

    @property
    def is_wanted(self) -> bool:
        """Whether anybody asks for what clients push: a subscription, or a collector that gets all of it."""
        return self.forward is not None or self.instances.is_subscribed

    def id_of(self, instance_id: bytes) -> bytes:
        """Return the id of an instance; a new one where it has none."""
        return self._new_id() if instance_id == ZERO else instance_id

    def ask(self, instance_id: bytes, attributes: Attributes) -> Work[Instance]:
        """Return the instance that asks what to push. Raises BrokerError."""
        with self._counting(self.asks):
            instance = yield from sliced(self.instances.asked(instance_id, attributes, self._now_ms), Cost())
        self.asks[ErrorCode.NONE.name] += 1
        self._tell_displaced()
        return instance

    def push(
        self, instance_id: bytes, attributes: Attributes, push: Push, data: bytes, time: LoopTime
    ) -> Work[Coroutine[None, None, None] | None]:
        """Judge a push; returns what takes it, or None where nobody asked for it. Raises BrokerError, as that does.

        The request that `time` knows pays for the thread.
        """
        with self._counting(self.results):
            judged = self.instances.pushed(instance_id, attributes, push, self.bytes_max, self._now_ms)
            instance = yield from sliced(judged, Cost())
        if data and instance.demand.metrics:
            return self._take(instance, attributes, push.compression, data, time)
        self.results[ErrorCode.NONE.name] += 1
        return None

    def _tell_displaced(self) -> None:
        """Warn, once in `TOLD_AGAIN_MS`, that instances were forgotten for the sake of others."""
        displaced, now_ms = self.instances.displaced_total - self._displaced_told, self._now_ms()
        if not displaced or (self._displaced_told_ms is not None and now_ms - self._displaced_told_ms < TOLD_AGAIN_MS):
            return
        log.warning("telemetry.instances.displaced", displaced=displaced, instances_max=INSTANCES_MAX)
        self._displaced_told, self._displaced_told_ms = self.instances.displaced_total, now_ms

    @contextmanager
    def _counting(self, results: Counter[str]) -> Iterator[None]:
        """Count a refusal by its code."""
        try:
            yield
        except BrokerError as refusal:
            results[refusal.code.name] += 1
            raise

    def hear(self, connection: Hashable, instance_id: bytes) -> bool:
        """Note by which connection an instance speaks; whether it is a new one, whose end is to be told by `lost`."""
        is_new = connection not in self.by_connection
        self.by_connection[connection] = instance_id
        return is_new

    def lost(self, connection: Hashable) -> None:
        """Forget the instance of a connection that has ended. What it has pushed is shown for a while."""
        if (instance_id := self.by_connection.pop(connection, None)) is not None:
            self.instances.forget(instance_id)

    def expire(self) -> None:
        """Forget what was not heard of for long."""
        now_ms = self._now_ms()
        self.instances.expire(now_ms)
        self.series.expire(now_ms)

    async def stop(self) -> None:
        """Stop passing on."""
        if self.forward is not None:
            await self.forward.stop()

    async def _take(self, instance: Instance, attributes: Attributes, codec: int, data: bytes, time: LoopTime) -> None:
        with self._counting(self.results):
            unpacked = await self._unpacked(instance, attributes, codec, data, time)
        self.results[ErrorCode.NONE.name] += 1
        now_ms, interval_ms = self._now_ms(), instance.demand.interval_ms
        self.series.take(source_of(attributes), instance.instance_id, unpacked.pushed.points, interval_ms, now_ms)
        self.series.omitted_total += unpacked.pushed.omitted
        if self.forward is not None and unpacked.forwarded is not None:
            self.forward.send(unpacked.forwarded)
        elif self.forward is not None:
            self.forward.dropped_total += 1

    async def _unpacked(
        self, instance: Instance, attributes: Attributes, codec: int, data: bytes, time: LoopTime
    ) -> Unpacked:
        """Return the push as it was read. Raises BrokerError."""
        await self._unpacking.acquire()
        unpack = partial(self._unpack, attributes, instance.demand, codec, data)
        work = asyncio.ensure_future(asyncio.to_thread(_timed, unpack, time.thread_ns))
        work.add_done_callback(lambda _: self._unpacking.release())
        # Shielded: a thread cannot be stopped, so a client that has gone keeps its place until the thread is through.
        outcome, took_ns = await asyncio.shield(work)
        if time.payer is not None:
            time.payer.loop_ns += took_ns
        if isinstance(outcome, BrokerError):
            instance.last_error = outcome.code
            raise outcome
        return outcome

    def _unpack(self, attributes: Attributes, demand: Demand, codec: int, data: bytes) -> Unpacked | BrokerError:
        """Unpack and read, in a thread."""
        try:
            plain = decompress(codec, data, self.bytes_max)
            pushed = gathered(self.decode(plain), demand.wants)
            known = [(name, value) for name, value in attributes.items() if value]
            return Unpacked(pushed, None if self.forward is None else with_attributes(plain, known, ADDED_BYTES_MAX))
        except TooLarge as problem:
            return BrokerError(ErrorCode.TELEMETRY_TOO_LARGE, str(problem))
        except ProtocolViolation as problem:
            return BrokerError(ErrorCode.INVALID_RECORD, str(problem))

    def _new_id(self) -> bytes:
        while self.instances.knows(instance_id := self._new_instance_id()):
            pass
        return instance_id

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())


def _timed(work: Callable[[], T], now_ns: Callable[[], int]) -> tuple[T, int]:
    """Return the result of the work, and how long it took."""
    began_ns = now_ns()
    return work(), now_ns() - began_ns


def source_of(attributes: Attributes) -> Source:
    """Return the labels of a client of which this is known."""
    name, version = attributes["client_software_name"], attributes["client_software_version"]
    return source(attributes["client_id"] or "", name or "", version or "")
