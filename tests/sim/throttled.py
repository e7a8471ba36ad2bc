"""A producer under a quota beside one that has none: it loses nothing, and gets what the quota allows and no more.

Beside them, two producers share a topic that has such a limit.

The quota is one of bytes and one of the loop's time, so requests are delayed by either. A broker counts for itself and
begins again with each life, so what passes is bounded by the limit and a window's worth for each broker's life.
"""

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final

from kavka_broker.protocol.messages import alter_client_quotas_request as altering
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tests.sim.clients import Admin, Client
from tests.sim.history import Place
from tests.sim.readers import Reader
from tests.sim.weak import WeakProducer
from tests.sim.workloads import Workload

TOPIC: Final = "throttled"
PLACE: Final[Place] = (TOPIC, 0)
LIMITED: Final = "limited"
LIMITED_PLACE: Final[Place] = (LIMITED, 0)
NAME: Final = "held"
LIMIT: Final = 50  # bytes a second: a quarter of a request
REQUEST_BYTES_MAX: Final = 400
REQUEST_BYTES_MIN: Final = 120  # the header and the batch, without values
WINDOW_SECONDS: Final = 1  # two samples, one of them whole
CLOCK_RATE_MAX: Final = 1.1  # of a broker whose clock drifts
PERCENTAGE: Final = 0.005  # of the loop: a request takes longer than that of a second


class Throttled(Workload):
    """Two producers with acks=all, one of which is under a quota, two that share a limited topic, and readers."""

    share = 0.2

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {"quota.window.num": str(WINDOW_SECONDS + 1)}

    async def begin(self, admin: Admin) -> None:
        min_isr = str(self.shape.min_isr)
        await admin.create(TOPIC, 1, self.shape.replication_factor, min_insync_replicas=min_isr)
        rate = str(2 * LIMIT)
        more = {"min_insync_replicas": min_isr, "kavka_topic_producer_byte_rate": rate}
        await admin.create(LIMITED, 1, self.shape.replication_factor, **more)
        limits = [altering.OpData("producer_byte_rate", LIMIT), altering.OpData("request_percentage", PERCENTAGE)]
        request = altering.AlterClientQuotasRequest(
            [altering.EntryData([altering.EntityData("client-id", NAME)], limits)]
        )
        while True:
            answer = await admin.ask_any(request, AlterClientQuotasResponse)
            if isinstance(answer, AlterClientQuotasResponse) and not answer.entries[0].error_code:
                break
            await admin.pause()
        self._began = self.loop.time()

    def clients(self) -> Iterable[Client]:
        self._held, self._free = (self.as_client(HeldProducer, name) for name in (NAME, "free"))
        self._sharing = [self.as_client(SharingProducer, name) for name in ("sharing", "sharing too")]
        self._reader = self.as_client(Reader, "throttled reader", [PLACE, LIMITED_PLACE])
        return [*self._producers, self._reader]

    @property
    def _producers(self) -> list["HeldProducer"]:
        return [self._held, self._free, *self._sharing]

    def stop(self) -> None:
        for producer in self._producers:
            producer.told_before = len(producer.told)

    def missing(self) -> list[str]:
        """All go on until each has been answered after healing: nobody starves."""
        return [f"{producer.name} is not answered" for producer in self._producers if not producer.is_done]

    async def judge(self) -> list[str]:
        last = self.as_judge(Reader, "last throttled reader", [PLACE, LIMITED_PLACE])
        lost: list[str] = []
        for place in (PLACE, LIMITED_PLACE):
            found = await self.running(last, last.read_all(place))
            self.history.read_finally(place, found)
            lost += self._lost(place, found)
        self.reached(throttled_values=len(self._held.told))
        self.reached(limited_values=sum(len(producer.told) for producer in self._sharing))
        too_much = [*self._too_much(LIMIT, [self._held]), *self._too_much(2 * LIMIT, self._sharing)]
        return [*lost, *too_much, *self.history.anomalies()]

    def _lost(self, place: Place, found: dict[int, str]) -> Iterator[str]:
        for producer in self._producers:
            for value, offset in producer.told.items() if producer.place == place else ():
                if found.get(offset) != value:
                    yield f"throttled-lost: {value} was acknowledged at {offset}, where {found.get(offset)} stands"

    def _too_much(self, limit: int, producers: Sequence["HeldProducer"]) -> Iterator[str]:
        seconds, lives = self.loop.time() - self._began, sum(node.lives for node in self.simulation.nodes)
        ahead = REQUEST_BYTES_MAX * lives * len(producers)
        allowed = limit * (seconds * CLOCK_RATE_MAX + WINDOW_SECONDS * lives) + ahead
        sent_bytes = sum(producer.answers for producer in producers) * REQUEST_BYTES_MIN
        if sent_bytes > allowed:
            yield f"throttled-too-much: {sent_bytes} bytes in {seconds:.0f} s; {allowed:.0f} are allowed"


class HeldProducer(WeakProducer):
    """Waits for all replicas, and for as long as it is told."""

    acks = -1
    place = PLACE
    told_before = 0  # healing

    @property
    def is_done(self) -> bool:
        """Whether it has been answered after healing: its last request may have failed while that went on."""
        return self.is_stopping and len(self.told) > self.told_before

    @property
    def answers(self) -> int:
        """Return how many of its requests were acknowledged."""
        return len({value.split(".")[1] for value in self.told})


class SharingProducer(HeldProducer):
    """Shares its topic's limit with another; no quota is on it."""

    place = LIMITED_PLACE
