"""What every replica's log holds, seen from outside after each step: the ground that the invariants stand on.

Logs are read from the bytes of the simulated disk by the few lines here, and by none of the broker's: what it cannot
read it must not hide. Which files make up a log is the broker's word. A batch is known by its place, its epoch and a
checksum of our own over its attributes and records, whatever the CRC in its header says. What the medium of a disk
has forgotten is read as it was written: damage is what a broker makes of it, by serving it or copying it.

A view of a log is the list of its batches; those below the log's start are nobody's concern. It grows by what was
appended since it was last looked at; a file that was cut, or is another one, is read once more. Views of dead processes
stay as their disks were.

`Truth` is what one partition has promised to keep: the batches below the highest high watermark that a leader of it
ever had, with the epoch of that leader.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

from tests.sim.history import Place
from tests.support.sim_inode import SimInode

by_end = attrgetter("end_offset")
by_base = attrgetter("base_offset")

#: Of a batch: base offset, length, leader epoch, last offset delta, largest timestamp. All else is its content.
_read_head: Final = Struct(">qii7xi8xq").unpack_from
LENGTH_ENDS_AT: Final = 12  # the length counts what follows it
CONTENT_BEGINS_AT: Final = 21  # with the attributes, behind the CRC
HEAD_BYTES: Final = 61


class Written(NamedTuple):
    """One batch, as it stands in a log."""

    base_offset: int
    end_offset: int
    epoch: int
    content: int
    size_bytes: int
    max_timestamp_ms: int


def written_at(data: Any, position: int) -> Written | None:
    """The batch that begins here; None where none does, or not the whole of it."""
    if position + HEAD_BYTES > len(data):
        return None
    base_offset, length, epoch, last_offset_delta, max_timestamp_ms = _read_head(data, position)
    end = position + LENGTH_ENDS_AT + length
    if length < HEAD_BYTES - LENGTH_ENDS_AT or end > len(data):
        return None
    content = crc32(data[position + CONTENT_BEGINS_AT : end])
    return Written(base_offset, base_offset + last_offset_delta + 1, epoch, content, end - position, max_timestamp_ms)


class File:
    """A segment's file, and up to where it has been read."""

    __slots__ = ("base_offset", "count", "cuts", "inode", "position")

    def __init__(self, base_offset: int, inode: SimInode) -> None:
        self.base_offset = base_offset
        self.inode = inode
        self.cuts = inode.cuts
        self.position = 0
        self.count = 0  # of batches

    @property
    def is_as_it_was(self) -> bool:
        """But for what was appended."""
        return self.inode.cuts == self.cuts and len(self.inode.data) >= self.position

    def holds(self, size_bytes: int) -> bool:
        """Whether so much is on the disk, or a sync of it has said so."""
        inode = self.inode
        return len(inode.durable) >= size_bytes or bool(inode.is_lied_about or inode.lost) or inode is NO_FILE

    def read_on(self) -> Iterator[Written]:
        """The batches that have come since the last time."""
        data = self.inode.data
        if self.inode.forgotten:
            data = bytearray(data)
            for position, byte in self.inode.forgotten.items():
                data[position] = byte
        while (written := written_at(data, self.position)) is not None:
            self.position += written.size_bytes
            self.count += 1
            yield written


FED_WITHIN_MS: Final = 3_000
NO_FILE: Final = SimInode(0)


@dataclass(slots=True, eq=False)
class View:
    """One replica's log."""

    node_id: int
    place: Place
    batches: list[Written] = field(default_factory=list)
    start_offset: int = 0
    version: int = 0  # grows with every change
    losses: int = 0  # how often batches went
    opened: tuple[int, int] = (0, 0)  # the life, and the losses, in which its producers were looked at
    cleaned: tuple[int, int, int] = (0, 0, 0)  # the life, up to where it was clean, and the losses, likewise
    was_cut: bool = False  # whether batches at its end have gone, ever
    _files: list[File] = field(default_factory=list)
    _segments: Any = None  # the list from which the files are known
    _disk: Any = None
    _directory: str = ""

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    def below(self, offset: int, start: int = 0) -> list[Written]:
        """The batches that end at or below `offset`, and behind `start`."""
        batches = self.batches
        return batches[bisect_right(batches, start, key=by_end) : bisect_right(batches, offset, key=by_end)]

    def has(self, written: Written) -> bool:
        """Whether it stands here as well; below the start of the log that is believed."""
        return written.end_offset <= self.start_offset or self.at(written) == written

    def at(self, written: Written) -> Written | None:
        """What stands where `written` stands elsewhere."""
        index = bisect_left(self.batches, written.end_offset, key=by_end)
        return self.batches[index] if index < len(self.batches) else None

    def is_synced(self, batch: Written) -> bool:
        """Whether a batch that stands here would survive a loss of power, as far as the disk says the truth."""
        end = len(self.batches)
        for file in reversed(self._files):
            if file.base_offset <= batch.base_offset:
                later = takewhile(lambda written: written.base_offset > batch.base_offset, reversed(self.batches[:end]))
                path = f"{self._directory}/{file.base_offset:020}.log"
                is_held = file.holds(file.position - sum(written.size_bytes for written in later))
                return is_held and bool(self._disk.has_durable_name(path))
            end -= file.count
        return True

    def follow(self, log: Any) -> list[Written]:
        """Catch up with the log; the batches that are new to this view."""
        files, segments = self._files, log.segments.all
        if segments is self._segments and len(segments) == len(files) and files[-1].is_as_it_was:
            files = files[-1:]
        else:
            files = self._look_for_files(log)
        self.start_offset = max(self._files[0].base_offset, log.log_start_offset)
        added = [written for file in files for written in file.read_on()]
        if added:
            self.version += 1
            self.batches += added
        return added

    def _look_for_files(self, log: Any) -> list[File]:
        """Which files make up the log. What was read of one that is not as it was goes, and all that follows it."""
        known = dict[int, tuple[File | None, list[Written]]]()
        batches, start, count = self.batches, 0, len(self.batches)
        for old in self._files:
            known[old.base_offset] = old, batches[start : start + old.count]
            start += old.count
        there = log.disk.peek(log.directory)
        self._disk, self._directory = log.disk, log.directory
        self._segments, self._files, self.batches = log.segments.all, [], []
        is_same = True
        for segment in log.segments:
            inode = there.get(f"{segment.base_offset:020}.log")
            file, batches = known.get(segment.base_offset, (None, []))
            is_same = is_same and file is not None and inode in (file.inode, None) and file.is_as_it_was
            self._files.append(file if is_same and file else File(segment.base_offset, inode or NO_FILE))
            self.batches += batches if is_same else []
        self.version += 1
        self.losses += len(self.batches) < count
        return self._files


