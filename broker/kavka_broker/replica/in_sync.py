"""The in-sync sets of all partitions that this broker leads: who may be in them, and how a change is brought about.

A partition proposes (`Partition.check_in_sync`, a follower's fetch); this takes the proposal to the controller and
the answer back. A proposal whose fate is not known is made again, as it was: until there is an answer the larger
set counts, so nothing is lost by waiting but time. What the controller has decided meanwhile ends it.
"""

import asyncio
from collections.abc import Callable, Iterable

from kavka_broker.core.metadata.brokers import Brokers
from kavka_broker.core.partition.isr_change import AlterIsr, IsrChange
from kavka_broker.core.partition.leader import Contact, Settled
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.replica.log_syncs import LogSyncs
from kavka_broker.replica.partition import Partition

log = get("replica")

RETRY_MS = 100.0
RETRY_MS_MAX = 2_000.0


class InSyncKeeper:
    """`partition.Surroundings` of a broker in a cluster."""

    def __init__(
        self,
        brokers: Brokers,
        *,
        lag_ms_max: float,
        hurries_high_watermark: bool = False,
        alter_isr: AlterIsr | None = None,
        crash: Callable[[BaseException], None],
    ) -> None:
        self.lag_ms_max = lag_ms_max
        self.hurries_high_watermark = hurries_high_watermark
        self.alter_isr = alter_isr
        self._brokers = brokers
        self._crash = crash
        self.on_damaged: Callable[[Partition], None] = _nothing
        self.on_refused: Callable[[Partition], None] = _nothing
        self._syncs = LogSyncs(crash)
        self._contacts: dict[int, Contact] = {}
        # Held so that they live until they are done; in the order of their start, as a seed repeats it.
        self._asking: dict[asyncio.Task[None], None] = {}
        self._checking: asyncio.Task[None] | None = None

    def contact(self, broker_id: int) -> Contact:
        return self._contacts.setdefault(broker_id, Contact())

    def eligible(self, broker_id: int) -> int | None:
        registration = self._brokers.get(broker_id)
        return registration.epoch if registration is not None and registration.usable else None

    def propose(self, partition: Partition, change: IsrChange) -> None:
        assert self.alter_isr is not None, f"{partition} has followers, and nobody to propose {change} to"
        task = asyncio.get_running_loop().create_task(self._ask(self.alter_isr, partition, change))
        self._asking[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._asking.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash(error)

    def sync(self, partition: Partition) -> None:
        self._syncs.soon(partition)

    def damaged(self, partition: Partition) -> None:
        self.on_damaged(partition)

    def refused(self, partition: Partition) -> None:
        self.on_refused(partition)

    async def _ask(self, alter_isr: AlterIsr, partition: Partition, change: IsrChange) -> None:
        wait_ms = RETRY_MS
        while partition.leadership is not None and partition.leadership.pending is change:
            try:
                (answer,) = await alter_isr([change])
            except BrokerError as error:
                log.warning("isr.not_asked", partition=str(partition), reason=str(error))
            else:
                outcome = partition.settled(change, answer)
                if outcome is not Settled.AGAIN:
                    log.debug("isr.settled", partition=str(partition), isr=answer.isr, error=answer.error.name)
                    return
            await asyncio.sleep(wait_ms / 1000)
            wait_ms = min(2 * wait_ms, RETRY_MS_MAX)

    # --- the watch ----------------------------------------------------------------------------------------------

    def start(self, partitions: Callable[[], Iterable[Partition]]) -> None:
        """Look at every partition twice in the time that a follower may lag."""
        self._checking = asyncio.get_running_loop().create_task(self._check(partitions), name="in-sync sets")
        self._checking.add_done_callback(self._ended)

    async def _check(self, partitions: Callable[[], Iterable[Partition]]) -> None:
        while True:
            await asyncio.sleep(self.lag_ms_max / 2000)
            for partition in list(partitions()):
                partition.check_in_sync()

    async def stop(self) -> None:
        tasks = [*self._asking, *([self._checking] if self._checking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._syncs.stop(), return_exceptions=True)


def _nothing(partition: Partition) -> None:
    del partition
