"""ReplaysAgree: what a coordinator knows is what another one would read in its log, whatever a cleaner has taken out.

Now and then, after a step of a node, a log of `__transaction_state` or `__consumer_offsets` that it leads is copied,
byte for byte, into segments that end at random batches. The broker's own cleaner goes over the copy twice, each time
over another part of it, the second time when tombstones may go; and before, between and behind that the broker's own
loading reads it. Each time the result is compared by value with what the live coordinator knows.

A log of `__share_group_state` is read from its start, and from an offset up to which it may be pruned.

The live coordinator of transactions knows each record from its append on, as pending. That of groups takes an offset
over once its record is committed, in a callback of a later step: so a difference counts there where it stays although
nothing is appended any more.
"""

import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, NamedTuple

from kavka_broker.coordinator.groups.group_loading import load as load_groups
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.share.share_loading import load as load_shares
from kavka_broker.coordinator.transactions.transaction_loading import load as load_transactions
from kavka_broker.core.cleaning.selection import DirtyRange
from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.partition.transactions import NO_OFFSET
from kavka_broker.core.share.share_states import ShareStates
from kavka_broker.core.transaction.state import NO_EPOCH, NO_PRODUCER, Standing, TransactionState
from kavka_broker.loop.slices import at_once
from kavka_broker.storage.cleaning.run import Bounds, Cleaning, Replacement, view
from kavka_broker.storage.cleaning.segment_swap import put_in_place
from kavka_broker.storage.file_names import LOG
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_reading import Chunk
from kavka_broker.storage.recovery import open_log
from tests.sim.node import Node, as_written, whole_batches
from tests.support.sim_disk import SimDisk

Simulation = Any

DIRECTORY: Final = "/copies/coordinator-0"
BOUNDS: Final = Bounds(buffer_bytes_max=1 << 20, load_factor=0.9)
#: Longer logs are copied at the end alone.
BYTES_MAX: Final = 200_000
BETWEEN_SECONDS: Final = 4.0  # two looks, on the average
DAY_MS: Final = 86_400_000
RETENTION_MS: Final = 1_000
SEGMENTS_MAX: Final = 8
#: So long, and for so many steps of its node, a difference of groups has to stay.
STAYS_SECONDS, STAYS_STEPS = 0.5, 100

Known = dict[Any, Any]
Offset = tuple[str, str, int]  # group, topic, partition


