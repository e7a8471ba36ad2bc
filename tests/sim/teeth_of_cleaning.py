"""Defects of the log cleaner."""

from collections.abc import Sequence

from kavka_broker.core.cleaning import retention, selection
from kavka_broker.core.cleaning.retention import Terms
from kavka_broker.core.cleaning.selection import LogView
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.records.compacted_batch import RetainedBatch
from kavka_broker.protocol.records.entries import Entry
from kavka_broker.storage.cleaning import offset_map
from kavka_broker.storage.cleaning.offset_map import ENTRY_BYTES, OffsetMap
from kavka_broker.storage.file_names import CLEANED
from kavka_broker.storage.segment import Segment
from tests.sim.teething import Patch, tooth


@tooth("keys that fall on one slot of the offset map are taken for one key", "kill", 3, workloads="compaction")
def keys_of_one_slot_are_one(patch: Patch) -> None:
    def slot(self: OffsetMap, digest: bytes) -> tuple[int, int]:
        at = int.from_bytes(digest[:8]) % self.slots * ENTRY_BYTES
        return at, offset_map._ENTRY.unpack_from(self._memory, at)[1] - 1

    patch.setattr(OffsetMap, "_slot", slot)


@tooth("a tombstone goes with the run that meets it, before its horizon", "kill", 10, workloads="compaction")
def tombstones_go_at_once(patch: Patch) -> None:
    stays = retention._stays

    def stay(record: Entry, terms: Terms, *, tombstones_go: bool) -> bool:
        return stays(record, terms, tombstones_go=True)

    patch.setattr(retention, "_stays", stay)


@tooth("what a cleaning has written takes its place before it is synced", "power_loss_of_several kill", 20,
       is_synced=True, workloads="compaction")  # fmt: skip
def cleaned_segments_are_not_synced(patch: Patch) -> None:
    sync = Segment.sync

    def leave(self: Segment) -> None:
        if not self.file.path.endswith(CLEANED):
            sync(self)

    patch.setattr(Segment, "sync", leave)


@tooth("records that stay get the offsets of those that went before them", "kill", 3, workloads="compaction")
def offsets_close_up(patch: Patch) -> None:
    add = RetainedBatch.add

    def close_up(self: RetainedBatch, entry: Entry) -> None:
        add(self, entry._replace(offset=self._header.base_offset + self.count))

    patch.setattr(RetainedBatch, "add", close_up)


@tooth("the cleaner passes the high watermark, up to the active segment", "isolate", 5, workloads="compaction")
def what_may_be_lost_replaces_what_stays(patch: Patch) -> None:
    def first_uncleanable(view: LogView, bases: Sequence[int], first_dirty: int, now_ms: int) -> int:
        return bases[-1]

    patch.setattr(selection, "_first_uncleanable", first_uncleanable)


@tooth("the last batch of a producer goes if it had several records", "kill", 5, workloads="compaction")
def last_batch_goes(patch: Patch) -> None:
    is_last = retention._is_last_of_producer

    def is_last_of_one(header: BatchHeader, terms: Terms) -> bool:
        return header.last_offset == header.base_offset and is_last(header, terms)

    patch.setattr(retention, "_is_last_of_producer", is_last_of_one)
