"""What a controller knows when it starts: the newest snapshot, and the log behind it.

From it follows what the new leader has to write first: who leads and votes, the end of a transaction that a crash cut
short, the records of a new cluster, and the controller's own registration.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import render
from kavka_broker.core.metadata.configs import ResourceType
from kavka_broker.core.metadata.features import ELR_FEATURE, KRAFT_VERSION, SUPPORTED_LEVELS
from kavka_broker.core.metadata.image import Metadata
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.voters import Voter, read_voters, static_voters, voters_record
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.leader_change_message import LeaderChangeMessage
from kavka_broker.protocol.messages.leader_change_message import Voter as LeaderVoter
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

BOOTSTRAP_TRANSACTION: Final = "Bootstrap records"


class CannotStart(Exception):
    """The metadata on the disk is not one that this broker can go on with; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The same image twice: one stays at what is committed, the other runs ahead."""

    committed: Metadata
    ahead: Metadata
    state: QuorumState
    voters: tuple[Voter, ...]
    kraft_version: int
    log_is_empty: bool
    bootstrap: tuple[Message, ...]

    def quorum_control(self) -> list[Message]:
        """The control records that name the version and the voters of the quorum."""
        if not self.kraft_version:
            return []
        return [KRaftVersionRecord(0, self.kraft_version), voters_record(self.voters)]

    def opening_control(self, node_id: int) -> list[Message]:
        """What a leader writes before anything else."""
        voters = [LeaderVoter(voter.node_id) for voter in self.voters]
        change = LeaderChangeMessage(0, node_id, voters, [LeaderVoter(node_id)])
        return [change, *(self.quorum_control() if self.log_is_empty else [])]

    def opening_records(self, config: BrokerConfig, incarnation_id: bytes) -> list[Message]:
        """What the controller writes once it leads."""
        records: list[Message] = []
        if self.ahead.transaction is not None:
            records.append(AbortTransactionRecord("the controller failed inside it"))
        if not self.ahead.features.levels.keys() - {KRAFT_VERSION}:
            records += self._new_cluster(config)
        records.append(_registration(config, incarnation_id))
        return records

    def _new_cluster(self, config: BrokerConfig) -> Iterator[Message]:
        yield BeginTransactionRecord(BOOTSTRAP_TRANSACTION)
        yield from self.bootstrap
        if any(isinstance(one, FeatureLevelRecord) and one.name == ELR_FEATURE for one in self.bootstrap):
            # With eligible leader replicas the bound must be the same on every broker, so it lives in the metadata.
            value = render(config["min.insync.replicas"])
            yield ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", value)
        yield EndTransactionRecord()


def recover(config: BrokerConfig, log: MetadataLog) -> Recovered:
    """Replay what is on the disk. Raises CannotStart."""
    committed, ahead = Metadata(), Metadata()
    voters: tuple[Voter, ...] = ()
    kraft_version = 0
    try:
        for offset, message in _history(log):
            if isinstance(message, VotersRecord):
                voters = read_voters(message)
            if isinstance(message, KRaftVersionRecord):
                kraft_version = message.k_raft_version
            for image in (committed, ahead):
                image.move_to(offset - 1)
                image.replay(message)
    except ProtocolViolation as problem:
        raise CannotStart(
            f"{config.metadata_log_dir}: {problem}; it was written by a newer version or is damaged"
        ) from None
    for image in (committed, ahead):
        image.move_to(log.end_offset - 1)
    _check_features(config, committed)
    voters = voters or static_voters(config["controller.quorum.voters"], config.controller_listener_names[0])
    _check_voters(config, voters)
    state = log.load_state()
    return Recovered(
        committed, ahead, state, voters, kraft_version, log.end_offset == 0, tuple(log.bootstrap_records())
    )


def _history(log: MetadataLog) -> Iterator[tuple[int, Message]]:
    newest = log.snapshots.newest()
    start = 0
    if newest is not None:
        start = newest.end_offset
        for message in log.snapshots.load(newest):
            yield start - 1, message
    yield from log.messages(max(start, log.start_offset))


def _check_features(config: BrokerConfig, metadata: Metadata) -> None:
    unsupported = metadata.features.unsupported()
    if unsupported:
        raise CannotStart(
            f"{config.metadata_log_dir}: the cluster uses {', '.join(unsupported)}, "
            f"which this version does not; upgrade the broker, or the cluster with kafka-features"
        )


def _check_voters(config: BrokerConfig, voters: tuple[Voter, ...]) -> None:
    ids = [voter.node_id for voter in voters]
    if ids != [config.node_id]:
        raise CannotStart(
            f"{config.metadata_log_dir}: the controllers {ids} vote; this version runs a quorum of one, "
            f"which has to be node {config.node_id}"
        )


def _registration(config: BrokerConfig, incarnation_id: bytes) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=config.node_id,
        incarnation_id=incarnation_id,
        end_points=[
            ControllerEndpoint(one.name, one.host or "localhost", one.port, one.protocol_id)
            for one in config.controller_listeners
        ],
        features=[ControllerFeature(name, low, high) for name, (low, high) in sorted(SUPPORTED_LEVELS.items())],
    )
