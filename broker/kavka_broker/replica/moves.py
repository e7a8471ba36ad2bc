"""Moving replicas between the log directories of this broker (KIP-113), while they are in use.

A move makes an empty log in the other directory (`orders-3.<id>-future`), copies the partition's log into it a piece at
a time, and follows what is appended meanwhile. When the copy has everything it is synced in a thread; what came during
that is copied, and in one step of the loop the copy takes the log's place. Readers and writers notice nothing but that.

A log that is cut meanwhile (its broker follows a new leader) makes its copy begin anew. A restart forgets moves: the
log is where it was, and the tool that wanted the move says so.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.replica.partition import Partition
from kavka_broker.seams import Clock
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_manager import LogManager

log = get("replica")

PIECE_BYTES: Final = 1024 * 1024
#: What has come during the sync is synced on the loop, if it is not more than this many records.
SYNC_AT_ONCE_MAX: Final = 10_000
UNLIMITED: Final = 2.0**62
Place = tuple[str, int]


class Move:
    """One replica on its way into another directory."""

    def __init__(self, partition: Partition, directory: LogDirectory, future: Log) -> None:
        self.partition = partition
        self.directory = directory
        self.future = future
        self.truncations = partition.log.truncations

    @property
    def lag(self) -> int:
        return max(0, self.partition.log.log_end_offset - self.future.log_end_offset)


class Moves:
    """All moves of this broker, one after the other. `moved` hears of each that is done."""

    def __init__(
        self,
        logs: LogManager,
        clock: Clock,
        *,
        bytes_per_second: Callable[[], float],
        moved: Callable[[Partition], None],
        crash: Callable[[BaseException], None],
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._moved = moved
        self._crash = crash
        self._moves: dict[Place, Move] = {}
        self._task: asyncio.Task[None] | None = None

    def get(self, topic: str, index: int) -> Move | None:
        return self._moves.get((topic, index))

    def begin(self, partition: Partition, directory: LogDirectory) -> None:
        """Move the replica there; a move elsewhere ends, and nothing happens where it is there already.

        Raises KAFKA_STORAGE_ERROR.
        """
        present = self._moves.get((partition.topic, partition.index))
        if present is not None and present.directory is directory:
            return
        self.cancel(partition)
        if self._logs.directory_of(partition.topic, partition.index) is directory:
            return
        future = self._logs.make_future(partition.log, directory, self._clock.now_ms())
        self._moves[partition.topic, partition.index] = Move(partition, directory, future)
        log.info("move.begins", partition=str(partition), to=directory.path)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="moves between directories")
            self._task.add_done_callback(self._ended)

    def cancel(self, partition: Partition) -> None:
        """The replica stays where it is, or leaves this broker."""
        move = self._moves.pop((partition.topic, partition.index), None)
        if move is not None:
            self._logs.drop_future(move.future)
            log.info("move.cancelled", partition=str(partition), to=move.directory.path)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for move in list(self._moves.values()):
            self.cancel(move.partition)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash(error)

    async def _run(self) -> None:
        while self._moves:
            place, move = next(iter(self._moves.items()))
            try:
                await self._carry_out(place, move)
            except BrokerError as error:
                log.error("move.failed", partition=str(move.partition), to=move.directory.path, reason=str(error))
                if self._moves.get(place) is move:
                    self.cancel(move.partition)

    async def _carry_out(self, place: Place, move: Move) -> None:
        while self._moves.get(place) is move:
            if move.partition.log.truncations != move.truncations:
                self._begin_anew(move)
            copied = self._copy(move, PIECE_BYTES)
            if copied:
                await self._breathe(copied)
                continue
            synced_to = move.future.log_end_offset
            await asyncio.to_thread(move.future.flush)
            if self._moves.get(place) is move and move.partition.log.truncations == move.truncations:
                self._copy(move, PIECE_BYTES)
                if not move.lag and move.future.log_end_offset - synced_to < SYNC_AT_ONCE_MAX:
                    self._finish(place, move)

    def _copy(self, move: Move, bytes_max: int) -> int:
        source, future = move.partition.log, move.future
        if source.log_start_offset > future.log_end_offset:
            future.start_at(source.log_start_offset)
        chunk = source.read(future.log_end_offset, bytes_max)
        for part in chunk.parts:
            future.append_as_follower(part, self._clock.now_ms())
        return chunk.size_bytes

    async def _breathe(self, size_bytes: int) -> None:
        rate = self._bytes_per_second()
        await asyncio.sleep(size_bytes / rate if rate < UNLIMITED else 0)

    def _begin_anew(self, move: Move) -> None:
        self._logs.drop_future(move.future)
        move.future = self._logs.make_future(move.partition.log, move.directory, self._clock.now_ms())
        move.truncations = move.partition.log.truncations

    def _finish(self, place: Place, move: Move) -> None:
        partition = move.partition
        move.future.config = partition.log.config
        move.future.advance_start(partition.log.log_start_offset)
        del self._moves[place]
        partition.log = self._logs.replace(move.future, move.directory, self._clock.now_ms())
        log.info("move.done", partition=str(partition), to=move.directory.path)
        self._moved(partition)