class Copy:
    """A log as a load reads it."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def read(self, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool) -> Chunk:
        return self.log.read(offset, bytes_max, upper_offset=upper_offset, at_least_one=at_least_one)


class Start(NamedTuple):
    """Where a load begins and ends."""

    log_start_offset: int
    log_end_offset: int


class Pruned(Copy):
    """A log as a load reads it from an offset on."""

    def __init__(self, log: Log, start_offset: int) -> None:
        super().__init__(log)
        self._whole = log
        self.log: Any = Start(start_offset, log.log_end_offset)

    def read(self, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool) -> Chunk:
        return self._whole.read(offset, bytes_max, upper_offset=upper_offset, at_least_one=at_least_one)


@dataclass(slots=True)
class Suspect:
    """A difference that may be one of a callback which is yet to run."""

    shard: Any
    end_offset: int
    since: float
    steps: int = 0


class Replays:
    """Looks at coordinators after steps of their nodes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._random = Random(f"replays {simulation.seed}")
        self._is_needed = bool(
            {"coordinated", "contended", "groups", "consumers", "sharers", "streams"} & {*simulation.shape.workloads}
        )
        self._due = self._random.expovariate(1 / BETWEEN_SECONDS)
        self._suspects: dict[int, Suspect] = {}  # by node
        self.compared = 0  # logs
        self.taken = 0  # records that cleanings have taken out of their copies
        self.pruned = 0  # records of share groups that were left out

    def after_step(self, node: Node) -> None:
        """Look at one of the coordinators of this node, if it is time."""
        if not self._is_needed:
            return
        now = self._simulation.loop.time()
        if (suspect := self._suspects.get(node.node_id)) is not None:
            suspect.steps += 1
            if not is_comparable(suspect.shard) or end_of(suspect.shard) != suspect.end_offset:
                del self._suspects[node.node_id]
            elif suspect.steps >= STAYS_STEPS and now >= suspect.since + STAYS_SECONDS:
                del self._suspects[node.node_id]
                self._object(node, self.of_groups(suspect.shard))
        if now < self._due or not node.is_serving:
            return
        transactions, groups = shards_of(node)
        shares = share_shards_of(node)
        known = [shard for shard in (*transactions, *groups, *shares) if 0 < size_of(shard) <= BYTES_MAX]
        if not known:
            return
        self._due = now + self._random.expovariate(1 / BETWEEN_SECONDS)
        shard = self._random.choice(known)
        if shard in transactions:
            self._object(node, self.of_transactions(shard))
        elif shard in shares:
            self._object(node, self.of_shares(shard))
        elif is_replicated(shard) and self.of_groups(shard):
            self._suspects[node.node_id] = Suspect(shard, end_of(shard), now)

    def _object(self, node: Node, difference: str) -> None:
        if difference:
            self._simulation.fail(f"ReplaysAgree: {node.host}: {difference}")

    def at_the_end(self) -> Iterator[str]:
        """The differences of all coordinators, when nothing is under way."""
        for node in self._simulation.nodes:
            transactions, groups = shards_of(node) if node.is_serving else ([], [])
            found = [self.of_transactions(shard) for shard in transactions]
            found += [self.of_groups(shard) for shard in groups if is_replicated(shard)]
            found += [self.of_shares(shard) for shard in share_shards_of(node) if size_of(shard)]
            yield from (f"ReplaysAgree: {node.host}: {difference}" for difference in found if difference)

    def of_transactions(self, shard: Any) -> str:
        """What a coordinator of transactions knows otherwise than its log; empty for nothing."""
        live = {
            name: standing
            for name, transaction in shard.transactions.items()
            if (standing := standing_of(transaction)) is not None
        }

        def replayed(log: Log) -> Known:
            found = run(load_transactions(Copy(log)))
            return {name: said(written(transaction.standing)) for name, transaction in found.items()}

        # Of where the level falls to 0 and rises again, `settled_ids` compares each record by its own form.
        said = bare if self._simulation.shape.has_releases else written
        return self._compare(shard, {name: said(standing) for name, standing in live.items()}, replayed)

    def of_groups(self, shard: Any) -> str:
        """What a coordinator of groups knows otherwise than its log; empty for nothing."""
        gone = shard._removals

        def replayed(log: Log) -> Known:
            image = GroupImage()
            run(load_groups(Copy(log), image))
            return groups_of(image, gone)

        return self._compare(shard, groups_of(shard.image, gone), replayed)

    def of_shares(self, shard: Any) -> str:
        """What a share coordinator knows otherwise than its log; empty for nothing. That log is pruned and not cleaned:
        what is left of it behind any offset up to the oldest snapshot that counts has to say the same.
        """
        self.compared += 1
        states, begin = shard.states, shard.partition.log.log_start_offset
        lowest = at_once(states.lowest_offset())
        pruned = self._random.randint(begin, end_of(shard) if lowest is None else lowest)
        with in_silence():
            log = copied(shard.partition.log, self._random)
            if log is None:
                return ""
            for start_offset in (begin, pruned):
                found = ShareStates(0)
                run(load_shares(Pruned(log, start_offset), found))
                if (found.by_key, found.size_bytes) != (states.by_key, states.size_bytes):
                    known = found.by_key
                    differing = [key for key in {**known, **states.by_key} if known.get(key) != states.by_key.get(key)]
                    told = [f"{key}: {states.by_key.get(key)}, and there {known.get(key)}" for key in differing[:3]]
                    return f"{shard.partition} knows otherwise than its log from {start_offset} on: {'; '.join(told)}"
            log.close()
        self.pruned += pruned - begin
        return ""

    def _compare(self, shard: Any, live: Known, replayed: Any) -> str:
        """Compare with the log, and with what two cleanings leave of it. Empty where all agree."""
        self.compared += 1
        with in_silence():
            log = copied(shard.partition.log, self._random)
            if log is None:
                return ""
            found = [("its log", replayed(log))]
            for number in (1, 2):
                cleaning = cleaned(log, self._random, now_ms=number * DAY_MS)
                if cleaning is not None:
                    self.taken += cleaning.figures.records_read - cleaning.figures.records_kept
                    dirty = cleaning.dirty
                    where = f"{dirty.first_dirty_offset} to {dirty.first_uncleanable_offset}"
                    found.append((f"its log, cleaned {number} times, at last from {where}", replayed(log)))
            log.close()
        for what, known in found:
            if known != live:
                differing = [key for key in {**known, **live} if known.get(key) != live.get(key)]
                told = [f"{key}: {live.get(key)}, and there {known.get(key)}" for key in differing[:3]]
                return f"{shard.partition} knows otherwise than {what}: {'; '.join(told)}"
        return ""


# --- the live coordinators ------------------------------------------------------------------------------------------


def shards_of(node: Node) -> tuple[list[Any], list[Any]]:
    """Those of transactions and of groups that serve."""
    broker = node.broker
    groups = [broker.groups.led.by_partition[index] for index in sorted(broker.groups.led.by_partition)]
    transactions = broker.transactions.shards()
    return [shard for shard in transactions if is_comparable(shard)], [
        shard for shard in groups if is_comparable(shard)
    ]


def share_shards_of(node: Node) -> list[Any]:
    """Those of share groups that serve."""
    shards = node.broker.as_broker.sharing.coordinator.shards
    return [shard for shard in shards if is_comparable(shard)]


def is_comparable(shard: Any) -> bool:
    """Whether it serves, and its log is what it was."""
    is_closed = shard.log.is_closed if isinstance(shard, Shard) else shard.is_closed
    if is_closed or shard.is_loading or shard.is_unreadable:
        return False
    partition = shard.partition
    log = partition.log
    return bool(partition.is_leader) and not (partition.is_damaged or log.is_failed or log.is_closed)


