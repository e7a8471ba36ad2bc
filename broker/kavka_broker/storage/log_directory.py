"""One directory of logs: whose it is, how it was left, and what its checkpoints say.

A directory belongs to one node of one cluster, and says so in `meta.properties`; one that belongs to somebody else, or
to a newer format, is refused before anything in it is touched. While a broker runs it holds `.lock`, which Kafka
respects too. A clean stop leaves `.kafka_cleanshutdown`; the next start takes it away before it opens the first log,
so that the mark can never speak for logs that have changed since. A start that dies before, as one that waits for its
quorum may, leaves the mark to the next. The mark has a checksum of the high watermarks, a field that Kafka passes over:
nothing in a log says what was committed, so their file may be another one, and every number in it possible.
"""

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.properties import format_properties, parse_properties
from kavka_broker.logs import get
from kavka_broker.protocol.uuids import ZERO, from_text, to_text
from kavka_broker.storage import checkpoints
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.disk_errors import NotAFile
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.lock_file import Lock

if TYPE_CHECKING:
    from kavka_broker.storage.log import Log

log = get("storage")

META_PROPERTIES: Final = "meta.properties"
META_VERSION: Final = 1
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_VERSION: Final = 0
#: A field of the mark that Kafka has not.
WATERMARKS_CHECKSUM: Final = "kavka.highWatermarksChecksum"
LOCK: Final = ".lock"
UNKNOWN_BROKER_EPOCH: Final = -1
#: What a directory that was full has to have left to count again, or that share of a small volume.
ROOM_BYTES: Final = 16 * 1024 * 1024
ROOM_SHARE: Final = 20


