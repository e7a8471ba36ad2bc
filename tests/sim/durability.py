"""What is on the disk, and what a process takes for it.

What `flush.messages=1` promises: a record counts as committed once it is on the disks, and not before. That takes the
names of its files, too. What a checkpoint says is synced, is. And what is worked out at a start from files beside the
records agrees with the records.
"""

from collections.abc import Iterator
from typing import Any

from kavka_broker.storage.checkpoints import RECOVERY_POINTS
from kavka_broker.storage.file_names import LOG
from tests.sim.history import place_text
from tests.sim.invariants import METADATA, Seen, invariant
from tests.sim.node import as_written, whole_batches


@invariant("CommittedIsSynced")
def committed_is_synced(invariants: Any, seen: Seen) -> Iterator[str]:
    """Acknowledged records, and those that a consumer has read, survive a loss of power everywhere."""
    before, high_watermark = seen.before, seen.high_watermark
    if not invariants.simulation.is_synced or seen.place == METADATA or before is None or before.life != seen.life:
        return
    if seen.leading_epoch is None or high_watermark <= before.high_watermark:
        return
    for batch in seen.view.below(high_watermark, high_watermark - 1):
        views = [view for (_, place), view in invariants.views.items() if place == seen.place]
        synced = [view.node_id for view in views if view.has(batch) and view.is_synced(batch)]
        _, least = invariants.counting(seen)
        if seen.node_id not in synced or len(synced) < least:
            yield f"{batch} is committed, and on the disks of nodes {synced} only"


def checkpoint_is_synced(invariants: Any, node: Any) -> None:
    """CheckpointIsSynced: as a process ends, what it has written down as synced is: recovery looks at the rest only."""
    if node.node_id in invariants._damaged:
        return
    for place, directory, files in node.logs():
        point = recovery_point(node, directory)
        bases = [name for name in sorted(files) if name.endswith(LOG) and int(name.removesuffix(LOG)) < point]
        for name in bases[-1:]:
            inode = files[name]
            if inode.is_lied_about or inode.lost:
                continue
            what = f"{place_text(place)} on {node.host} is written down as synced up to {point}"
            if not node.disk.has_durable_name(f"{directory}/{name}", of_this_file=False):
                invariants.simulation.fail(f"CheckpointIsSynced: {what}; the name of {name} is not")
                return
            for at, header, batch in whole_batches(bytes(inode.data)):
                if header.next_offset <= point and at + len(batch) > len(inode.durable):
                    invariants.simulation.fail(
                        f"CheckpointIsSynced: {what}; the disk has it up to {header.base_offset}"
                    )
                    return


def recovery_point(node: Any, directory: str) -> int:
    """What the checkpoint says of the log in this directory; 0 where it says nothing."""
    parent, _, name = directory.rpartition("/")
    there = node.disk.peek(parent).get(RECOVERY_POINTS)
    for line in bytes(there.data).decode(errors="replace").splitlines()[2:] if there is not None else ():
        topic, index, point = line.split(" ") if line.count(" ") == 2 else ("", "", "0")
        if f"{topic}-{index}" == name and point.isdigit():
            return int(point)
    return 0


@invariant("ProducersAreAsWritten")
def producers_are_as_written(invariants: Any, seen: Seen) -> Iterator[str]:
    """A start, and a cut once it is sealed, leave the producers as the batches of the log say: else a batch that is
    sent again is appended again, or one that is new is taken for a repetition.
    """
    if seen.place == METADATA:
        return
    node = invariants.simulation.nodes[seen.node_id - 1]
    partition = node.broker.partitions.get(*seen.place)
    if (partition is not None and partition.log.durability.is_being_cut) or not was_reopened(seen):
        return
    if partition is None or partition.is_damaged or partition.log.is_failed or node.has_flipped:
        return
    producers, written = partition.log.producers, last_written(partition.log)
    for producer_id, last_offset in written.items():
        known = producers.get(producer_id)
        if known is None or not known.batches or known.batches[-1].last_offset != last_offset:
            yield f"the last batch of producer {producer_id} ends at {last_offset}; known is {known}"
    for producer_id, known in producers:
        if known.batches and known.batches[-1].last_offset >= seen.end_offset:
            yield f"producer {producer_id} is known by {known.batches[-1]}"


def was_reopened(seen: Seen) -> bool:
    """Whether the log was opened, or cut, since this was asked last."""
    before, seen.view.opened = seen.view.opened, (seen.life, seen.view.losses)
    return before != seen.view.opened


def last_written(log: Any) -> dict[int, int]:
    """Of each producer whose last batch is one of data: where that ends."""
    files, last = log.disk.peek(log.directory), dict[int, int]()
    for segment in log.segments:
        inode = files.get(f"{segment.base_offset:020}{LOG}")
        for _, header, _ in whole_batches(as_written(inode)) if inode is not None else ():
            if header.is_control:
                last.pop(header.producer_id, None)
            elif header.has_producer_id and header.last_offset >= log.log_start_offset:
                last[header.producer_id] = header.last_offset
    return last
