"""Defects of names, directories, media and late packets."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kavka_broker.core.metadata.decide import registrations
from kavka_broker.membership.outdated_image import OutdatedImage
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation
from kavka_broker.replica.hosting.replica_reports import ReplicaReports
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.writing.disk_queue import DiskQueue
from kavka_broker.storage import log_manager, recovery, segment
from kavka_broker.storage.disk_errors import is_passing
from kavka_broker.storage.durability import Durability
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory, UnusableDirectory, open_directories
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.producer_files import ProducerFiles
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.retired_logs import Aside, SetAside
from kavka_broker.storage.writeback_throttling import STRAINED_LOOK_SECONDS
from tests.sim import damage
from tests.sim.teething import Patch, tooth
from tests.support.sim_disk import SimFile


@tooth(
    "a log whose rename fails is forgotten, and a topic of the same name goes on in its directory",
    "log_in_the_way kill",
    8,
    workloads="transients",
)
def failed_rename_forgets_the_log(patch: Patch) -> None:
    def try_rename(self: SetAside, aside: Aside) -> bool:
        try:
            self._disk.rename(aside.path, aside.target)
        except OSError:
            self._all.pop(aside.path, None)
            return False
        former, aside.path, aside.is_renamed = aside.path, aside.target, True
        self._all[aside.path] = aside
        self._all.pop(former, None)
        return True

    patch.setattr(SetAside, "_try_rename", try_rename)
    patch.setattr(log_manager, "clear", lambda *_: None)


@tooth("recovery believes what it reads", "power_loss kill", 10, is_synced=False)
def recovery_believes_the_disk(patch: Patch) -> None:
    patch.setattr(segment, "crc_is_valid", lambda batch: True)


@tooth("records are answered for, and read by consumers, before the sync that flush.messages wants",
       "power_loss_of_several kill", 2, is_synced=True)  # fmt: skip
def answers_wait_for_no_sync(patch: Patch) -> None:
    patch.setattr(Durability, "answerable_end", property(lambda self: self._state.end_offset))


@tooth("a follower says that it has what it has not synced", "power_loss_of_several kill", 2, is_synced=True)
def follower_answers_before_its_sync(patch: Patch) -> None:
    patch.setattr(Partition, "when_synced", lambda self, offset: None)


@tooth(
    "a registration that shares directories with the present one replaces it, whoever serves", "late_registration", 5
)
def late_registration_replaces_the_living(patch: Patch) -> None:
    patch.setattr(registrations, "_check_replaces", lambda *_: None)


@tooth("two logs of one partition in two directories refuse the start", "", 10)
def twins_refuse_the_start(patch: Patch) -> None:
    def give_way(self: LogManager, twin: Any, opened: Any, directory: LogDirectory) -> bool:
        raise UnusableDirectory(f"{opened.name} is in {twin.directory} and in {directory.path}")

    patch.setattr(LogManager, "_give_way", give_way)


@tooth("a broker with one bad log directory does not start", "bad_start", 5, directories=2)
def bad_directory_ends_the_start(patch: Patch) -> None:
    opened = open_directories

    def all_or_nothing(*args: Any, **options: Any) -> Any:
        cluster_id, directories = opened(*args, **options)
        if not all(directory.is_online for directory in directories):
            raise UnusableDirectory("a directory is bad")
        return cluster_id, directories

    patch.setattr(log_manager, "open_directories", all_or_nothing)


@tooth("a log that a clean start has found damaged leads, and nobody is told", "damaged_log", 20)
def damage_at_a_start_not_told(patch: Patch) -> None:
    patch.setattr(ReplicaReports, "is_replaceable", lambda *_: False)


def reading(tell: Callable[[Any, int, Exception], Exception], kind: type[Exception]) -> Callable[..., Any]:
    """`Log.read` with another word on one kind of error."""
    read = Log.read

    def wrapped(self: Any, offset: int, *args: Any, **options: Any) -> Any:
        try:
            return read(self, offset, *args, **options)
        except BrokerError as error:
            cause = error.__cause__
            if isinstance(cause, kind) and not (isinstance(cause, OSError) and is_passing(cause)):
                raise tell(self, offset, cause) from cause
            raise

    return wrapped


@tooth("a batch that cannot be, such as one of a wrong length, fails the whole fetch", "damaged_log", 5)
def damage_fails_the_fetch(patch: Patch) -> None:
    patch.setattr(Log, "read", reading(lambda log, offset, cause: cause, ProtocolViolation))


@tooth("a leader that cannot read what it has goes on leading", "bad_sector", 10)
def unreadable_leader_leads(patch: Patch) -> None:
    patch.setattr(Log, "read", reading(lambda log, offset, cause: log.state.storage_error("read", cause), OSError))


@tooth("a snapshot of producers is believed whoever wrote it, if it says whose it is", "damaged_files", 20)
def another_logs_snapshot_believed(patch: Patch) -> None:
    patch.setattr(ProducerSnapshots, "_is_own", lambda *_: True)


@tooth("a snapshot of producers that does not say whose it is is not held against the batches", "damaged_files", 10)
def unmarked_snapshot_believed(patch: Patch) -> None:
    patch.setattr(ProducerFiles, "bears_out", lambda *_: True)


@tooth("a sync that has failed counts as done", "failing_disk dropped_pages kill", 5, is_synced=True)
def failed_sync_counts(patch: Patch) -> None:
    sync = Durability._sync

    def try_to(self: Durability, *args: Any, **how: Any) -> None:
        with suppress(OSError):
            sync(self, *args, **how)

    patch.setattr(Durability, "_sync", try_to)


@tooth("room that was made behind the end of a file is taken for a part of it", "kill", 5, strained=True)
def room_is_part_of_the_file(patch: Patch) -> None:
    def make_room(self: SimFile, size: int) -> None:
        self._inode.data += bytes(size)

    patch.setattr(SimFile, "make_room", make_room)


@tooth("of several batches that wait for the disk the first alone goes on", "kill", 5, strained=True, hectic=True)
def rest_of_the_disk_queue_forgotten(patch: Patch) -> None:
    async def let_one_on(self: DiskQueue, disk: Any) -> None:
        while disk.is_strained and not disk.strain_lasts:
            await asyncio.sleep(STRAINED_LOOK_SECONDS)
        taken = self.waiting.take()
        if taken is not None and not taken[1].done():
            taken[1].set_result(None)

    patch.setattr(DiskQueue, "_let_on", let_one_on)


@tooth("the epoch file of another log is believed", "damaged_files kill isolate", seeds="2")
def foreign_epochs_are_believed(patch: Patch) -> None:
    patch.setattr(recovery, "are_confirmed", lambda *_: True)
    patch.setattr(damage, "FILES", {"epochs": damage.epochs})
    patch.setattr(damage, "WAYS", ("exchanged",))


@tooth("a broker that was outdated sends clients away for good", "full_disk", 6)
def outdated_for_good(patch: Patch) -> None:
    def told(self: OutdatedImage, *, is_fenced: bool, is_unfenced: bool) -> None:
        self.is_known = self.is_known or (is_fenced and is_unfenced and not self.has_room())

    patch.setattr(OutdatedImage, "told", told)
    patch.setattr(OutdatedImage, "replayed", lambda *_, **__: None)


@tooth("a broker that cannot note that it is fenced goes on naming itself as leader", "full_disk", 10,
       broker_session_timeout_ms="2000", broker_heartbeat_interval_ms="200")  # fmt: skip
def outdated_unknown(patch: Patch) -> None:
    patch.setattr(OutdatedImage, "told", lambda *_, **__: None)
