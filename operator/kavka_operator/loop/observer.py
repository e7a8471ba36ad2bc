"""A look at the running cluster, and what follows from it for topics, quotas and settings: everything that waits for
answers, so that it can be done beside the main loop (`background`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import Managed
from kavka_operator.api.quota import ClientQuota
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.observed import SeenCluster, SeenDisk, SeenNode, Survey
from kavka_operator.domain.plan import Action, AskedAction, StopNode
from kavka_operator.kafka import readiness, usage
from kavka_operator.kafka.admin import Admin, AdminError, BarredError, Connect
from kavka_operator.loop.converge import Outcome, converge
from kavka_operator.loop.observation import Observation, Usage, observe
from kavka_operator.loop.passwords import Passwords
from kavka_operator.loop.unexpected_errors import UnexpectedErrors, describe
from kavka_operator.reconcile.cluster import brokers_config
from kavka_operator.reconcile.drain import reasons_to_stay
from kavka_operator.reconcile.external import FORGET_CLUSTER

USAGE = "the usage of quotas"
DISKS_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Question:
    """The input of a look. `nodes` are the running nodes, with the addresses of their admin ports."""

    cluster: KafkaCluster
    resources: Sequence[Managed]
    bootstrap: str
    nodes: Mapping[int, str]
    brokers_expected: int
    is_forming: bool
    now: datetime
    claimed: Sequence[str] = ()  # topics of resources that cannot be read
    security: Security = OPEN

    @property
    def is_external(self) -> bool:
        """Whether others run the cluster."""
        return self.cluster.spec.external is not None

    @property
    def cluster_id(self) -> str | None:
        """The id that the cluster has to have; None where any is right."""
        known = self.cluster.status.cluster_id if self.is_external else None
        return None if known == self.cluster.metadata.annotations.get(FORGET_CLUSTER) else known

    def observation(self, usage: Usage) -> Observation:
        """The Observation that a pass begins with, with this usage of quotas."""
        found = observe(
            self.cluster, self.resources, self.now, brokers_expected=self.brokers_expected, claimed=self.claimed
        )
        return replace(found, usage=usage, is_forming=self.is_forming, cluster_id=self.cluster_id)


@dataclass(frozen=True, slots=True)
class LookResult:
    """The result of a look: what was seen and done.

    `error` is set where no broker answered, `barred` where a person has to do something before any is asked again,
    `refused` where brokers refused a setting, `fault` where our code failed.
    """

    outcome: Outcome | None = None
    survey: Survey | None = None
    obstacles: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    disks: Mapping[int, tuple[SeenDisk, ...]] = field(default_factory=dict)
    done: tuple[Action, ...] = ()
    error: str | None = None
    barred: BarredError | None = None
    refused: str | None = None
    fault: Exception | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether every topic and quota was seen, and none is on its way to another state."""
        if self.outcome is None:
            return False
        return not any(status.condition("Reconciling") for status in self.outcome.statuses.values())

    @property
    def seen(self) -> SeenCluster | None:
        return self.outcome.cluster if self.outcome is not None else None

    def told(self, nodes: Mapping[int, SeenNode]) -> dict[int, SeenNode]:
        """The nodes, with what each says itself: why it does not serve, and how full its disks are."""
        return {
            number: replace(node, obstacles=self.obstacles.get(number, ()), disks=self.disks.get(number, ()))
            for number, node in nodes.items()
        }


