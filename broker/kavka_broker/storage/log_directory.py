"""One directory of logs: whose it is, how it was left, and what its checkpoints say.

A directory belongs to one node of one cluster, and says so in `meta.properties`; one that belongs to somebody else, or
to a newer format, is refused before anything in it is touched. While a broker runs it holds `.lock`, which Kafka
respects too. A clean stop leaves `.kafka_cleanshutdown`; the next start takes it away first, so that it can never
speak for two starts.
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.properties import format_properties, parse_properties
from kavka_broker.logs import get
from kavka_broker.protocol.uuids import from_text, to_text
from kavka_broker.storage import checkpoints
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.names import PartitionName

log = get("storage")

META_PROPERTIES: Final = "meta.properties"
META_VERSION: Final = 1
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_VERSION: Final = 0
LOCK: Final = ".lock"
UNKNOWN_BROKER_EPOCH: Final = -1
#: What a directory that was full has to have left to count again, or that share of a small volume.
ROOM_BYTES: Final = 16 * 1024 * 1024
ROOM_SHARE: Final = 20


class UnusableDirectory(Exception):
    """A log directory that this broker must not use. The message says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Whose a log directory is."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """None where the directory is not formatted. Raises UnusableDirectory for what cannot be understood."""
    path = os.path.join(directory, META_PROPERTIES)
    try:
        fields = parse_properties(disk.read_file(path).decode())
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, ConfigError) as problem:
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
    fields = {
        "version": str(META_VERSION),
        "cluster.id": meta.cluster_id,
        "node.id": str(meta.node_id),
        "directory.id": to_text(meta.directory_id),
    }
    disk.write_file(os.path.join(directory, META_PROPERTIES), format_properties(fields).encode())


class LogDirectory:
    """A directory of logs that this broker has locked."""

    def __init__(self, disk: Disk, path: str, meta: MetaProperties) -> None:
        self.path = path
        self.directory_id = meta.directory_id
        self.is_online = True
        # Held from looking at the logs until a checkpoint is written: an older look must not replace a newer one.
        self.checkpoint_lock = threading.Lock()
        self._disk = disk
        try:
            self._lock = disk.lock(os.path.join(path, LOCK))
        except BlockingIOError:
            raise UnusableDirectory(f"{path} is locked: another broker, of Kafka or Kavka, runs on it") from None
        self.broker_epoch = self._take_clean_shutdown()
        self.is_clean = self.broker_epoch is not None
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARKS)
        self.log_starts = self._read(checkpoints.LOG_STARTS)

    def _take_clean_shutdown(self) -> int | None:
        """The epoch that the broker had when it stopped cleanly; None where it did not."""
        path = os.path.join(self.path, CLEAN_SHUTDOWN)
        try:
            data = self._disk.read_file(path)
        except FileNotFoundError:
            return None
        self._disk.remove(path)
        self._disk.sync_directory(self.path)
        try:
            content = json.loads(data)
            return int(content["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            return UNKNOWN_BROKER_EPOCH

    def _read(self, name: str) -> dict[PartitionName, int]:
        """A checkpoint. One that cannot be read is as one that is missing: recovery finds out, it only takes longer."""
        try:
            return checkpoints.read_offsets(self._disk, os.path.join(self.path, name))
        except checkpoints.MalformedCheckpoint as problem:
            log.warning("checkpoint.ignored", reason=str(problem))
            self.is_clean = False
            return {}

    def write(self, name: str, offsets: Mapping[PartitionName, int]) -> None:
        checkpoints.write_offsets(self._disk, os.path.join(self.path, name), offsets)
        match name:
            case checkpoints.RECOVERY_POINTS:
                self.recovery_points = dict(offsets)
            case checkpoints.LOG_STARTS:
                self.log_starts = dict(offsets)
            case checkpoints.HIGH_WATERMARKS:
                self.high_watermarks = dict(offsets)

    def vouches_for(self, name: PartitionName) -> bool:
        """Whether the checkpoints on the disk would make a start believe, or forget, anything of a log of this name."""
        return bool(self.recovery_points.get(name) or self.log_starts.get(name))

    def mark_clean(self, broker_epoch: int) -> None:
        """Say that every log was closed."""
        content = json.dumps({"version": CLEAN_SHUTDOWN_VERSION, "brokerEpoch": broker_epoch})
        self._disk.write_file(os.path.join(self.path, CLEAN_SHUTDOWN), content.encode())

    def space(self) -> tuple[int, int]:
        """How many bytes its volume has, and how many are left."""
        return self._disk.space(self.path)

    @property
    def has_room(self) -> bool:
        """More than crumbs: what comes back to a full disk for a few records is gone again at once."""
        try:
            total_bytes, left_bytes = self.space()
        except OSError:
            return True  # nobody knows: the next write tells
        wanted_bytes = ROOM_BYTES if total_bytes < 0 else min(ROOM_BYTES, total_bytes // ROOM_SHARE)
        return left_bytes < 0 or left_bytes >= wanted_bytes

    def release(self) -> None:
        self._lock.release()


def open_directories(
    disk: Disk, paths: list[str], *, cluster_id: str | None, node_id: int, new_id: Callable[[], bytes]
) -> tuple[str, list[LogDirectory]]:
    """The cluster's id and the directories, locked. `cluster_id` None takes what they say.

    Raises UnusableDirectory, and then none was written to.
    """
    found = {path: read_meta_properties(disk, path) for path in dict.fromkeys(paths)}
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
    if cluster_id is None or not any(found.values()):
        raise UnusableDirectory(f"{', '.join(found)}: not formatted; run `kavka-broker format` first")
    directories = []
    for path, meta in found.items():
        # One without is a directory that was added to a node that has others.
        owner = meta or _claim(disk, path, MetaProperties(cluster_id, node_id, new_id()))
        directories.append(LogDirectory(disk, path, owner))
    return cluster_id, directories


def _claim(disk: Disk, path: str, meta: MetaProperties) -> MetaProperties:
    disk.make_directory(path)
    write_meta_properties(disk, path, meta)
    return meta
