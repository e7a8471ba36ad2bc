"""What is said once of a resource when something has become of it: a status says how it stands, a notice what was done.

A notice follows from an action that was carried out, or from the step from one status to the next. As the status
before is the one that is kept with the resource, an operator that begins again says nothing twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import KafkaClusterStatus, RolloutStatus
from kavka_operator.api.kinds import AnyResource, Managed
from kavka_operator.api.quota import ClientQuota, ClientQuotaStatus
from kavka_operator.api.topic import Topic, TopicStatus
from kavka_operator.api.user import KafkaUser, KafkaUserStatus
from kavka_operator.domain.name_lists import counted, some
from kavka_operator.domain.plan import (
    Action,
    AddPartitions,
    AddVoter,
    AlterBrokers,
    AlterQuota,
    AlterTopic,
    CreateAcls,
    CreateTopic,
    DeleteAcls,
    DeleteTopic,
    DropCredential,
    DropSecret,
    GrowVolume,
    KeepSecret,
    LiftGate,
    MoveReplicas,
    RemoveVoter,
    ResizeNode,
    RestartNode,
    SetCredential,
    StartNode,
    StopNode,
)
from kavka_operator.reconcile.rollout.roll import PENDING
from kavka_operator.reconcile.status import Status

DRIFT_CORRECTED = "DriftCorrected"
QUOTA_REMOVED = "QuotaRemoved"
ROLL_BEGUN, ROLL_WAITS, ROLL_BLOCKED, ROLL_DONE = "RollBegun", "RollWaits", "RollBlocked", "RollDone"
NODE_RESTARTED = "NodeRestarted"
INVALID = "Invalid"
STALLED = "Stalled"
OF_ACTION: Mapping[type, str] = {
    CreateTopic: "TopicCreated",
    DeleteTopic: "TopicDeleted",
    AddPartitions: "PartitionsAdded",
    AlterTopic: "TopicConfigured",
    MoveReplicas: "ReplicasMoving",
    AlterQuota: "QuotaSet",
    KeepSecret: "SecretWritten",
    DropSecret: "SecretRemoved",
    SetCredential: "PasswordSet",
    DropCredential: "PasswordRemoved",
    CreateAcls: "AccessRulesMade",
    DeleteAcls: "AccessRulesRemoved",
    AlterBrokers: "BrokersConfigured",
    StartNode: "NodeStarting",
    RestartNode: "NodeRestarting",
    StopNode: "NodeStopping",
    GrowVolume: "VolumeGrowing",
    ResizeNode: "NodeResizing",
    LiftGate: "SchedulingGateLifted",
    AddVoter: "VoterAdded",
    RemoveVoter: "VoterRemoved",
}
"""The reason of each action that is announced; the others are details of these."""


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to be made of a resource. `is_warning` where a person has to act."""

    reason: str
    words: str
    is_warning: bool = False


def notices(resource: AnyResource, status: Status, done: Sequence[Action] = ()) -> tuple[Notice, ...]:
    """Notices of a resource, as it was before, whose status is `status` after these actions."""
    match resource, status:
        case KafkaCluster(), KafkaClusterStatus():
            before = resource.status
            begun, found = _roll_begun(before.roll, status.rollout), _of_actions(done)
            return (
                *begun,
                *found,
                *_nodes_back(before, status),
                *_roll_waits(before.roll, status),
                *_refused(before, status),
            )
        case Topic(), TopicStatus():
            return (*_of_settings(resource, status, done), *_refused(resource.status, status))
        case ClientQuota(), ClientQuotaStatus():
            return (*_of_settings(resource, status, done), *_refused(resource.status, status))
        case KafkaUser(), KafkaUserStatus():
            return (*_of_settings(resource, status, done), *_refused(resource.status, status))
    raise AssertionError(f"{resource.identity} has the status of another kind")


def invalid(words: str) -> Notice:
    """The notice of a resource that cannot be understood."""
    return Notice(INVALID, words, is_warning=True)


