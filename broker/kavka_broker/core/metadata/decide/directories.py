"""A broker says in which of its directories a replica is (KIP-858).

It says so when it has chosen one for a new replica, when a replica has moved to another, and when it finds replicas
in places that the metadata does not name. A replica in a directory that is not among the broker's online ones
leaves the ISR. One that its broker gives for lost, or has begun again because its directory failed, is no longer an
eligible leader either: it has nothing yet. The leader of a new log's would not know, for the same broker fetches at the
same epoch as before; so a new leader epoch begins, and a fetch that is still on its way says nothing about the new log.

A broker says "lost" before it begins again: from then on it is not elected, in whichever order the rest is heard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import BY_DEFAULT, Policy, rules_of
from kavka_broker.core.metadata.decide.leader_election import usable_in
from kavka_broker.core.metadata.decide.partition_change import difference, settle
from kavka_broker.core.metadata.image.brokers import GIVEN_UP
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message


@dataclass(frozen=True, slots=True)
class Assign:
    """The directory of one replica of the broker that sends the request."""

    topic_id: bytes
    partition: int
    directory: bytes


def assign_directories(
    metadata: Metadata, broker_id: int, broker_epoch: int, commands: Sequence[Assign], policy: Policy = BY_DEFAULT
) -> Decision[list[ErrorCode]]:
    """Assign directories: an error for each, or NONE; the last counts. Raises BrokerError for a stale broker."""
    metadata.brokers.at_epoch(broker_id, broker_epoch)
    last = {(command.topic_id, command.partition): command for command in commands}
    records: list[Message] = []
    results = []
    for command in commands:
        code = _refusal(metadata, broker_id, command)
        results.append(code)
        if code is ErrorCode.NONE and last[command.topic_id, command.partition] is command:
            records += _assign(metadata, broker_id, command, policy)
    assert len(results) == len(commands), f"{len(results)} answers to {len(commands)} assignments"
    return Decision(records, results)


def _refusal(metadata: Metadata, broker_id: int, command: Assign) -> ErrorCode:
    topic = metadata.topics.by_id(command.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    state = topic.partitions.get(command.partition)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in state.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _assign(metadata: Metadata, broker_id: int, command: Assign, policy: Policy) -> list[Message]:
    topic, broker = metadata.topics.by_id(command.topic_id), metadata.brokers.get(broker_id)
    assert topic is not None
    assert broker is not None
    before = topic.partitions[command.partition]
    wanted = before._replace(
        directories=tuple(
            command.directory if replica == broker_id else before.directory_of(replica) for replica in before.replicas
        )
    )
    if not broker.has_online(command.directory):
        wanted = wanted._replace(isr=tuple(replica for replica in before.isr if replica != broker_id))
    is_given_up = command.directory in GIVEN_UP
    # The replica lost what it had in a directory that failed when another directory takes its place.
    is_replaced = not is_given_up and not broker.has_online(before.directory_of(broker_id))
    # It may not lead as the last leader either: its log is empty, and no election would wait for a broker that has the
    # records. A log that its broker reports as lost, or as failed and could open again, differs: it is emptied only
    # where other brokers have its records; where they have not, it is the log to wait for.
    if is_replaced and before.directory_of(broker_id) not in GIVEN_UP:
        wanted = wanted._replace(
            last_known_elr=tuple(replica for replica in before.last_known_elr if replica != broker_id)
        )
    lost = (broker_id,) if is_given_up or is_replaced else ()
    assert len(wanted.directories) == len(before.replicas), f"{wanted.directories} of {before.replicas}"
    rules = rules_of(metadata, topic.name, policy)
    after = settle(before, wanted, rules, usable_in(metadata.brokers), lost=lost)
    if is_replaced and after.leader_epoch == before.leader_epoch:
        after = after._replace(leader_epoch=before.leader_epoch + 1)
    record = difference(command.topic_id, command.partition, before, after)
    return [] if record is None else [record]