@dataclass(slots=True)
class Looker:
    """Keeps the connection from one look to the next, as long as the same brokers run and ask for the same.

    `connect` makes an admin client for bootstrap addresses; `unexpected_errors` says what went wrong with which
    resource; `passwords` are those of users.
    """

    connect: Connect
    unexpected_errors: UnexpectedErrors
    passwords: Passwords = field(default_factory=Passwords)
    _admin: Admin | None = None
    _access: tuple[str, Security] = ("", OPEN)
    _disks: Mapping[int, tuple[SeenDisk, ...]] = field(default_factory=dict)
    _disks_at: datetime | None = None

    def look(self, question: Question) -> LookResult:
        """Look at the cluster, do what follows, and look again. Where no broker runs there is nothing to look at."""
        if not question.bootstrap:
            return LookResult()
        obstacles = {number: found for number, at in question.nodes.items() if (found := readiness.obstacles(at))}
        try:
            if self._admin is None or self._access != (question.bootstrap, question.security):
                self.close()
                self._admin = self.connect(question.bootstrap, question.security)
                self._access = question.bootstrap, question.security
            return replace(self._look(self._admin, question), obstacles=obstacles)
        except BarredError as error:
            self.close()
            return LookResult(obstacles=obstacles, error=str(error), barred=error)
        except AdminError as error:
            self.close()
            return LookResult(obstacles=obstacles, error=str(error))
        except Exception as error:  # noqa: BLE001 - the nodes are looked after whatever is wrong with a look
            self.close()
            return LookResult(obstacles=obstacles, error=describe(error), fault=error)

    def perform(self, action: AskedAction) -> str | None:
        """Carry out what the nodes' plan asks of Kafka; the error in words, or None."""
        try:
            assert self._admin is not None, "what is asked of Kafka follows a look"
            self._admin.perform(action)
        except AdminError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - the next look tells how it stands, and asks again
            return describe(error)
        return None

    def obstacle(self, action: StopNode) -> str | None:
        """The reason why the node may not be stopped at this moment, by a survey of its own; None if it may.

        The look that decided on it may be seconds old, and a topic may have been created since.
        """
        try:
            assert self._admin is not None, "a node is stopped after a look"
            return "; ".join(reasons_to_stay(action.node, self._admin.survey())) or None
        except AdminError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - the next look tells how it stands, and asks again
            return describe(error)

    def close(self) -> None:
        """Close the connection."""
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def _look(self, admin: Admin, question: Question) -> LookResult:
        outcome = converge(question.observation(self._usage(question)), admin, self.unexpected_errors, self.passwords)
        try:
            done, refused = _configure(admin, question.cluster, outcome)
            survey = _survey_as_told(admin) if question.is_external else admin.survey()
            disks = self._filled(admin, outcome.cluster, question)
            return LookResult(outcome, survey, disks=disks, done=(*outcome.done, *done), refused=refused)
        except AdminError:
            raise
        except Exception as error:  # noqa: BLE001 - what became of topics and quotas is told all the same
            return LookResult(outcome, done=tuple(outcome.done), fault=error)

    def _filled(self, admin: Admin, cluster: SeenCluster, question: Question) -> Mapping[int, tuple[SeenDisk, ...]]:
        """The disks of the brokers, asked for once in a while; those of an external cluster are not our business."""
        if question.is_external:
            return {}
        is_due = self._disks_at is None or (question.now - self._disks_at).total_seconds() >= DISKS_SECONDS
        if is_due or not cluster.brokers.keys() <= self._disks.keys():
            self._disks, self._disks_at = admin.disks(sorted(cluster.brokers)), question.now
        return self._disks

    def _usage(self, question: Question) -> Usage:
        """Usage of quotas; empty where a metrics page cannot be read, and parts of budgets then stay as they are."""
        if not any(isinstance(resource, ClientQuota) for resource in question.resources):
            return {}
        try:
            pages = {number: usage.fetch(address) for number, address in question.nodes.items()}
            found = usage.usage_by_entity({number: page for number, page in pages.items() if page is not None})
        except Exception as error:  # noqa: BLE001 - see above
            self.unexpected_errors.note(USAGE, error, question.now)
            return {}
        self.unexpected_errors.clear(USAGE)
        return found


def _survey_as_told(admin: Admin) -> Survey | None:
    """The survey of an external cluster; None where it does not tell its controllers to us."""
    try:
        return admin.survey()
    except AdminError as error:
        if error.retriable:
            raise
        return None


def _configure(admin: Admin, cluster: KafkaCluster, outcome: Outcome) -> tuple[tuple[Action, ...], str | None]:
    """Alter the dynamic settings of brokers as wanted: the actions done, and why brokers refused, if they did."""
    actions = brokers_config(cluster, outcome.cluster).actions
    try:
        for action in actions:
            admin.perform(action)
    except AdminError as error:
        if error.retriable:
            raise
        return (), str(error)
    if actions:
        outcome.cluster = replace(outcome.cluster, config=admin.look(()).config)
    return actions, None