class UnusableDirectory(Exception):
    """A log directory that this broker must not use. The message says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The owner of a log directory."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """Read them; None where the directory is not formatted. Raises UnusableDirectory for a file not understood."""
    path = os.path.join(directory, META_PROPERTIES)
    try:
        fields = parse_properties(disk.read_file(path).decode())
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, ConfigError, NotAFile) as problem:
        raise UnusableDirectory(f"{path} cannot be read: {problem}") from None
    version = fields.get("version", "0")
    if version != str(META_VERSION):
        raise UnusableDirectory(
            f"{path} has version {version}; this broker reads version {META_VERSION}: "
            f"the directory was written by {'an older' if version == '0' else 'a newer'} release"
        )
    try:
        return MetaProperties(fields["cluster.id"], int(fields["node.id"]), from_text(fields["directory.id"]))
    except (KeyError, ValueError) as problem:
        raise UnusableDirectory(f"{path} lacks a usable cluster.id, node.id or directory.id: {problem}") from None


def write_meta_properties(disk: Disk, directory: str, meta: MetaProperties) -> None:
    assert meta.directory_id != ZERO, f"{directory} would have the id that stands for none"
    assert meta.node_id >= 0, f"{directory} would be of node {meta.node_id}"
    fields = {
        "version": str(META_VERSION),
        "cluster.id": meta.cluster_id,
        "node.id": str(meta.node_id),
        "directory.id": to_text(meta.directory_id),
    }
    disk.write_file(os.path.join(directory, META_PROPERTIES), format_properties(fields).encode())


class LogDirectory:
    """A directory of logs that this broker has locked; one that is not `is_online` is only known by its path, and by
    its id where that could be read (otherwise ZERO).

    Raises UnusableDirectory where another process has it, and OSError.
    """

    def __init__(self, disk: Disk, path: str, meta: MetaProperties | None, *, is_online: bool = True) -> None:
        self.path = path
        self.directory_id = ZERO if meta is None else meta.directory_id
        self.is_online = is_online
        self.is_cordoned = False  # new logs go elsewhere, while there is a directory that is not (KIP-1066)
        self.logs_count = 0  # logs that are open in it
        # Held from looking at the logs until a checkpoint is written: an older look must not replace a newer one.
        self.checkpoint_lock = threading.Lock()
        # Logs that have left since: a checkpoint that is written, or just being written, may still name them.
        self.left: dict[PartitionName, None] = {}
        self.forget_problem: OSError | None = None  # why a thread could not let the checkpoints forget, the last time
        self._disk = disk
        self._lock: Lock | None = None
        self.broker_epoch: int | None = None
        self._watermarks_checksum: int | None = None  # by the mark of a clean stop of Kavka
        self.recovery_points: dict[PartitionName, int] = {}
        self.high_watermarks: dict[PartitionName, int] = {}
        self.log_starts: dict[PartitionName, int] = {}
        self.cleaned_offsets: dict[PartitionName, int] = {}
        self.is_clean = False
        if is_online:
            self._take()

    def _take(self) -> None:
        assert self._lock is None, f"{self.path} is locked already"
        try:
            self._lock = self._disk.lock(os.path.join(self.path, LOCK))
        except BlockingIOError:
            raise UnusableDirectory(f"{self.path} is locked: another broker, of Kafka or Kavka, runs on it") from None
        try:
            self.broker_epoch = self._read_clean_shutdown()
            self.is_clean = self.broker_epoch is not None
            self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
            self.high_watermarks = self._as_left(self._read(checkpoints.HIGH_WATERMARKS))
            self.log_starts = self._read(checkpoints.LOG_STARTS)
            is_clean, self.cleaned_offsets = self.is_clean, self._read(checkpoints.CLEANED_OFFSETS)
            self.is_clean = is_clean  # otherwise some of it is cleaned once more, and nothing has to be recovered
        except OSError:
            self._lock.release()
            raise

    def _read_clean_shutdown(self) -> int | None:
        """Return the broker's epoch when it stopped cleanly; None where it did not."""
        try:
            data = self._disk.read_file(os.path.join(self.path, CLEAN_SHUTDOWN))
        except (FileNotFoundError, NotAFile):
            return None
        try:
            content = json.loads(data)
            self._watermarks_checksum = content.get(WATERMARKS_CHECKSUM)
            return int(content["brokerEpoch"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return UNKNOWN_BROKER_EPOCH

    def unmark_clean(self) -> None:
        """Take the mark of a clean stop away: logs may change from now on. Raises OSError."""
        assert self._lock is not None, f"{self.path} is not locked"
        try:
            self._disk.remove(os.path.join(self.path, CLEAN_SHUTDOWN))
        except FileNotFoundError:
            return
        self._disk.sync_directory(self.path)

    def _read(self, name: str) -> dict[PartitionName, int]:
        """Read a checkpoint. One that cannot be read counts as missing: recovery takes longer, no more."""
        try:
            return checkpoints.read_offsets(self._disk, os.path.join(self.path, name))
        except checkpoints.MalformedCheckpoint as problem:
            log.warning("checkpoint.ignored", reason=str(problem))
            self.is_clean = False
            return {}

    def _as_left(self, marks: dict[PartitionName, int]) -> dict[PartitionName, int]:
        """Return the high watermarks that were read; none where a clean stop has left others."""
        if self._watermarks_checksum in (None, checkpoints.checksum(marks)):
            return marks
        log.warning("checkpoint.ignored", reason=f"{self.path}: high watermarks are not those of the clean stop")
        return {}

    def write(self, name: str, offsets: Mapping[PartitionName, int]) -> None:
        assert self._lock is not None, f"{self.path} is not locked"
        assert self.checkpoint_lock.locked(), f"{self.path}: {name} may be written over by an older look"
        checkpoints.write_offsets(self._disk, os.path.join(self.path, name), offsets)
        match name:
            case checkpoints.RECOVERY_POINTS:
                self.recovery_points = dict(offsets)
            case checkpoints.LOG_STARTS:
                self.log_starts = dict(offsets)
            case checkpoints.HIGH_WATERMARKS:
                self.high_watermarks = dict(offsets)
            case checkpoints.CLEANED_OFFSETS:
                self.cleaned_offsets = dict(offsets)

    def write_checkpoints(
        self,
        logs_of: Callable[[], Sequence["Log"]],
        kept: Iterable[PartitionName],
        high_watermark_of: Callable[["Log"], int] | None = None,
    ) -> None:
        """Write down recovery points, log starts and high watermarks. Raises OSError.

        What is said of the logs in `kept` stays: they could not be opened, and it is all that is known of them.
        """
        with self.checkpoint_lock:
            left, logs = list(self.left), logs_of()
            self._write_recovery_points(logs, kept)
            moved = (opened for opened in logs if opened.log_start_offset > opened.segments[0].base_offset)
            starts = _only(self.log_starts, kept) | {opened.name: opened.log_start_offset for opened in moved}
            self.write(checkpoints.LOG_STARTS, starts)
            self._write_cleaned_offsets(logs, kept)
            if high_watermark_of is not None:
                marks = _only(self.high_watermarks, kept) | {opened.name: high_watermark_of(opened) for opened in logs}
                self.write(checkpoints.HIGH_WATERMARKS, marks)
            for name in left:
                self.left.pop(name, None)

    def cleaned_offset_of(self, opened: "Log") -> int:
        """Return the offset up to which the log was cleaned; 0 where it was cut below that since."""
        offset = self.cleaned_offsets.get(opened.name, 0)
        return offset if offset <= opened.log_end_offset else 0

    def write_cleaned_offsets(self, logs_of: Callable[[], Sequence["Log"]], kept: Iterable[PartitionName]) -> None:
        """Write down up to where logs have been cleaned. Raises OSError."""
        with self.checkpoint_lock:
            self._write_cleaned_offsets(logs_of(), kept)

    def _write_cleaned_offsets(self, logs: Iterable["Log"], kept: Iterable[PartitionName]) -> None:
        cleaned = {opened.name: opened.state.cleaned_offset for opened in logs if opened.state.cleaned_offset}
        offsets = _only(self.cleaned_offsets, kept) | cleaned
        if offsets != self.cleaned_offsets:
            self.write(checkpoints.CLEANED_OFFSETS, offsets)

    def write_recovery_points(self, logs_of: Callable[[], Sequence["Log"]], kept: Iterable[PartitionName]) -> None:
        """Write the recovery points of logs that were cut; their cleaned offsets are lowered too. Raises OSError."""
        with self.checkpoint_lock:
            logs = logs_of()
            self._write_recovery_points(logs, kept)
            self._write_cleaned_offsets(logs, kept)

    def _write_recovery_points(self, logs: Iterable["Log"], kept: Iterable[PartitionName]) -> None:
        # The topic's id of a log that is named here is synced: after a crash nothing waits for another sync.
        named = {opened.name: opened.recovery_point for opened in logs if opened.durability.is_secured}
        points = _only(self.recovery_points, kept) | named
        self.write(checkpoints.RECOVERY_POINTS, points)

    def remembers(self, name: PartitionName) -> bool:
        """Whether checkpoints name a log of this name, or a thread may be writing that just now."""
        return name in self.high_watermarks or self._has_positions_of(name)

    def forget(
        self, names: Collection[PartitionName], logs_of: Callable[[], Sequence["Log"]], kept: Iterable[PartitionName]
    ) -> None:
        """Let the checkpoints say nothing of earlier logs of these names: after a crash new ones would be cut at their
        start, and their ids taken for synced.

        A thread may be writing them just now, from before the earlier log left; then this waits for it. It syncs, so on
        the loop only what no thread could do goes this way. Raises OSError.
        """
        if any(self._has_positions_of(name) for name in names):
            self.write_checkpoints(logs_of, kept)
        if any(name in self.high_watermarks for name in names):
            with self.checkpoint_lock:
                marks = {other: offset for other, offset in self.high_watermarks.items() if other not in names}
                self.write(checkpoints.HIGH_WATERMARKS, marks)

    def _has_positions_of(self, name: PartitionName) -> bool:
        is_named = name in self.left or name in self.recovery_points
        return is_named or any(offsets.get(name) for offsets in (self.log_starts, self.cleaned_offsets))

    def mark_clean(self, broker_epoch: int) -> None:
        """Mark the directory clean: every log was closed."""
        assert self.is_online, f"{self.path} has failed"
        assert self._lock is not None, f"{self.path} is not locked"
        assert broker_epoch >= UNKNOWN_BROKER_EPOCH, f"{self.path} would be left at broker epoch {broker_epoch}"
        content = json.dumps(
            {
                "version": CLEAN_SHUTDOWN_VERSION,
                "brokerEpoch": broker_epoch,
                WATERMARKS_CHECKSUM: checkpoints.checksum(self.high_watermarks),
            }
        )
        self._disk.write_file(os.path.join(self.path, CLEAN_SHUTDOWN), content.encode())

    def space(self) -> tuple[int, int]:
        """Return the bytes of its volume, and how many are left."""
        return self._disk.space(self.path)

    @property
    def has_room(self) -> bool:
        """Whether it has more than crumbs: a full disk with room for a few records is full again at once."""
        try:
            total_bytes, left_bytes = self.space()
        except OSError:
            return True  # the room is unknown: the next write tells
        wanted_bytes = ROOM_BYTES if total_bytes < 0 else min(ROOM_BYTES, total_bytes // ROOM_SHARE)
        return left_bytes < 0 or left_bytes >= wanted_bytes

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def open_directories(
    disk: Disk, paths: list[str], *, cluster_id: str | None, node_id: int, new_id: Callable[[], bytes]
) -> tuple[str, list[LogDirectory]]:
    """The cluster's id and the directories, locked. `cluster_id` None takes what they say.

    One whose disk fails is offline, and the others go on. Raises UnusableDirectory where one is not ours, and then none
    was written to; and where none is left.
    """
    found: dict[str, MetaProperties | None] = {}
    problems: dict[str, OSError] = {}
    for path in dict.fromkeys(paths):
        try:
            found[path] = read_meta_properties(disk, path)
        except OSError as problem:
            problems[path] = problem
    cluster_id = _check_owner(found, cluster_id, node_id)
    if cluster_id is None or not any(found.values()):
        raise _none_left(paths, problems)
    directories = []
    for path in dict.fromkeys(paths):
        try:
            if path in problems:
                raise problems[path]
            # A directory without a cluster's id was added to a node that has others.
            owner = found[path] or _claim(disk, path, MetaProperties(cluster_id, node_id, new_id()))
            directories.append(LogDirectory(disk, path, owner))
        except OSError as problem:
            problems[path] = problem
            log.error("directory.failed", directory=path, reason=str(problem))
            directories.append(LogDirectory(disk, path, found.get(path), is_online=False))
    if not any(directory.is_online for directory in directories):
        raise _none_left(paths, problems)
    return cluster_id, directories


def _check_owner(found: Mapping[str, MetaProperties | None], cluster_id: str | None, node_id: int) -> str | None:
    """Return the cluster's id, where one is found. Raises UnusableDirectory for another cluster's or node's."""
    for path, meta in found.items():
        if meta is None:
            continue
        cluster_id = meta.cluster_id if cluster_id is None else cluster_id
        if meta.cluster_id != cluster_id:
            raise UnusableDirectory(
                f"{path} belongs to cluster {meta.cluster_id}, not to {cluster_id}; name another directory in log.dirs"
            )
        if meta.node_id != node_id:
            raise UnusableDirectory(
                f"{path} belongs to node {meta.node_id}, not to {node_id}; set node.id={meta.node_id}, "
                f"or name another directory in log.dirs"
            )
    return cluster_id


def _none_left(paths: list[str], problems: Mapping[str, OSError]) -> UnusableDirectory:
    if not problems:
        return UnusableDirectory(f"{', '.join(paths)}: not formatted; run `kavka-broker format` first")
    what = "; ".join(f"{path}: {problem.strerror}" for path, problem in problems.items())
    return UnusableDirectory(f"no log directory can be used ({what}); repair one, or name another in log.dirs")


def _claim(disk: Disk, path: str, meta: MetaProperties) -> MetaProperties:
    disk.make_directory(path)
    write_meta_properties(disk, path, meta)
    return meta


def _only(offsets: Mapping[PartitionName, int], kept: Iterable[PartitionName]) -> dict[PartitionName, int]:
    return {name: offsets[name] for name in kept if name in offsets}
