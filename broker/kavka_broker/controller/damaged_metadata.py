"""A node whose metadata has changed on the disk: what it can go on with, and what it must not.

The log and its snapshots are decisions of the cluster, which other controllers have too: what is damaged here goes, and
is fetched again. Until then this node does not vote, for what it lacks may be committed (`NodeState.is_forgetful`). Who
votes alone has nobody to fetch from, and stays as it is: nothing is cut off, and the start is refused.

The vote nobody else knows. Where it can be read nowhere, a node with others beside it could vote twice in one epoch.
"""

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.raft.quorum_state import QuorumState, UnreadableState
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.logs import get
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message

log = get("controller")

REPLACE = (
    "While the other controllers run, remove it from the voters (kafka-metadata-quorum remove-controller; not where "
    "controller.quorum.voters names the voters), empty all its directories, format them and start it"
)


def load_snapshot(config: BrokerConfig, metadata_log: MetadataLog) -> tuple[list[Message], int]:
    """The records of the newest snapshot that can be read, and where it ends. Raises CannotStart.

    A snapshot that cannot be read is set aside where the log still has its records.
    """
    while True:
        newest = metadata_log.files.newest()
        if newest is None:
            return [], 0
        try:
            return metadata_log.files.load(newest), newest.end_offset
        except (ProtocolViolation, OSError) as problem:
            older = [snapshot.end_offset for snapshot in metadata_log.files.ids if snapshot != newest]
            if newest.end_offset == 0 or metadata_log.start_offset not in (0, *older):
                path = metadata_log.files.path(newest)
                raise CannotStart(
                    f"{path}: {problem}; it was written by a newer version or is damaged, and the log begins behind "
                    f"it. {REPLACE}. Where this is the only controller, restore the file from a copy"
                ) from None
            log.error("metadata.snapshot.damaged", end_offset=newest.end_offset, reason=str(problem))
            metadata_log.files.set_aside(newest)


def check_damage(config: BrokerConfig, metadata_log: MetadataLog, history: VoterHistory) -> None:
    """Cut off the damaged end of the log if other voters have it. Raises CannotStart otherwise."""
    end_offset, promised = metadata_log.end_offset, metadata_log.promised_offset
    if metadata_log.damage is None and end_offset >= promised:
        return
    at, reason = metadata_log.damage or (end_offset, f"the log ends at {end_offset} and was synced up to {promised}")
    if is_alone(config, history):
        raise CannotStart(
            f"{config.metadata_log_dir}: the metadata log cannot be read from offset {at} on: {reason}. No other "
            "controller has these decisions: restore the files from a copy"
        )
    log.error("metadata.log.damaged", offset=at, reason=reason, promised=promised, votes="not before it has that again")
    if metadata_log.promises.is_broken:
        metadata_log.promises.keep_broken(metadata_log.latest_epoch)  # before the damage goes, which says it too
    if metadata_log.damage is not None:
        metadata_log.cut_damage()


def load_state(config: BrokerConfig, metadata_log: MetadataLog, history: VoterHistory) -> QuorumState:
    """The vote and the epoch. Raises CannotStart where they are lost and other nodes vote as well."""
    try:
        return metadata_log.promises.load_state()
    except UnreadableState as problem:
        if metadata_log.end_offset == 0 and not metadata_log.latest_epoch:
            return QuorumState()  # a node without a log has not voted either
        others = [voter.node_id for voter in history.voters if voter.node_id != config.node_id]
        if "controller" in config.roles and others:
            raise CannotStart(
                f"{problem}. Node {config.node_id} may have voted in an epoch that it no longer knows, and "
                f"would vote again. {REPLACE}"
            ) from None
        log.warning("quorum_state.rebuilt", epoch=metadata_log.latest_epoch, reason=str(problem))
        return QuorumState(metadata_log.latest_epoch)


def is_alone(config: BrokerConfig, history: VoterHistory) -> bool:
    """Whether this node is the only voter."""
    return [voter.node_id for voter in history.voters] == [config.node_id]
