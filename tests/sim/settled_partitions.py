"""What replicas know of transactions is what their batches say, and what is answered to a coordinator is so.

After each step of a node the batches that it has appended are read from the bytes of its disk:

| invariant | meaning |
|---|---|
| StableIsSettled | the stable offset passes no transaction that is open, or whose marker is above the high watermark |
| IndexedIsAborted | each entry of an index of aborted transactions has its ABORT marker in the log |
| AbortedIsIndexed | each transaction of a log that ends with an ABORT marker has its entry |
| MarkedIsCommitted | a marker that is answered is below the high watermark |
| MarkedIsTakenOver | where it is one of offsets, the group has taken them over, or dropped them (KAFKA-17507) |
| CompleteIsMarked | a transaction is complete when all its partitions have answered that they have the marker |

A transaction whose marker was there before this life of the replica, or before a cut, counts as settled: as in Apache
Kafka nothing but the high watermark is known of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC
from kavka_broker.core.transaction.state import Standing
from kavka_broker.protocol.messages.write_txn_markers_request import WritableTxnMarker
from kavka_broker.protocol.messages.write_txn_markers_response import WritableTxnMarkerResult
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.records.control import ControlType, read_marker
from kavka_broker.storage.transaction_index import Trust
from tests.sim.appended_batches import Appended
from tests.sim.history import Place
from tests.sim.node import Node

Simulation = Any

GROUPS: Final[Place] = (OFFSETS_TOPIC, 0)


@dataclass(slots=True)
class Replica:
    """What the batches of a log say, up to where it has been read."""

    log: Any
    truncations: int
    appended: Appended
    is_new: bool = True
    opened: dict[int, int] = field(default_factory=dict)  # first offset by producer id
    ended: list[tuple[int, int]] = field(default_factory=list)  # first offset and marker, as this process has seen them
    markers: dict[int, int] = field(default_factory=dict)  # where the last one has ended, by producer id
    aborts: dict[int, int] = field(default_factory=dict)  # producer id by the offset of its ABORT marker
    aborted: dict[int, int] = field(default_factory=dict)  # those of them that have ended a transaction
    looked_at: tuple[int, tuple[Trust, ...]] = 0, ()  # end of the log, and what its indexes were worth

    def read(self) -> bool:
        """Take note of what has been appended; whether that was anything."""
        if self.log.log_end_offset == self.appended.end_offset:
            return False
        for header, batch in self.appended.read(self.log):
            self._note(header, batch)
        self.is_new = False
        return True

    def _note(self, header: BatchHeader, batch: memoryview) -> None:
        producer_id, offset = header.producer_id, header.base_offset
        if not header.is_control:
            if header.is_transactional:
                self.opened.setdefault(producer_id, offset)
            return
        marker = read_marker(batch)
        if marker is None:
            return
        first = self.opened.pop(producer_id, None)
        if first is not None or producer_id not in self.markers:  # otherwise it repeats one that is there
            self.markers[producer_id] = offset
        if marker.kind is ControlType.ABORT:
            self.aborts[offset] = producer_id
            if first is not None:
                self.aborted[offset] = producer_id
        if first is not None and not self.is_new:
            self.ended.append((first, offset))

    def first_unsettled(self, high_watermark: int) -> int | None:
        """Offset where the first transaction begins that is open, or may lose its marker yet."""
        self.ended = [ended for ended in self.ended if ended[1] >= high_watermark]
        return min([*self.opened.values(), *(first for first, _ in self.ended)], default=None)

    def index_problems(self, *, is_sound: bool) -> Iterator[str]:
        """What its indexes of aborted transactions say that its batches do not, and the reverse where these are sound,
        if either may have changed. An index that this process has found counts once it is compared.
        """
        segments = list(self.log.segments)
        trusts = tuple(segment.aborted.trust for segment in segments)
        before, self.looked_at = self.looked_at, (self.log.log_end_offset, trusts)
        if before == self.looked_at:
            return
        self.read()
        start = self.log.log_start_offset
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            if segment.aborted.trust is not Trust.WHOLE:
                continue
            try:
                entries = {entry.last_offset: entry for entry in segment.aborted if entry.last_offset >= start}
            except OSError:  # the node reads nothing now: compared once it does
                self.looked_at = before
                return
            for offset, entry in entries.items():
                if self.aborts.get(offset) != entry.producer_id:
                    yield f"IndexedIsAborted: {entry} has no marker"
            end = self.log.log_end_offset if following is None else following.base_offset
            for offset, producer_id in self.aborted.items() if is_sound else ():
                if max(start, segment.base_offset) <= offset < end and offset not in entries:
                    yield f"AbortedIsIndexed: the transaction of {producer_id} that {offset} ends has no entry"


class AbortedIndexes:
    """Looks at the indexes of aborted transactions of one partition's replicas, after each step of their node."""

    def __init__(self, simulation: Simulation, place: Place) -> None:
        self._simulation = simulation
        self._place = place
        self._replicas = Replicas()

    def after_step(self, node: Node) -> None:
        """Read what has been appended, and compare."""
        partition = node.broker.partitions.get(*self._place) if node.is_serving else None
        if partition is not None and is_whole(partition):
            replica = self._replicas.of(node, self._place, partition.log)
            for problem in replica.index_problems(is_sound=not node.has_flipped):
                self._simulation.fail(f"{problem} ({node.host}, {partition})")


