"""Reads what a node knows when it starts: the newest snapshot, and who votes as the log behind it says.

And what a controller writes when it begins to lead: the end of a transaction that a crash cut short, the records of a
new cluster, and its own registration.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from kavka_broker.controller.damaged_metadata import check_damage, is_alone, load_snapshot, load_state
from kavka_broker.controller.format import bootstrap_snapshot
from kavka_broker.controller.image_replacement import image_of
from kavka_broker.controller.metadata_batches import read_batch
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.snapshot_files import BOOTSTRAP, read
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import render
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.features import ELR_FEATURE, KRAFT_VERSION, SUPPORTED_LEVELS
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voters import Voter, read_voters, static_voters, voters_record
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.abort_transaction_record import AbortTransactionRecord
from kavka_broker.protocol.messages.metadata.begin_transaction_record import BeginTransactionRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.end_transaction_record import EndTransactionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kavka_broker.protocol.messages.voters_record import VotersRecord
from kavka_broker.storage.disk import Disk

BOOTSTRAP_TRANSACTION: Final = "Bootstrap records"


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state on the disk. `ahead` is an image of the whole log, set where this node is the only voter; so many bytes
    of the log are replayed in it.
    """

    committed: Metadata
    ahead: Metadata | None
    state: QuorumState
    history: VoterHistory
    replayed_bytes: int = 0


def recover(config: BrokerConfig, log: MetadataLog) -> Recovered:
    """Replay the newest snapshot, which is committed for certain. Only a quorum knows which later records are.

    A node that is the only voter replays all of its log. Raises CannotStart.
    """
    records, start = load_snapshot(config, log)
    ahead, replayed_bytes = None, 0
    with readable(config):
        history = history_of(config, records, start)
        check_damage(config, log, history)
        committed = image_of(iter(records), start - 1)
        for offset, message in log.control_messages(start):
            note(history, offset, message)
        if is_alone(config, history):
            replayed_bytes = replay_log(committed, log, start)
            ahead = committed.copy()
        if is_new(committed) and not log.latest_epoch:
            bootstrap_records(config, log.disk)  # a new cluster starts with these records
    check_features(config, committed)
    _check_voters(config, history)
    return Recovered(committed, ahead, load_state(config, log, history), history, replayed_bytes)


def replay_log(image: Metadata, log: MetadataLog, start: int) -> int:
    """Replay the whole log from `start` on; returns the number of bytes replayed."""
    size_bytes = 0
    for header, batch in log.batches(start):
        size_bytes += header.size_bytes
        for offset, message in read_batch(batch):
            if offset >= start:
                image.move_to(offset - 1)
                image.replay(message)
    image.move_to(log.end_offset - 1)
    return size_bytes


def bootstrap_records(config: BrokerConfig, disk: Disk) -> list[Message]:
    """The first records of a new cluster: those that `format` wrote, or the feature levels of this version."""
    path = os.path.join(config.metadata_log_dir, BOOTSTRAP)
    return list(read(disk.read_file(path) if disk.exists(path) else bootstrap_snapshot(0)))


@contextmanager
def readable(config: BrokerConfig) -> Iterator[None]:
    """A context that raises a read error again with the directory in its message. Raises CannotStart."""
    try:
        yield
    except ProtocolViolation as problem:
        raise CannotStart(
            f"{config.metadata_log_dir}: {problem}; it was written by a newer version or is damaged"
        ) from None


def history_of(config: BrokerConfig, records: Iterable[Message], end_offset: int) -> VoterHistory:
    """The voters in a snapshot that ends at `end_offset`, or those of the configuration if it names none."""
    history = VoterHistory.of(_configured_voters(config), kraft_version=0)
    for record in records:
        note(history, end_offset - 1, record)
    return history


def note(history: VoterHistory, offset: int, message: Message) -> None:
    """Add a control record to the history of voters."""
    match message:
        case VotersRecord():
            history.add_voters(offset, read_voters(message))
        case KRaftVersionRecord():
            history.add_version(offset, message.k_raft_version)


def quorum_control(history: VoterHistory, end_offset: int) -> list[Message]:
    """The control records of a snapshot that ends at `end_offset`: the version and the voters of the quorum."""
    voters, kraft_version = history.at(end_offset)
    if not kraft_version:
        return []
    return [KRaftVersionRecord(0, kraft_version), voters_record(voters)]


def opening_records(
    image: Metadata, config: BrokerConfig, bootstrap: Sequence[Message], incarnation_id: bytes
) -> list[Message]:
    """The records that a controller appends when it becomes the leader."""
    records: list[Message] = []
    if image.transaction is not None:
        records.append(AbortTransactionRecord("the controller failed inside it"))
    if is_new(image):
        records += _new_cluster(config, bootstrap)
    records.append(registration(config, incarnation_id))
    return records


def is_new(image: Metadata) -> bool:
    """Whether no decision is in the image yet."""
    return not image.features.levels.keys() - {KRAFT_VERSION}


def _new_cluster(config: BrokerConfig, bootstrap: Sequence[Message]) -> Iterator[Message]:
    yield BeginTransactionRecord(BOOTSTRAP_TRANSACTION)
    yield from bootstrap
    if any(isinstance(record, FeatureLevelRecord) and record.name == ELR_FEATURE for record in bootstrap):
        # Eligible leader replicas need the same bound on every broker, so it is in the metadata.
        value = render(config["min.insync.replicas"])
        yield ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", value)
    yield EndTransactionRecord()


def check_features(config: BrokerConfig, metadata: Metadata) -> None:
    """Raise CannotStart where the cluster uses a feature level that this version does not know."""
    unsupported = metadata.features.unsupported()
    if unsupported:
        raise CannotStart(f"{config.metadata_log_dir}: {'; '.join(unsupported)}")


def _configured_voters(config: BrokerConfig) -> tuple[Voter, ...]:
    return static_voters(config["controller.quorum.voters"], config.listeners.controller_names[0])


def _check_voters(config: BrokerConfig, history: VoterHistory) -> None:
    if not history.voters and not config["controller.quorum.bootstrap.servers"]:
        raise CannotStart(
            f"{config.metadata_log_dir}: nobody is known to vote; set controller.quorum.bootstrap.servers to the "
            f"addresses of the controllers, or format with --standalone or --initial-controllers"
        )
    if history.kraft_version:
        return
    ids = [voter.node_id for voter in history.voters]
    is_controller = "controller" in config.roles
    if ids and is_controller != (config.node_id in ids):
        problem = "is a controller and not among" if is_controller else "is no controller and is among"
        raise CannotStart(f"controller.quorum.voters: node {config.node_id} {problem} the voters {ids}; correct it")


def registration(config: BrokerConfig, incarnation_id: bytes) -> RegisterControllerRecord:
    """The record by which a controller announces itself to the cluster."""
    return RegisterControllerRecord(
        controller_id=config.node_id,
        incarnation_id=incarnation_id,
        end_points=[
            ControllerEndpoint(listener.name, listener.host, listener.port, listener.protocol_id)
            for listener in config.listeners.advertised_controllers
        ],
        features=[ControllerFeature(name, low, high) for name, (low, high) in sorted(SUPPORTED_LEVELS.items())],
    )
