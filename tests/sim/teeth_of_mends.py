"""Planted defects that take a mend back: what was found once, as it was."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.core.partition.leader import LeaderState
from kavka_broker.loop import backlog
from kavka_broker.loop.backlog import Backlog
from kavka_broker.membership.lifecycle import Lifecycle
from kavka_broker.replica.following import fetched_batches
from kavka_broker.replica.following.session import Followed
from kavka_broker.replica.hosting.missing_logs import MissingLogs
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.writing.produce import Produce
from kavka_broker.storage import durability, recovery
from tests.sim.teething import Patch, tooth

# --- logs at a start --------------------------------------------------------------------------------------------------


@tooth("a log that has lost its first segments begins behind them", "damaged_segments", 5)
def start_moved_by_damage(patch: Patch) -> None:
    stand_in = recovery._stand_in
    patch.setattr(recovery, "_stand_in", lambda opening, bases, missed: stand_in(opening, [*bases], missed))


@tooth("a segment is taken for the log's own, whatever its snapshot says", "damaged_segments controlled_restart", 60)
def witness_not_heard(patch: Patch) -> None:
    patch.setattr(recovery, "contradicts", lambda *_: False)


@tooth("a log is made again where another was, before the controller knows that that is lost", "bad_start", 5,
       directories=2, min_isr=3)  # fmt: skip
def loss_not_told_before_a_new_log(patch: Patch) -> None:
    check = MissingLogs.check

    def make_at_once(self: MissingLogs, *args: Any) -> bool:
        check(self, *args)
        return False

    patch.setattr(MissingLogs, "check", make_at_once)


# --- syncs ------------------------------------------------------------------------------------------------------------


@tooth("a sync without a free descriptor takes its directory offline", "out_of_files", 5, is_synced=True)
def no_descriptor_fails_the_log(patch: Patch) -> None:
    patch.setattr(durability, "is_out_of_files", lambda problem: False)


@tooth("a follower's log is cut, and the cut is synced, on the loop", "kill isolate", 10)
def cut_on_the_loop(patch: Patch) -> None:
    def cut(partition: Partition, offset: int) -> None:
        partition.log.truncate_to(offset)
        partition.high_watermark = min(partition.high_watermark, partition.log.log_end_offset)

    patch.setattr(fetched_batches, "cut", cut)


@tooth("what an answer says of a log that has grown since is not looked at", "isolate kill slow_disk", 20,
       workloads="transients")  # fmt: skip
def overtaken_answers_thrown_away(patch: Patch) -> None:
    patch.setattr(Followed, "is_overtaken", False)


# --- hand-overs in turns ----------------------------------------------------------------------------------------------


@tooth("partitions beyond the first slice are not handed over", "kill", 5, handovers_a_turn=1)
def rest_of_the_handovers_forgotten(patch: Patch) -> None:
    act = Backlog._act_on_slice

    def act_once(self: Backlog[Any]) -> None:
        self._waiting = dict(islice(self._waiting.items(), backlog.SLICE_MAX))
        act(self)

    patch.setattr(Backlog, "_act_on_slice", act_once)


@tooth("a batch of records takes the place of the hand-overs that still wait", "kill", 20, handovers_a_turn=1)
def waiting_handovers_replaced(patch: Patch) -> None:
    def add(self: Backlog[Any], items: Iterable[Any]) -> None:
        self._waiting = dict.fromkeys(items)
        self._drain.begin()

    patch.setattr(Backlog, "add", add)


# --- decisions --------------------------------------------------------------------------------------------------------


@tooth("a broker that was unregistered does not register again", "kill pause controlled_restart", 30,
       changes="unregister")  # fmt: skip
def unregistered_for_good(patch: Patch) -> None:
    is_replaced = Lifecycle._is_replaced.fget  # type: ignore[attr-defined]

    def is_replaced_by_another(self: Lifecycle) -> bool:
        return self._metadata.brokers.get(self._introduction.node_id) is not None and bool(is_replaced(self))

    patch.setattr(Lifecycle, "_is_replaced", property(is_replaced_by_another))


@tooth("what a metadata log keeps in front of a damage leaves a gap before the snapshot", "damaged_metadata kill", 15,
       metadata_log_max_record_bytes_between_snapshots="2000")  # fmt: skip
def gap_before_the_snapshot(patch: Patch) -> None:
    def cut(self: MetadataLog) -> None:
        assert self.damage is not None
        offset, self.damage = self.damage[0], None
        self._log.truncate_to(offset)

    patch.setattr(MetadataLog, "cut_damage", cut)


@tooth("a follower enters the ISR a few offsets below the high watermark", "kill controlled_restart", 5,
       replica_lag_time_max_ms="30000")  # fmt: skip
def joining_too_early(patch: Patch) -> None:
    joining = LeaderState.joining

    def joining_below(self: LeaderState, high_watermark: int, *rest: Any) -> tuple[int, ...]:
        start_offset, self.start_offset = self.start_offset, 0
        try:
            return joining(self, high_watermark - 10, *rest)
        finally:
            self.start_offset = start_offset

    patch.setattr(LeaderState, "joining", joining_below)


# --- topics of one name -----------------------------------------------------------------------------------------------


@tooth("a batch that has waited for the disk goes to whichever topic has the name by then", "kill isolate", seeds="3",
       workloads="transients", strained=True, hectic=True)  # fmt: skip
def names_instead_of_ids(patch: Patch) -> None:
    patch.setattr(Produce, "_leader", lambda self, topic, index: self._writes.partitions.leader(topic.name, index))
