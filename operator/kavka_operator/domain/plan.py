"""Plans: small values that say what to do to a cluster, and the words for the status meanwhile.

An action is a sentence with a subject; `kafka/client.py` and `platform` carry it out. A word is a condition without a
time: `dated` puts the words beside the conditions that were there and moves `lastTransitionTime` only when a status
changes, so that a converged resource is not written again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, TypeVar

from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.api.kinds import Key
from kavka_operator.api.quantity import spell
from kavka_operator.api.quota import AnyEntity
from kavka_operator.api.resource import MESSAGE_LENGTH_MAX, Condition
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.name_lists import counted, some
from kavka_operator.domain.quota_entities import entity_text, limit_text


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic to create; a number that is None is left to the cluster."""

    name: str
    partitions: int | None
    replication_factor: int | None
    config: Mapping[str, str]

    def __str__(self) -> str:
        return f'create topic "{self.name}"'


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """A topic to grow; `total` partitions are there afterwards."""

    name: str
    total: int

    def __str__(self) -> str:
        return f'add partitions to topic "{self.name}", to have {self.total}'


@dataclass(frozen=True, slots=True)
class AlterTopic:
    """Settings of a topic to set, and settings to reset to their default."""

    name: str
    set: Mapping[str, str]
    reset: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{key}={value}" for key, value in self.set.items()] + [f"{key} to its default" for key in self.reset]
        return f'set {", ".join(words)} on topic "{self.name}"'


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """A topic to delete, by id, so that another topic of the same name is safe."""

    name: str
    topic_id: str

    def __str__(self) -> str:
        return f'delete topic "{self.name}"'


@dataclass(frozen=True, slots=True)
class AlterQuota:
    """Quota values to set, by Kafka's keys, and keys to remove."""

    entity: AnyEntity
    set: Mapping[str, float]
    remove: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{key}={limit_text(key, value)}" for key, value in self.set.items()]
        words += [f"no {key}" for key in self.remove]
        return f"set {', '.join(words)} for {entity_text(self.entity)}"


@dataclass(frozen=True, slots=True)
class KeepSecret:
    """A user's Secret to write: with a new password, or what is beside the password as it is wanted now.

    `why` says it, and is empty where only the rest changes. What stands in it is worked out when it is written.
    """

    user: Key
    place: str
    why: str = ""

    def __str__(self) -> str:
        what = f"make a password ({self.why}) in" if self.why else "write again what is beside the password in"
        return f"{what} {self.place}"


@dataclass(frozen=True, slots=True)
class DropSecret:
    """A user's Secret to remove, where nobody else does it."""

    user: Key
    place: str

    def __str__(self) -> str:
        return f"remove {self.place}"


@dataclass(frozen=True, slots=True)
class SetCredential:
    """A password to set for a user, hashed `iterations` times. It never stands in words."""

    user: str
    mechanism: str
    iterations: int
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f'set the password of user "{self.user}" for {self.mechanism}'


@dataclass(frozen=True, slots=True)
class DropCredential:
    """A password of a user to take away."""

    user: str
    mechanism: str

    def __str__(self) -> str:
        return f'take the password of user "{self.user}" for {self.mechanism} away'


@dataclass(frozen=True, slots=True)
class CreateAcls:
    """Access rules to make for a principal."""

    principal: str
    rules: tuple[Binding, ...]

    def __str__(self) -> str:
        return f"make {_rules(self.rules)} of {self.principal}"


@dataclass(frozen=True, slots=True)
class DeleteAcls:
    """Access rules of a principal to take away."""

    principal: str
    rules: tuple[Binding, ...]

    def __str__(self) -> str:
        return f"take away {_rules(self.rules)} of {self.principal}"


def _rules(rules: tuple[Binding, ...]) -> str:
    return f"{counted(len(rules), 'access rule')} ({some([str(rule) for rule in rules], comma='; ')})"


