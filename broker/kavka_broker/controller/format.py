"""Format directories for a new broker or controller, as `kafka-storage format` does.

Each log directory gets a `meta.properties` (whose it is) and a `bootstrap.checkpoint` (the feature levels to begin
with). With a quorum whose voters are kept in the log, the metadata directory also gets a snapshot at offset 0 that
names them: at first this node alone.

A directory that belongs to a cluster is never formatted again: its records would be read as another cluster's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kavka_broker.controller.snapshots import BOOTSTRAP, GENESIS, build
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import format_properties, parse_properties
from kavka_broker.core.metadata.features import INITIAL_LEVELS
from kavka_broker.core.raft.voters import Voter, voters_record
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.uuids import from_text, to_text
from kavka_broker.storage.disk import Disk

META_PROPERTIES: Final = "meta.properties"
METADATA_DIRECTORY: Final = "__cluster_metadata-0"
#: Kafka keeps the uuids below this for meanings of its own.
RESERVED: Final = 100


class FormatError(Exception):
    """The directories cannot be formatted; the message says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """What was done: the directories that are new, and those that were there already."""

    new: tuple[str, ...]
    already: tuple[str, ...]


def random_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """A uuid of version 4 that is none of Kafka's reserved ones and whose text does not look like an option."""
    while True:
        drawn = bytearray(random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        uuid = bytes(drawn)
        if int.from_bytes(uuid, "big") >= RESERVED and not to_text(uuid).startswith("-"):
            return uuid


def format_directory(
    disk: Disk,
    config: BrokerConfig,
    cluster_id: str,
    *,
    now_ms: int,
    random_bytes: Callable[[int], bytes],
    ignore_formatted: bool = False,
) -> Formatted:
    """Format every log directory of a configuration. Raises FormatError and writes nothing where one is taken."""
    directories = list(dict.fromkeys([config.metadata_log_dir, *config.log_dirs]))
    taken = [directory for directory in directories if disk.exists(f"{directory}/{META_PROPERTIES}")]
    _check_taken(disk, config, cluster_id, taken, ignore_formatted=ignore_formatted)
    new = [directory for directory in directories if directory not in taken]
    for directory in new:
        directory_id = random_uuid(random_bytes)
        disk.make_directory(directory)
        disk.write_file(f"{directory}/{BOOTSTRAP}", bootstrap_snapshot(now_ms))
        if directory == config.metadata_log_dir and "controller" in config.roles:
            _write_voters(disk, config, directory, directory_id, now_ms)
        # Last, since it is what says that a directory is formatted.
        disk.write_file(f"{directory}/{META_PROPERTIES}", _meta_properties(config, cluster_id, directory_id))
    return Formatted(tuple(new), tuple(taken))


def bootstrap_snapshot(now_ms: int) -> bytes:
    """What the first controller of a new cluster writes into its log."""
    records = [FeatureLevelRecord(name, level) for name, level in INITIAL_LEVELS.items()]
    return build([], records, epoch=0, last_timestamp_ms=0, now_ms=now_ms)


def _check_taken(
    disk: Disk, config: BrokerConfig, cluster_id: str, taken: Sequence[str], *, ignore_formatted: bool
) -> None:
    try:
        reserved = int.from_bytes(from_text(cluster_id), "big") < RESERVED
    except ValueError:
        reserved = True
    if reserved:
        raise FormatError(f'cluster id "{cluster_id}": write 22 URL-safe base64 characters, as a uuid has')
    for directory in taken:
        found = parse_properties(disk.read_file(f"{directory}/{META_PROPERTIES}").decode())
        theirs = found.get("cluster.id")
        if theirs != cluster_id:
            raise FormatError(f"{directory} belongs to cluster {theirs}, not to {cluster_id}; choose another directory")
        if found.get("node.id") != str(config.node_id):
            problem = f"belongs to node {found.get('node.id')}, not to {config.node_id}"
            raise FormatError(f"{directory} {problem}; choose another directory")
        if not ignore_formatted:
            raise FormatError(f"{directory} is formatted already; --ignore-formatted leaves it as it is")


def _write_voters(disk: Disk, config: BrokerConfig, directory: str, directory_id: bytes, now_ms: int) -> None:
    if config["controller.quorum.voters"]:
        return  # a quorum of the older kind: every configuration names the voters
    endpoints = tuple((one.name, one.host or "localhost", one.port) for one in config.controller_listeners)
    control: list[Message] = [
        KRaftVersionRecord(0, 1),
        voters_record([Voter(config.node_id, directory_id, endpoints)]),
    ]
    disk.make_directory(f"{directory}/{METADATA_DIRECTORY}")
    data = build(control, [], epoch=0, last_timestamp_ms=now_ms, now_ms=now_ms)
    disk.write_file(f"{directory}/{METADATA_DIRECTORY}/{GENESIS.file_name}", data)


def _meta_properties(config: BrokerConfig, cluster_id: str, directory_id: bytes) -> bytes:
    return format_properties(
        {
            "version": "1",
            "cluster.id": cluster_id,
            "node.id": str(config.node_id),
            "directory.id": to_text(directory_id),
        }
    ).encode()
