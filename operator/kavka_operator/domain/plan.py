"""Plans: small values that say what to do to a cluster, and the words for the status meanwhile.

An action is a sentence with a subject; `kafka/client.py` and `platform` carry it out. A word is a condition without a
time: `dated` puts the words beside the conditions that were there and moves `lastTransitionTime` only when a status
changes, so that a converged resource is not written again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, TypeVar

from kavka_operator.api.cluster import RolloutStatus
from kavka_operator.api.model import MESSAGE_LENGTH_MAX, Condition
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.entities import entity_text
from kavka_operator.domain.words import counted, some


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """None leaves the number to the cluster."""

    name: str
    partitions: int | None
    replication_factor: int | None
    config: Mapping[str, str]

    def __str__(self) -> str:
        return f'create topic "{self.name}"'


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """`total` is how many there are afterwards."""

    name: str
    total: int

    def __str__(self) -> str:
        return f'add partitions to topic "{self.name}", to have {self.total}'


@dataclass(frozen=True, slots=True)
class AlterTopic:
    """Settings to set, and settings to give back to their default."""

    name: str
    set: Mapping[str, str]
    reset: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{key}={value}" for key, value in self.set.items()] + [f"{key} to its default" for key in self.reset]
        return f'set {", ".join(words)} on topic "{self.name}"'


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """By id, so that a topic of the same name that somebody else made is safe."""

    name: str
    topic_id: str

    def __str__(self) -> str:
        return f'delete topic "{self.name}"'


@dataclass(frozen=True, slots=True)
class AlterQuota:
    """Values by Kafka's keys to set and keys to remove."""

    entity: AnyEntity
    set: Mapping[str, float]
    remove: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{key}={spell(value)}" for key, value in self.set.items()]
        words += [f"no {key}" for key in self.remove]
        return f"set {', '.join(words)} for {entity_text(self.entity)}"


@dataclass(frozen=True, slots=True)
class AlterBrokers:
    """Settings of all brokers that take effect while they run, and settings to give back to their default."""

    set: Mapping[str, str]
    reset: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{key}={value}" for key, value in self.set.items()] + [f"{key} to its default" for key in self.reset]
        return f"set {', '.join(words)} on all brokers, without a restart"


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Let partitions be led by the replica that stands first, where it is in sync."""

    partitions: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        names = [f"{topic}-{index}" for topic, index in self.partitions]
        return f"elect the preferred leaders of {some(names)}"


@dataclass(frozen=True, slots=True)
class MoveReplicas:
    """The brokers that partitions of a topic shall have, the preferred leader first. It takes its time."""

    name: str
    replication_factor: int
    replicas: Mapping[int, tuple[int, ...]]

    def __str__(self) -> str:
        return f'give each partition of topic "{self.name}" {counted(self.replication_factor, "replica")}'


TopicAction = CreateTopic | AddPartitions | AlterTopic | DeleteTopic | MoveReplicas
KafkaAction = TopicAction | AlterQuota | AlterBrokers | ElectLeaders


@dataclass(frozen=True, slots=True)
class StartNode:
    """Make the node's directory if there is none, and start it."""

    node: int

    def __str__(self) -> str:
        return f"start node {self.node}"


@dataclass(frozen=True, slots=True)
class RestartNode:
    """Stop the node in good order and start it with what is wanted now."""

    node: int
    reason: str

    def __str__(self) -> str:
        return f"restart node {self.node}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StopNode:
    """Stop a node in good order that is no longer wanted. What is on its disk stays."""

    node: int

    def __str__(self) -> str:
        return f"stop node {self.node}, which is no longer wanted and holds nothing"


NodeAction = StartNode | RestartNode | StopNode
ClusterAction = NodeAction | ElectLeaders
Action = KafkaAction | NodeAction
A_co = TypeVar("A_co", bound=Action, covariant=True)


@dataclass(frozen=True, slots=True)
class Word:
    """A condition that has no time yet."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan(Generic[A_co]):
    """What to do, in this order, and what to say about it; `rollout` while a roll is on."""

    actions: tuple[A_co, ...] = ()
    words: tuple[Word, ...] = field(default=())
    rollout: RolloutStatus | None = None

    @property
    def is_at_rest(self) -> bool:
        """Nothing to do, and nothing under way that would change by itself."""
        return not self.actions and not any(word.type == "Reconciling" for word in self.words)


KafkaPlan = Plan[KafkaAction]
ClusterPlan = Plan[ClusterAction]


def ready(message: str, reason: str = "Ready") -> tuple[Word, ...]:
    """All is as wanted."""
    return (Word("Ready", "True", reason, message),)


def reconciling(reason: str, message: str) -> tuple[Word, ...]:
    """It is being made so."""
    return (Word("Ready", "False", reason, message), Word("Reconciling", "True", reason, message))


def stalled(reason: str, message: str) -> tuple[Word, ...]:
    """It will not become so by itself: somebody has to decide something."""
    return (Word("Ready", "False", reason, message), Word("Stalled", "True", reason, message))


def unknown(reason: str, message: str) -> tuple[Word, ...]:
    """It cannot be seen."""
    return (Word("Ready", "Unknown", reason, message),)


def dated(words: Iterable[Word], before: Iterable[Condition], generation: int, now: datetime) -> tuple[Condition, ...]:
    """The conditions of the status: `words`, with the time of a change only where something changed."""
    old = {condition.type: condition for condition in before}
    return tuple(_dated(word, old.get(word.type), generation, now) for word in words)


def _dated(word: Word, old: Condition | None, generation: int, now: datetime) -> Condition:
    since = old.last_transition_time if old is not None and old.status == word.status else now
    return Condition(
        type=word.type,
        status=word.status,
        reason=word.reason,
        message=word.message[:MESSAGE_LENGTH_MAX],
        observed_generation=generation,
        last_transition_time=since,
    )