def _of_actions(done: Sequence[Action]) -> Iterator[Notice]:
    for action in done:
        if (reason := OF_ACTION.get(type(action))) is not None:
            yield Notice(reason, str(action))


def _of_settings(
    resource: Managed, status: TopicStatus | ClientQuotaStatus | KafkaUserStatus, done: Sequence[Action]
) -> Iterator[Notice]:
    """Notices of what was done about a topic, quota or user. What others had changed is said as that."""
    last, is_new = status.last_correction, status.last_correction != resource.status.last_correction
    if last is not None and is_new:
        yield Notice(DRIFT_CORRECTED, f"changed by somebody else and put back: {last.message}")
        done = [action for action in done if not isinstance(action, AlterTopic | AlterQuota)]
    if not isinstance(resource, ClientQuota):
        yield from _of_actions(done)
    elif resource.metadata.deletion_timestamp is not None:
        yield from (Notice(QUOTA_REMOVED, str(action)) for action in done)
    elif not _is_dividing(resource):
        yield from _of_actions(done)


def _is_dividing(quota: ClientQuota) -> bool:
    """Whether only the parts of a budget move, which follows the traffic every few seconds."""
    return quota.spec.scope == "Cluster" and quota.metadata.generation == quota.status.observed_generation


def _refused(before: Status, after: Status) -> Iterator[Notice]:
    """The notice of a resource that now waits for a person, where it did not for this reason or in this form."""
    was, now = before.condition(STALLED), after.condition(STALLED)
    if now is None or (
        was is not None and (was.reason, was.observed_generation) == (now.reason, now.observed_generation)
    ):
        return
    yield Notice(now.reason, now.message, is_warning=True)


def _roll_begun(before: RolloutStatus | None, after: RolloutStatus | None) -> Iterator[Notice]:
    """The first restart of a roll. One that waits for an approval has not begun."""
    was_on = before is not None and after is not None and before.plan == after.plan and _has_begun(before)
    if after is None or was_on or not after.current:
        return
    risk = f"; unavailable meanwhile: {some(after.at_risk, comma='; ')}" if after.at_risk else ""
    yield Notice(ROLL_BEGUN, f"roll {after.plan}: {counted(after.total, 'node')} to restart{risk}")


def _has_begun(roll: RolloutStatus) -> bool:
    return bool(roll.current or roll.done)


def _nodes_back(before: KafkaClusterStatus, after: KafkaClusterStatus) -> Iterator[Notice]:
    """The nodes that are back since the status before, and the end of their roll."""
    roll, last = before.roll, after.last_rollout
    is_over = after.rollout is None and last is not None and last != before.last_rollout
    is_same = roll is not None and after.rollout is not None and roll.plan == after.rollout.plan
    if roll is not None and (is_over or is_same):
        still = after.rollout.current if after.rollout is not None else ()
        for node in roll.current:
            if node not in still:
                yield Notice(NODE_RESTARTED, f"node {node} is back")
    if is_over and last is not None:
        yield Notice(ROLL_DONE, f"roll {last.plan}: {counted(last.nodes, 'node')} restarted")


def _roll_waits(before: RolloutStatus | None, after: KafkaClusterStatus) -> Iterator[Notice]:
    """The notice of a roll that has begun to wait: for a person, a window, or something in the next node's way.

    That a node is on its way, and the pause after it, are no obstacles; a roll that has stopped says so itself.
    """
    roll = after.rollout
    if roll is None or roll.current or roll.resume_time is not None or roll.blocked_since is None:
        return
    if after.condition(STALLED) is not None or (before is not None and before.blocked_since == roll.blocked_since):
        return
    words = f"roll {roll.plan}, {roll.progress} done, waits: {some(roll.blocked_by, 2, '; ')}"
    is_left = after.condition(PENDING) is not None
    yield Notice(ROLL_WAITS if is_left else ROLL_BLOCKED, words, is_warning=not is_left)
