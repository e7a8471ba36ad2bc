"""Readers of the simulated cluster: each reads assigned partitions from their start, from the replica it is sent to."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse, PartitionData
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.records.batch import BatchHeader, crc_is_valid, split_batches
from kavka_broker.protocol.records.record import Record, read_records
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.history import History, Place, place_text
from tests.sim.loop import SimLoop

FETCH_WAIT_MS = 300
FETCH_PACE_MAX = 5  # so that it waits less than for an answer
EARLIEST = -2


class Reader(Client):
    """Reads some partitions from the start, each by itself."""

    isolation_level = 0
    starts_over = False  # where the log begins, if it is out of range
    has_others_beside = False  # on its host, with which it shares `max.connections.per.ip`

    def __init__(
        self, name: str, loop: SimLoop, addresses: Sequence[tuple[str, int]], history: History, places: Sequence[Place]
    ) -> None:
        super().__init__(name, loop, addresses, history)
        self._places = places
        self._with_follower: dict[Place, None] = {}
        self.positions = dict.fromkeys(places, 0)
        self.high_watermarks = dict.fromkeys(places, -1)
        self.started_at = dict.fromkeys(places, 0)
        self.times_over = 0
        self._next = -1  # the offset behind what was served last
        self.rack = ""

    @property
    def fetch_wait_ms(self) -> int:
        """How long it waits for records."""
        return FETCH_WAIT_MS * min(self.pace, FETCH_PACE_MAX)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._read_on(place))

    async def _read_on(self, place: Place) -> None:
        while True:
            records = await self.fetch(place)
            if records:
                self.history.polled(self.name, place, records, 0)
                if self.pace > 1:
                    await self.rest(0.0, 0.1)
            elif self.random.random() < 0.1:
                await self.pause()

    async def read_once(self, address: tuple[str, int]) -> None:
        """All that there is now, and no more; of the node at `address` if it can be had there."""
        self.has_others_beside = True
        try:
            for place in self._places:
                await self.leader(place)
                self._leaders[place] = address
                self._with_follower[place] = None
                records = await self.read_all(place)
                self.history.polled(self.name, place, [*records.items()], 0)
        finally:
            self.leave()

    async def read_all(self, place: Place) -> dict[int, str]:
        """Everything from the start to the high watermark that the leader names at the end."""
        found: dict[int, str] = {}
        while not (0 <= self.high_watermarks[place] <= self.positions[place]):
            found.update(await self.fetch(place))
        return found

    def forget_leader(self, place: Place) -> None:
        super().forget_leader(place)
        self._with_follower.pop(place, None)

    async def ask_any(self, request: Message, response: type[Message]) -> Message | None:
        answer = await super().ask_any(request, response)
        if answer is None:
            self._make_room()
        return answer

    def _make_room(self) -> None:
        """Close all connections where a node could not be reached: it may have taken as many of this host as it takes,
        and each of those may wait in the same way at a node where this reader is one of them.
        """
        if self.has_others_beside:
            self.leave()

    async def fetch(self, place: Place) -> list[tuple[int, str]]:
        """The next records; none where there are none, or no broker answers."""
        peer = await self.leader(place)
        position, epoch = self.positions[place], self._epochs.get(place, -1)
        wanted = FetchTopic(
            place[0],
            self.topic_ids[place[0]],
            [FetchPartition(place[1], epoch, position, partition_max_bytes=2_000)],
        )
        request = FetchRequest(
            max_wait_ms=self.fetch_wait_ms,
            min_bytes=1,
            topics=[wanted],
            rack_id=self.rack,
            isolation_level=self.isolation_level,
        )
        try:
            answer = await peer.ask(request, FetchResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            self._make_room()
            self.forget_leader(place)
            await self.pause()
            return []
        if answer.error_code or not answer.responses:
            return []
        return await self._take(place, epoch, answer.responses[0].partitions[0])

    async def _take(self, place: Place, epoch: int, data: PartitionData) -> list[tuple[int, str]]:
        # A follower may lack what its leader has; a reader that was sent there goes back (KIP-392).
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and place not in self._with_follower:
            await self._out_of_range(place)
        if data.error_code:
            self.forget_leader(place)
            await self.pause()
            return []
        if data.preferred_read_replica in self._nodes:
            self._leaders[place] = self._nodes[data.preferred_read_replica]  # until it disappoints (KIP-392)
            self._with_follower[place] = None
        self.high_watermarks[place] = data.high_watermark
        self._next = -1
        records = [
            (record.offset, self.text_of(record))
            for batch in self._wanted(data, self._sound(place, epoch, data))
            for record in read_records(batch)
            if record.offset >= self.positions[place]
        ]
        self.positions[place] = max(self.positions[place], self._next)
        if data.records and self._next < 0:
            await self.pause()  # damage, which is noted: the same would come again at once
        return records

    def text_of(self, record: Record) -> str:
        """The value that was sent with a record."""
        return (record.value or b"").decode()

    def _wanted(self, data: PartitionData, batches: Iterable[tuple[BatchHeader, memoryview]]) -> Iterator[memoryview]:
        """Those of the batches whose records the reader takes."""
        del data
        return (batch for header, batch in batches if not header.is_control)

    async def _out_of_range(self, place: Place) -> None:
        """Go on where the log begins, as `auto.offset.reset=earliest` says; no other reader may be out of range."""
        if not self.starts_over:
            self.history.note(f"out-of-range: {self.name} at {place_text(place)}@{self.positions[place]}")
            return
        start = await self._first_offset(place)
        if start > self.positions[place]:
            self.positions[place] = self.started_at[place] = start
            self.times_over += 1
            self.history.started_over(self.name, place, start)

    async def _first_offset(self, place: Place) -> int:
        """The first offset as the leader says; -1 where no leader answers."""
        wanted = ListOffsetsTopic(place[0], [ListOffsetsPartition(place[1], -1, EARLIEST)])
        peer = await self.leader(place)
        try:
            answer = await peer.ask(ListOffsetsRequest(-1, 0, [wanted]), ListOffsetsResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return -1
        told = answer.topics[0].partitions[0]
        return -1 if told.error_code else int(told.offset)

    def _sound(self, place: Place, epoch: int, data: PartitionData) -> Iterator[tuple[BatchHeader, memoryview]]:
        """A broker gives out no batch that its disk has changed, and none of a later epoch than the reader has named:
        it would have to tell the reader of that epoch first (KIP-320).
        """
        for header, batch in split_batches(data.records or b""):
            if not crc_is_valid(batch):
                self.history.note(f"damaged: {self.name} was served {place_text(place)}@{header.base_offset}")
                return
            if -1 < epoch < header.leader_epoch:
                what = f"{place_text(place)}@{header.base_offset} of epoch {header.leader_epoch}"
                self.history.note(f"unfenced: {self.name} named epoch {epoch} and was served {what}")
            self.history.read(place, batch)
            self._next = header.next_offset
            yield header, batch