class Replicas:
    """What is known of each log. One that has been opened again, or cut, is read from its start."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Place], Replica] = {}

    def of(self, node: Node, place: Place, log: Any) -> Replica:
        """The replica that has this log."""
        replica = self._known.get((node.node_id, place))
        if replica is None or replica.log is not log or replica.truncations != log.truncations:
            replica = Replica(log, log.truncations, Appended(log.log_start_offset))
            self._known[node.node_id, place] = replica
        return replica


def is_whole(partition: Any) -> bool:
    """Whether the log of a partition is in order."""
    return not (partition.is_damaged or partition.log.is_failed or partition.log.is_closed)


class SettledPartitions:
    """Looks at the replicas of these partitions, and of the groups' one, after each step of their node. `answered`
    counts markers whose answers were looked at.
    """

    def __init__(self, simulation: Simulation, places: Sequence[Place]) -> None:
        self.answered = 0
        self._simulation = simulation
        self._places = places
        self._replicas = Replicas()
        self._lives: dict[int, int] = {}  # of nodes whose answers are looked at
        self._marked: set[tuple[int, int, Place]] = set()  # by producer id, epoch and partition
        self._decided: dict[tuple[Any, str], Standing] = {}  # by shard and id

    def after_step(self, node: Node) -> None:
        """Read what has been appended, and compare."""
        if not node.is_serving:
            return
        if self._lives.get(node.node_id) != node.lives:
            self._lives[node.node_id] = node.lives
            self._look_at_answers(node)
        for shard in node.broker.transactions.shards():
            for problem in self._incomplete(shard):
                self._simulation.fail(f"CompleteIsMarked: {problem} ({node.host})")
        for place in self._places:
            partition = node.broker.partitions.get(*place)
            if partition is None or not is_whole(partition):
                continue
            replica = self._replicas.of(node, place, partition.log)
            for problem in replica.index_problems(is_sound=not node.has_flipped):
                self._simulation.fail(f"{problem} ({node.host}, {partition})")
            first, stable = replica.first_unsettled(partition.high_watermark), partition.last_stable_offset
            if first is not None and max(first, partition.log.log_start_offset) < stable:
                problem = f"{stable} is stable below {partition.high_watermark}, and {first} is not settled"
                self._simulation.fail(f"StableIsSettled: {problem} ({node.host}, {partition})")

    def _incomplete(self, shard: Any) -> Iterator[str]:
        """Transactions that this shard has completed since the last look, and that have no marker somewhere."""
        for name, transaction in shard.transactions.items():
            standing, decided = transaction.standing, self._decided.get((shard, name))
            if transaction.pending is not None and standing.state.is_prepared:
                standing = transaction.pending
            if decided is not None and standing is not decided:
                del self._decided[shard, name]
                producer = decided.producer_id, decided.producer_epoch
                missing = [place for place in sorted(decided.partitions) if (*producer, place) not in self._marked]
                if missing:
                    yield f"{name} of {producer} is {standing.state.title}, and {missing} have not answered"
            if standing.state.is_prepared:
                self._decided[shard, name] = standing

    # --- answers ------------------------------------------------------------------------------------------------

    def _look_at_answers(self, node: Node) -> None:
        """Judge each answer of this life, to its own coordinator and to those of others."""
        writes, life = node.broker.markers, node.lives
        write = writes.write

        async def judged(markers: Sequence[WritableTxnMarker]) -> list[WritableTxnMarkerResult]:
            results: list[WritableTxnMarkerResult] = await write(markers)
            self._note(markers, results)
            if node.lives == life and node.is_serving:
                for problem in self._problems(node, results):
                    self._simulation.fail(problem)
            return results

        writes.write = judged  # type: ignore[method-assign] # of this instance alone
        node.broker.transactions.markers._write_here = judged

    def _note(self, markers: Sequence[WritableTxnMarker], results: Sequence[WritableTxnMarkerResult]) -> None:
        for marker, result in zip(markers, results, strict=True):
            for topic in result.topics:
                for told in topic.partitions:
                    if not told.error_code:
                        place = topic.name, told.partition_index
                        self._marked.add((marker.producer_id, marker.producer_epoch, place))

    def _problems(self, node: Node, results: Sequence[WritableTxnMarkerResult]) -> Iterator[str]:
        for result in results:
            for topic in result.topics:
                for told in topic.partitions:
                    if not told.error_code:
                        self.answered += 1
                        yield from self._problem(node, (topic.name, told.partition_index), result.producer_id)

    def _problem(self, node: Node, place: Place, producer_id: int) -> Iterator[str]:
        partition = node.broker.partitions.get(*place)
        if partition is None or not partition.is_leader or partition.is_damaged or partition.log.is_closed:
            return
        replica = self._replicas.of(node, place, partition.log)
        replica.read()
        offset = replica.markers.get(producer_id)
        if offset is not None and offset >= partition.high_watermark:
            yield f"MarkedIsCommitted: {producer_id} at {offset} of {partition}, above {partition.high_watermark}"
        if place == GROUPS:
            staged = node.broker.groups.open_shard(partition).image.staged
            if any(ended.producer_id == producer_id and ended.offsets for ended in staged._ended):
                yield f"MarkedIsTakenOver: offsets of {producer_id} are still staged ({node.host})"
