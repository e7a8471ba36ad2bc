"""The in-sync sets of all partitions that this broker leads: who may be in them, and how a change is brought about.

A partition proposes (`Partition.check_in_sync`, a follower's fetch); this takes the proposal to the controller and
the answer back; what is proposed in one turn of the loop goes together, for a broker may come back to thousands of
partitions at once. A proposal whose fate is not known is made again, as it was: until the metadata has what the
controller has decided the larger set counts, so nothing is lost by waiting but time.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.core.partition.isr_proposal import AlterIsr, IsrAnswer, IsrChange
from kavka_broker.core.partition.leader import Contact, ProposalOutcome
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.replica.leading.log_syncs import LogSyncs
from kavka_broker.replica.leading.partition import Partition

log = get("replica")

Proposals = list[tuple[Partition, IsrChange]]

#: Proposals in one request.
TOGETHER_MAX: Final = 1_000
#: Partitions looked at in one turn of the loop.
CHECKED_PER_TURN_MAX: Final = 1_000
RETRY_MS = 100.0
RETRY_MS_MAX = 2_000.0


class InSyncKeeper:
    """The `PartitionHost` of a broker in a cluster."""

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
        self.contacts: dict[int, Contact] = {}
        self._proposed: Proposals = []
        # Tasks are held so that they live until they are done; in the order of their start, as a seed repeats it.
        self._asking: dict[asyncio.Task[None], None] = {}
        self._checking: asyncio.Task[None] | None = None

    def contact(self, broker_id: int) -> Contact:
        return self.contacts.setdefault(broker_id, Contact())

    def eligible(self, broker_id: int) -> int | None:
        registration = self._brokers.get(broker_id)
        return registration.epoch if registration is not None and registration.usable else None

    def propose(self, partition: Partition, change: IsrChange) -> None:
        assert self.alter_isr is not None, f"{partition} has followers, and nobody to propose {change} to"
        if not self._proposed:
            asyncio.get_running_loop().call_soon(self._ask_soon, self.alter_isr)
        self._proposed.append((partition, change))

    def _ask_soon(self, alter_isr: AlterIsr) -> None:
        proposed, self._proposed = self._proposed, []
        expanding = [partition for partition, change in proposed if len(change.isr) > len(partition.isr)]
        if expanding:
            log.info("isr_expansion.proposed", partitions=len(expanding), first=str(expanding[0]))
        if len(expanding) < len(proposed):
            log.info("isr_shrink.proposed", partitions=len(proposed) - len(expanding))
        for begin in range(0, len(proposed), TOGETHER_MAX):
            work = self._ask(alter_isr, proposed[begin : begin + TOGETHER_MAX])
            task = asyncio.get_running_loop().create_task(work)
            self._asking[task] = None
            watch(task, self._crash, forget=self._asking.pop)

    def sync(self, partition: Partition) -> None:
        self._syncs.soon(partition)

    def damaged(self, partition: Partition) -> None:
        self.on_damaged(partition)

    def refused(self, partition: Partition) -> None:
        self.on_refused(partition)

    async def _ask(self, alter_isr: AlterIsr, proposed: Proposals) -> None:
        wait_ms = RETRY_MS
        while proposed := _pending(proposed):
            try:
                answers = await alter_isr([change for _, change in proposed])
            except BrokerError as error:
                first = str(proposed[0][0])
                log.warning("isr.not_altered", partitions=len(proposed), first=first, reason=str(error))
            else:
                proposed = _taken_back(proposed, answers)
                if not proposed:
                    return
            await asyncio.sleep(wait_ms / 1000)
            wait_ms = min(2 * wait_ms, RETRY_MS_MAX)

    # --- the watch ----------------------------------------------------------------------------------------------

    def start(self, partitions: Callable[[], Iterable[Partition]]) -> None:
        """Check every partition's followers twice in the time that a follower may lag."""
        task = asyncio.get_running_loop().create_task(self._check(partitions), name="in-sync sets")
        self._checking = watch(task, self._crash)

    async def _check(self, partitions: Callable[[], Iterable[Partition]]) -> None:
        while True:
            await asyncio.sleep(self.lag_ms_max / 2000)
            for count, partition in enumerate(list(partitions()), 1):
                partition.check_in_sync()
                if not count % CHECKED_PER_TURN_MAX:
                    await asyncio.sleep(0)

    async def stop(self) -> None:
        tasks = [*self._asking, *([self._checking] if self._checking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._syncs.stop(), return_exceptions=True)


def _pending(proposed: Proposals) -> Proposals:
    """Return the proposals whose outcome is not known yet."""
    return [
        (partition, change)
        for partition, change in proposed
        if partition.leadership is not None and partition.leadership.pending is change
    ]


def _taken_back(proposed: Proposals, answers: Sequence[IsrAnswer]) -> Proposals:
    """Take the answers back to the partitions; returns the proposals to be asked again."""
    again: Proposals = []
    for (partition, change), answer in zip(proposed, answers, strict=True):
        if partition.isr_answered(change, answer) is ProposalOutcome.AGAIN:
            again.append((partition, change))
        else:
            log.debug("isr.settled", partition=str(partition), isr=answer.isr, error=answer.error.name)
    return again


def _nothing(partition: Partition) -> None:
    del partition