@dataclass(frozen=True, slots=True)
class AlterBrokers:
    """Dynamic settings of all brokers to set, and settings to reset to their default."""

    set: Mapping[str, str]
    reset: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [f"{key}={value}" for key, value in self.set.items()] + [f"{key} to its default" for key in self.reset]
        return f"set {', '.join(words)} on all brokers, without a restart"


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Partitions whose preferred replica is to lead, where it is in sync."""

    partitions: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        names = [f"{topic}-{index}" for topic, index in self.partitions]
        return f"elect the preferred leaders of {some(names)}"


@dataclass(frozen=True, slots=True)
class MoveReplicas:
    """A reassignment: the replicas that partitions of a topic shall have, the preferred leader first.

    `words` say it where it is not about their number.
    """

    name: str
    replication_factor: int
    replicas: Mapping[int, tuple[int, ...]]
    words: str = ""

    def __str__(self) -> str:
        return self.words or f'give each partition of topic "{self.name}" {counted(self.replication_factor, "replica")}'


@dataclass(frozen=True, slots=True)
class LimitReplicas:
    """The lists of a topic's replicas whose copying is throttled, by Kafka's settings; without any, they go."""

    name: str
    lists: Mapping[str, str]

    def __str__(self) -> str:
        if not self.lists:
            return f'list no replicas of topic "{self.name}" as throttled'
        return f'list the replicas of topic "{self.name}" that are moved as throttled'


@dataclass(frozen=True, slots=True)
class LimitBrokers:
    """The bytes a second that brokers may send, and receive, for throttled replicas; None takes the rate away."""

    brokers: tuple[int, ...]
    rate: int | None

    def __str__(self) -> str:
        names = ", ".join(map(str, self.brokers))
        if self.rate is None:
            return f"take the rate of throttled replicas away from brokers {names}"
        return f"throttle the replicas that are moved to {spell(self.rate)} a second on brokers {names}"


@dataclass(frozen=True, slots=True)
class CordonNode:
    """A broker that is to take no new replicas, as it goes, or new ones again."""

    node: int
    is_on: bool

    def __str__(self) -> str:
        return (
            f"give node {self.node} no new replicas" if self.is_on else f"let node {self.node} take new replicas again"
        )


@dataclass(frozen=True, slots=True)
class AddVoter:
    """A controller that observes and is to vote, with one directory (KIP-853)."""

    node: int
    directory_id: str
    host: str
    port: int
    listener: str = "CONTROLLER"

    def __str__(self) -> str:
        return f"give controller {self.node} a vote, with directory {self.directory_id}"


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    """A controller that is to vote no more with one of its directories."""

    node: int
    directory_id: str

    def __str__(self) -> str:
        return f"take the vote of controller {self.node} away, with directory {self.directory_id}"


VoterAction = AddVoter | RemoveVoter
TopicAction = CreateTopic | AddPartitions | AlterTopic | DeleteTopic | LimitReplicas | MoveReplicas
SecretAction = KeepSecret | DropSecret
UserAction = SetCredential | DropCredential | CreateAcls | DeleteAcls
BrokerAction = AlterBrokers | LimitBrokers | CordonNode | ElectLeaders
KafkaAction = TopicAction | AlterQuota | UserAction | BrokerAction | VoterAction


@dataclass(frozen=True, slots=True)
class StartNode:
    """A node to start; its directories are formatted first if they are new."""

    node: int

    def __str__(self) -> str:
        return f"start node {self.node}"


@dataclass(frozen=True, slots=True)
class RestartNode:
    """A node to stop in good order and start with the settings that are wanted now."""

    node: int
    reason: str

    def __str__(self) -> str:
        return f"restart node {self.node}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StopNode:
    """A node to stop because the resource no longer wants it. Its disk stays as it is."""

    node: int

    def __str__(self) -> str:
        return f"stop node {self.node}, which is no longer wanted and holds nothing"


@dataclass(frozen=True, slots=True)
class GrowVolume:
    """A volume of a node to make larger, while the node runs."""

    node: int
    volume: str
    size: int

    def __str__(self) -> str:
        return f'grow volume "{self.volume}" of node {self.node} to {spell(self.size)}'


@dataclass(frozen=True, slots=True)
class ResizeNode:
    """A node to give more or less processor and memory, while it runs."""

    node: int
    reason: str

    def __str__(self) -> str:
        return f"resize node {self.node} without a restart: {self.reason}"


@dataclass(frozen=True, slots=True)
class LiftGate:
    """A node whose pod may be scheduled, and begins with empty volumes. `lost` are partitions that nobody has now."""

    node: int
    lost: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = f"; the records of {some(self.lost)} are gone with its former pod" if self.lost else ""
        return f"let node {self.node} begin with empty volumes{words}"


ManagedAction = KafkaAction | SecretAction
NodeAction = StartNode | RestartNode | StopNode | GrowVolume | ResizeNode | LiftGate
AskedAction = ElectLeaders | MoveReplicas | CordonNode | VoterAction
"""What the plan of the nodes asks of Kafka."""
ClusterAction = NodeAction | AskedAction
Action = ManagedAction | NodeAction
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
    """Actions in their order and words for the status; `rollout` while a roll is on."""

    actions: tuple[A_co, ...] = ()
    words: tuple[Word, ...] = field(default=())
    rollout: RolloutStatus | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether there is nothing to do, and nothing under way that changes by itself."""
        return not self.actions and not any(word.type == "Reconciling" for word in self.words)


KafkaPlan = Plan[ManagedAction]
ClusterPlan = Plan[ClusterAction]


def ready(message: str, reason: str = "Ready") -> tuple[Word, ...]:
    """Words for a resource that is as wanted."""
    return (Word("Ready", "True", reason, message),)


def reconciling(reason: str, message: str) -> tuple[Word, ...]:
    """Words for a resource that is on its way to what is wanted."""
    return (Word("Ready", "False", reason, message), Word("Reconciling", "True", reason, message))


def stalled(reason: str, message: str) -> tuple[Word, ...]:
    """Words for a resource that waits for a person's decision."""
    return (Word("Ready", "False", reason, message), Word("Stalled", "True", reason, message))


def unknown(reason: str, message: str) -> tuple[Word, ...]:
    """Words for a resource whose state cannot be seen."""
    return (Word("Ready", "Unknown", reason, message),)


def dated(words: Iterable[Word], before: Iterable[Condition], generation: int, now: datetime) -> tuple[Condition, ...]:
    """Conditions for the status, of `words`; a condition keeps its time where its status is the same as before."""
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