class Committed(NamedTuple):
    """A batch that must never be lost, and the epoch in which it became so."""

    batch: Written
    epoch: int


@dataclass(slots=True)
class Truth:
    """What one partition has promised."""

    place: Place
    committed: list[Committed] = field(default_factory=list)
    end_offset: int = 0
    start_offset: int = 0  # what is below has been trimmed, as it was to be
    # Every batch that was ever written, by epoch and first offset; and who has had it.
    written: dict[tuple[int, int], Written] = field(default_factory=dict)
    holders: dict[Written, dict[int, None]] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)

    def commit(self, batch: Written, epoch: int) -> None:
        self.committed.append(Committed(batch, epoch))
        self.end_offset = batch.end_offset


def place_of(topic: str, topic_id: bytes, index: int) -> Place:
    """A topic that comes and goes is another one each time."""
    return (f"{topic}/{topic_id.hex()}" if topic.startswith("spare") else topic, index)


def damaged_on(node: Any) -> list[str]:
    """The replicas in which the broker has found a wrong CRC, and which it has not replaced yet. A sole one is never
    replaced: what can be read of it is served, and its next start looks again.
    """
    partitions = getattr(getattr(node.server, "broker", None), "partitions", None)
    return [str(replica) for replica in partitions or () if replica.is_damaged and len(replica.state.replicas) > 1]


def amiss_on(node: Any, image: Any) -> list[str]:
    """What a node has to mend before the cluster is whole."""
    return [
        *(f"{node.host}: {damaged} is damaged" for damaged in damaged_on(node)),
        *fed_in_vain(node, image),
        *misplaced_on(node, image),
    ]


def misplaced_on(node: Any, image: Any) -> list[str]:
    """Replicas that a node has and should not have, or lacks, or that are not as the image says: their roles and
    epochs, and the directories that hold their logs.
    """
    if not node.is_serving:
        return []
    partitions, reports = node.broker.partitions, node.broker.replicas.reports
    wrong, expected = list[str](), set[tuple[bytes, int]]()
    for topic in image.topics:
        for index, state in topic.partitions.items():
            if node.node_id not in state.replicas:
                continue
            expected.add((topic.topic_id, index))
            replica = partitions.get(topic.name, index)
            if replica is None or replica.topic_id != topic.topic_id:
                wrong.append(f"{node.host} has no replica of {topic.name}-{index}")
                continue
            directory = reports.directory_of(replica)
            if directory is None or directory.directory_id != state.directory_of(node.node_id):
                known = state.directory_of(node.node_id).hex()
                wrong.append(f"{node.host}: {replica} is in {directory and directory.path}; known is {known}")
            if directory is not None and replica.log.directory.rpartition("/")[0] != directory.path:
                wrong.append(f"{node.host}: {replica} is in {replica.log.directory}, not in {directory.path}")
            if (replica.state.leader, replica.leader_epoch) != (state.leader, state.leader_epoch):
                wrong.append(f"{node.host}: {replica} is as {replica.state} says; the image has {state}")
    strange = [replica for replica in partitions if (replica.topic_id, replica.index) not in expected]
    return wrong + [f"{node.host} has {replica}, which is not placed there" for replica in strange]


def fed_in_vain(node: Any, image: Any) -> list[str]:
    """Topics that are gone, and that a fetch session of a follower which is used still names."""
    if not node.is_serving:
        return []
    used_since_ms = node.broker.clock.monotonic_ms() - FED_WITHIN_MS
    sessions = (session for session in node.broker.fetches.sessions.sessions.values() if session.feed is not None)
    named = {topic for session in sessions if session.last_used_ms > used_since_ms for topic, _ in session.partitions}
    gone = sorted(
        topic_id for topic_id in named if isinstance(topic_id, bytes) and image.topics.by_id(topic_id) is None
    )
    return [f"{node.host}: a fetch session of a follower names {topic_id.hex()}, which is gone" for topic_id in gone]