def is_replicated(shard: Any) -> bool:
    return bool(shard.partition.high_watermark == end_of(shard))


def end_of(shard: Any) -> int:
    end: int = shard.partition.log.log_end_offset
    return end


def size_of(shard: Any) -> int:
    size: int = shard.partition.log.size_bytes
    return size


def standing_of(transaction: Any) -> Standing | None:
    """Where the last record of an id leaves it; None where it has none, or a tombstone."""
    standing: Standing = transaction.pending or transaction.standing
    if standing.state is TransactionState.DEAD or standing.producer_epoch == NO_EPOCH:
        return None
    return written(standing)


def written(standing: Standing) -> Standing:
    """What a record says of it."""
    return replace(standing, last_epoch=NO_EPOCH)


def bare(standing: Standing) -> Standing:
    """What a record says of it that has the form of before `transaction.version` 1."""
    return replace(written(standing), previous_producer_id=NO_PRODUCER, next_producer_id=NO_PRODUCER, version=0)


def groups_of(image: GroupImage, gone: Any) -> Known:
    """Groups of the newer protocols (KIP-848, KIP-932, KIP-1071), and all offsets."""
    groups = {("group", group_id): group for group_id, group in image.consumer_groups.items()}
    shares = {("share group", group_id): group for group_id, group in image.share_groups.items()}
    streams = {("streams group", group_id): group for group_id, group in image.streams_groups.items()}
    return {**groups, **shares, **streams, **offsets_of(image, gone)}


def offsets_of(image: GroupImage, gone: Any) -> Known:
    """What counts, and what is staged, of topics that are there and always were: others are forgotten when it is their
    turn, and those that a load has forgotten stay in the log until their tombstones are written.
    """
    found: Known = {}
    for group in image.groups_with_offsets():
        for topic, partitions in image.offsets(group).items():
            if not gone.is_gone(topic, 0):
                found |= {
                    (group, topic, index): (at.offset, at.metadata)
                    for index, at in partitions.items()
                    if not gone.is_former(topic, at.topic_id)
                }
    for producer_id, staged in image.staged:
        key = staged.key
        if not gone.is_gone(key.topic, 0) and not gone.is_former(key.topic, staged.value.topic_id):
            found["staged", producer_id, key.group, key.topic, key.partition] = staged.value.offset, staged.log_offset
    return found


# --- copies of logs -------------------------------------------------------------------------------------------------


def copied(live: Any, random: Random) -> Log | None:
    """A log with the same batches in other segments, the last of them empty; None where the live one is torn."""
    files = live.disk.peek(live.directory)
    batches = []
    for segment in live.segments:
        inode = files.get(f"{segment.base_offset:020}{LOG}")
        batches += [bytes(batch) for _, _, batch in whole_batches(as_written(inode))] if inode is not None else []
    ends = {random.randrange(1, len(batches) + 1) for _ in range(SEGMENTS_MAX)} if batches else set[int]()
    disk = SimDisk()
    disk.make_directory("/copies")
    config = LogConfig(cleanup_policy=("compact",), delete_retention_ms=RETENTION_MS)
    log = open_log(disk, DIRECTORY, config, now_ms=0)
    for number, batch in enumerate(batches, 1):
        log.append_as_follower(memoryview(batch))
        if number in ends or number == len(batches):
            log.roll(0)
    log.flush()
    log.producers.transactions.replicated(log.log_end_offset)
    return log if log.log_end_offset == live.log_end_offset else None


def cleaned(log: Log, random: Random, now_ms: int) -> Cleaning | None:
    """Clean the log from somewhere in its clean part, or the end of that, to somewhere below the first open
    transaction; None where there is nothing to clean.
    """
    unstable = log.producers.transactions.first_unstable_offset
    stable = log.log_end_offset if unstable == NO_OFFSET else unstable
    bases = [segment.base_offset for segment in log.segments if segment.base_offset <= stable]
    begins = [base for base in bases[:-1] if base <= max(log.state.cleaned_offset, log.log_start_offset)]
    if not begins:
        return None
    first = bases.index(random.choice(begins))
    end = random.randrange(first + 1, len(bases))
    sizes = [view(segment).size_bytes for segment in log.segments]
    dirty = DirtyRange(bases[first], bases[end], sum(sizes[:first]), sum(sizes[first:end]), 0)
    cleaning = Cleaning(log, dirty, stable, BOUNDS, now_ms)
    work = cleaning.work()
    for step in work:
        if isinstance(step, Replacement):
            assert put_in_place(log, step.old, step.cleaned), "nobody else has this log"
    log.state.cleaned_offset = cleaning.figures.end_offset
    return cleaning


@contextmanager
def in_silence() -> Iterator[None]:
    """Keep what the broker's code logs meanwhile out of the story."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing but its next turn."""
    while True:
        try:
            assert work.send(None) is None, "a load has waited"
        except StopIteration as done:
            return done.value
