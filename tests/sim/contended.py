"""Offsets of one group that several transactions and plain commits write at a time, and that are deleted meanwhile.

What counts of each partition is decided by the order of the log, whoever reads it, and when (KAFKA-19163, KAFKA-19164):
`replays` compares the live coordinator with its log. No client can be wronged here, as all of them write what they
like. No seed draws it: tests play it.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from tests.sim.clients import Client
from tests.sim.commits import GroupRecord
from tests.sim.coordinated import PLACES, Coordinated, Owners, Transactional
from tests.sim.groups import Loner
from tests.sim.recorded import Record
from tests.sim.transactions import Fates

GROUP: Final = "contended"
PRODUCERS: Final = 3
COMMITS_MAX: Final = 3  # of a transaction


class Stager(Transactional):
    """Commits offsets in transactions, and writes nothing."""

    group_id = GROUP
    asks_offsets = False

    async def _transact(self) -> None:
        """Raises Over."""
        written = self._begin_recorded()
        for _ in range(self.random.randint(1, COMMITS_MAX)):
            self.index = self.random.randrange(len(PLACES))
            written.number = self.random.randrange(1_000_000)
            await self._commit_offset(written)
            await asyncio.sleep(self.random.choice((0.0, 0.05, 0.5)))
        await self._end(commits=self.random.random() < 0.7)

    async def _stop_within_a_transaction(self) -> None:
        if self.is_stopping:
            await self._commit_offset(self._begin_recorded())


class Committer(Loner):
    """Commits, and deletes what is committed, and the group."""

    group_id = GROUP


class Contended(Coordinated):
    """Producers of transactional ids of their own, and one client without."""

    share = 0.0

    def clients(self) -> Iterable[Client]:
        self.fates, self.record, self.owners = Fates(), Record(), Owners()
        self.transactional = []
        for number in range(PRODUCERS):
            producer = self.as_client(Stager, f"stager{number}")
            producer.transactional_id, producer.index = f"contended-{number}", 0
            producer.is_former = number % 2 == 1
            producer.record, producer.fates, producer.owners = self.record, self.fates, self.owners
            self.transactional.append(producer)
        committer = self.as_client(Committer, "committer")
        committer.record, committer.places = GroupRecord(GROUP), PLACES
        return [*self.transactional, committer]

    async def judge(self) -> list[str]:
        return [*self.simulation.replays.at_the_end()]
