"""The loop of one cluster: look when a look is due, and carry out what follows. The same on every platform.

A look begins when a resource has changed, when a node came or went (`hurry`), every `DRIFT_SECONDS` in any case, and
soon while nodes are restarted (`requeue`). Looking waits for answers, so it is a step of its own (`look`) that may be
done beside other work; what was decided from it is dropped where a node has come or gone meanwhile. Nothing that a
resource says and no fault in a look ends the loop: a fault is told once with its traceback, shown in the status, and
what failed is tried again after a while (`unexpected_errors`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import KafkaClusterStatus
from kavka_operator.api.kinds import AnyResource, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import SeenNode
from kavka_operator.domain.plan import (
    AlterBrokers,
    ClusterPlan,
    Plan,
    Word,
    stalled,
)
from kavka_operator.kafka.admin import Connect
from kavka_operator.loop.deletion import has_cluster
from kavka_operator.loop.interfaces import Platform, Resources
from kavka_operator.loop.managed_resources import ManagedResources
from kavka_operator.loop.node_actions import NodeActions
from kavka_operator.loop.observer import Looker, LookResult, Question
from kavka_operator.loop.passwords import NoStore, Passwords, SecretStore
from kavka_operator.loop.requeue import DRIFT_SECONDS, DRIFT_SECONDS_MAX, RETRY_SECONDS, Haste, rest_seconds
from kavka_operator.loop.status_writer import Announce, StatusWriter, to_nobody
from kavka_operator.loop.unexpected_errors import UnexpectedErrors, describe
from kavka_operator.loop.unreachable import Unreachability
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile import cordoning, external, quotas
from kavka_operator.reconcile.grants import claims
from kavka_operator.reconcile.rollout.disruption import open_ones, why_not
from kavka_operator.reconcile.status import PassResult, available, cluster_status, external_status, with_words
from kavka_operator.reconcile.volumes import empty_volumes

Result = TypeVar("Result")

FOREIGN_ROLL = "status.rollout is not as this operator has written it, and is not gone on with"
TURN, LOOK = "a turn of the loop", "a look at the cluster"


class HopelessError(Exception):
    """The cluster cannot be run as it is wanted, and nothing of it runs; the message says why and what to do."""


@dataclass(slots=True)
class ClusterLoop:
    """The wanted and the seen state of one cluster, and a step from the one to the other.

    `connect` makes an admin client for bootstrap addresses; `tell` takes words for the log; `clock` counts seconds.
    `announce` is told once what has become of a resource, by its key and uid. `secrets` has the passwords of users.
    """

    resources: Resources
    platform: Platform
    connect: Connect
    tell: Callable[[str], None]
    on_ready: Callable[[], None]
    clock: Callable[[], float]
    now: Callable[[], datetime]
    announce: Announce = to_nobody
    secrets: SecretStore = field(default_factory=NoStore)
    unexpected_errors: UnexpectedErrors = field(init=False)
    _looker: Looker = field(init=False)
    _unreachability: Unreachability = field(init=False)
    writer: StatusWriter = field(init=False)
    _managed: ManagedResources = field(init=False)
    _actions: NodeActions = field(init=False)
    _haste: Haste = field(default_factory=Haste)
    _cluster: KafkaCluster | None = None  # the newest that can be understood
    view: View = field(default_factory=View)  # the nodes as they were last seen
    _began: float = 0.0
    _took: float = 0.0  # how long the last look took
    _next_look_at: float = 0.0
    _stamp: object = None
    _is_ready: bool = False

    def __post_init__(self) -> None:
        self.unexpected_errors = UnexpectedErrors(self.tell)
        self._looker = Looker(self.connect, self.unexpected_errors, Passwords(self.secrets))
        self._unreachability = Unreachability(self.clock)
        self.writer = StatusWriter(self.resources, self.tell, self.announce, self.clock, self.now)
        self._managed = ManagedResources(self.resources, self.writer, self.tell, self.now)
        self._actions = NodeActions(self.platform, self._looker, self.writer, self.tell)

    @property
    def seconds_left(self) -> float:
        """The seconds until the next look is due, if nothing changes before."""
        return max(0.0, self._next_look_at - self.clock())

    def hurry(self) -> None:
        """Let the next look be due at once."""
        self._next_look_at = 0.0

    def due(self) -> Question | None:
        """The question to ask the cluster now; None while no look is due. Raises HopelessError."""
        return self._safely(self._due)

    def look(self, question: Question) -> LookResult:
        """Look at the cluster, and bring its topics, quotas and users to what is wanted; may take seconds."""
        return self._looker.look(question)

    def follow(self, result: LookResult) -> None:
        """Write what a look has found, and bring the nodes one step on. Raises HopelessError."""
        self._safely(lambda: self._follow(result))

    def show(self, words: tuple[Word, ...]) -> None:
        """Write the words as the condition of the KafkaCluster; the rest of its status stays."""
        for cluster in self.resources.read()[0]:
            if isinstance(cluster, KafkaCluster):
                self.writer.write(cluster, with_words(cluster, words, self.now()))

    def close(self) -> None:
        """Close the connections."""
        self._looker.close()

    def _safely(self, work: Callable[[], Result]) -> Result | None:
        """Do a part of a turn; None where it failed. A fault is told and noted; only HopelessError is raised."""
        try:
            return work()
        except HopelessError:
            raise
        except Exception as error:  # noqa: BLE001 - the brokers go on
            words = self.unexpected_errors.note(TURN, error, self.now(), self._stamp)
            self._next_look_at = min(self._next_look_at, self.clock() + self.unexpected_errors.pause_seconds(TURN))
            with suppress(Exception):  # storing the resources may be what has failed
                self.show(words)
        return None

    def _due(self) -> Question | None:
        stamp = self.resources.stamp()
        # A change that is half written would cost a second look.
        is_changed = stamp != self._stamp and not self.resources.is_being_changed
        is_due = is_changed or self.clock() >= self._next_look_at
        if not is_due:
            return None
        if self.unexpected_errors.waiting(TURN, self.now(), stamp):
            self._next_look_at = self.clock() + self.unexpected_errors.seconds_left(TURN, self.now())
            return None
        self._stamp = stamp
        self._next_look_at = self.clock() + DRIFT_SECONDS_MAX  # `follow` says when to look again
        return self._question()

    def _question(self) -> Question | None:
        resources, unreadable = self.resources.read()
        if not has_cluster(resources, unreadable):
            self._cluster = None
            self.writer.note_unreadable(unreadable)
            self._managed.leave_alone(resources)
            return None
        cluster = self._newest_cluster(resources, unreadable)
        bootstrap = self._bootstrap(cluster)  # nodes first: holding many resources takes a while
        return Question(
            cluster=cluster,
            resources=self._managed.held(resources),
            bootstrap=bootstrap,
            nodes=self.view.metrics,
            brokers_expected=self.view.brokers_expected,
            is_forming=not self._is_ready and cluster.spec.external is None,
            now=self.now(),
            claimed=claims(cluster, unreadable),
            security=self.view.security,
        )

    def _bootstrap(self, cluster: KafkaCluster) -> str:
        """Look at the nodes; the addresses of the brokers to ask.

        Where the nodes cannot be looked at, nobody may take one away, and those are asked that were known before:
        topics, quotas and users are looked after all the same. `_follow` tells what is wrong.
        """
        self._began = self.clock()
        try:
            self.view, self._began = self.platform.look(cluster), self.clock()
            return self.view.bootstrap
        except Exception as error:  # noqa: BLE001 - told by `_follow`, which looks again
            self.writer.say_once(f"the nodes cannot be looked at: {describe(error)}")
            self._actions.close_budgets(cluster)
        is_open = cluster.spec.external is None and not cluster.spec.is_secured
        return self.view.bootstrap or (is_open and cluster.status.bootstrap_servers) or ""

    def _follow(self, result: LookResult) -> None:
        self._took = self.clock() - self._began
        self._note(result)
        resources, unreadable = self.resources.read()
        if not has_cluster(resources, unreadable):
            self.hurry()  # the cluster was deleted since the look began: nothing more is done for it
            return
        cluster = self._newest_cluster(resources, unreadable)
        try:
            view = self.platform.look(cluster)
        except Exception as error:  # noqa: BLE001 - it is told, and tried again
            self.writer.note_unreadable(unreadable)
            self._go_blind(cluster, resources, result, error)
            return
        if view.stamp != self.view.stamp:
            self.hurry()  # a node has come or gone since the look began: look again before acting
            return
        self.writer.note_unreadable(unreadable)
        self._step(cluster, resources, unreadable, view, result)

    def _go_blind(
        self, cluster: KafkaCluster, resources: Sequence[AnyResource], result: LookResult, error: Exception
    ) -> None:
        """Say that the nodes cannot be looked at. Nothing is done to them, and nobody may take one away."""
        self._actions.close_budgets(cluster)
        self._doubt(cluster, resources, self.view, result)
        words = self.unexpected_errors.note(TURN, error, self.now(), self._stamp)
        self._next_look_at = min(self._next_look_at, self.clock() + self.unexpected_errors.pause_seconds(TURN))
        words = (*words, available(words, result.seen, result.survey))
        if any(isinstance(resource, KafkaCluster) for resource in resources):
            self.writer.set_status(cluster, with_words(cluster, words, self.now()))

    def _newest_cluster(self, resources: Sequence[AnyResource], unreadable: Sequence[Unreadable]) -> KafkaCluster:
        """The KafkaCluster as it is wanted now, or as it could last be understood. Raises HopelessError."""
        self._cluster = next((resource for resource in resources if isinstance(resource, KafkaCluster)), self._cluster)
        if self._cluster is None:
            self.writer.note_unreadable(unreadable)
            raise HopelessError("the KafkaCluster cannot be understood; mend it, or apply it again")
        return self._cluster

    def _step(
        self,
        cluster: KafkaCluster,
        resources: Sequence[AnyResource],
        unreadable: Sequence[Unreadable],
        view: View,
        result: LookResult,
    ) -> None:
        """Bring the nodes one step on, and say how the cluster stands."""
        self._doubt(cluster, resources, view, result)
        if view.refusal is not None:
            self._refuse(cluster, view.refusal, view, result)
            return
        limited = quotas.declared(resources)
        if cluster.spec.external is None:
            plan, status = self._steer(cluster, limited, view, result)
        else:
            plan, status = self._regard(cluster, resources, view, result)
        if not any(unread.key == key_of(cluster) for unread in unreadable):
            self.writer.set_status(cluster, status, tuple(self._actions.done))
        self._actions.done.clear()
        self.unexpected_errors.clear(TURN)
        try:
            self._note_readiness(cluster, status, plan)
        finally:
            self._next_look_at = min(self._next_look_at, self.clock() + self._pause(cluster, result, plan, limited))

    def _steer(
        self, cluster: KafkaCluster, limited: list[ClientQuota], view: View, result: LookResult
    ) -> tuple[ClusterPlan, KafkaClusterStatus]:
        """Bring the nodes one step on; what is planned, and how the cluster stands then."""
        now, seen_nodes = self.now(), result.told(view.seen)
        if cluster.status.rollout is not None and cluster.status.roll is None:
            self.writer.say_once(FOREIGN_ROLL)
        plan = clusters.reconcile(cluster, view.wanted, seen_nodes, result.seen, result.survey, now, view.volumes)
        plan = self._told(
            self._actions.perform(cluster, plan, self._openings(cluster, view, seen_nodes, result)), result
        )
        plan = self._unreachability.reasoned(plan, result)
        after = self.platform.look(cluster)
        done = PassResult(
            plan,
            now,
            result.seen,
            result.survey,
            unmanaged=quotas.unmanaged(result.seen.quotas, limited) if result.seen else (),
            empty=empty_volumes(cluster, view.wanted, view.volumes),
            cordoned=cordoning.marks(cluster.status.nodes, after.wanted, after.leaving, self._actions.done),
        )
        return plan, cluster_status(cluster, replace(after, seen=result.told(after.seen)), done)

    def _regard(
        self, cluster: KafkaCluster, resources: Sequence[AnyResource], view: View, result: LookResult
    ) -> tuple[ClusterPlan, KafkaClusterStatus]:
        """The state of an external cluster."""
        barred = (result.barred.reason, str(result.barred)) if result.barred is not None else None
        plan = external.reconcile(result.seen, result.survey, view.lacking, barred, result.error)
        plan = self._told(plan, result)
        limited = quotas.declared(resources)
        unmanaged = quotas.unmanaged(result.seen.quotas, limited) if result.seen else ()
        return plan, external_status(cluster, result.seen, result.survey, plan, self.now(), unmanaged)

    def _doubt(self, cluster: KafkaCluster, resources: Sequence[AnyResource], view: View, result: LookResult) -> None:
        """Say of topics and quotas that nothing is known of them, where their cluster may not be asked or is silent."""
        if words := self._unreachability.words(cluster, result, may_ask=view.lacking is None and result.barred is None):
            self._managed.doubt(cluster, resources, words)

    def _told(self, plan: ClusterPlan, result: LookResult) -> ClusterPlan:
        """The plan with the words for what went wrong in the look, if anything did."""
        if result.fault is not None:
            return Plan(words=self.unexpected_errors.note(LOOK, result.fault, self.now()))
        self.unexpected_errors.clear(LOOK)
        if result.refused is not None and plan.is_at_rest:
            return Plan(words=stalled("Rejected", result.refused))
        return plan

    def _pause(
        self, cluster: KafkaCluster, result: LookResult, plan: ClusterPlan, limited: Sequence[ClientQuota]
    ) -> float:
        """The seconds until the next look. An external cluster that cannot be asked is not asked again at once."""
        if result.fault is not None:
            return self.unexpected_errors.pause_seconds(LOOK)
        if cluster.spec.external is not None and result.seen is None:
            return DRIFT_SECONDS
        is_rolling = plan.rollout is not None and not plan.is_at_rest
        if is_rolling or plan.actions or not (self._is_ready or plan.is_at_rest):
            return self._haste.seconds(plan)
        at_rest = rest_seconds(self._took, limited)
        return at_rest if result.is_at_rest and plan.is_at_rest else RETRY_SECONDS

    def _openings(
        self, cluster: KafkaCluster, view: View, seen: Mapping[int, SeenNode], result: LookResult
    ) -> frozenset[int]:
        """The nodes that others may take away, where nothing is done to any."""
        nodes, most = [*view.wanted, *view.leaving], cluster.spec.rollout.max_concurrent
        return open_ones(why_not(nodes, seen, result.seen, result.survey, most=most, asked=view.asked))

    def _note(self, result: LookResult) -> None:
        """Tell and write what a look has done about topics, quotas and settings."""
        if result.error is not None and self._is_ready:
            self.writer.say_once(result.error)
        for action in result.done:
            self.tell(str(action))
        self._actions.done += [action for action in result.done if isinstance(action, AlterBrokers)]
        if result.outcome is None:
            return
        self._managed.note(result.outcome)
        if result.outcome.released:
            if not self._managed.release(result.outcome.released):
                self._next_look_at = min(self._next_look_at, self.clock() + RETRY_SECONDS)
            self._stamp = self.resources.stamp()

    def _refuse(self, cluster: KafkaCluster, problem: str, view: View, result: LookResult) -> None:
        """Leave a cluster as it runs that cannot be run as it is wanted. Raises HopelessError if nothing of it runs."""
        plan: ClusterPlan = Plan(words=stalled("Unsupported", problem), rollout=cluster.status.roll)
        done = PassResult(plan, self.now(), result.seen, result.survey)
        status = cluster_status(cluster, replace(view, seen=result.told(view.seen)), done)
        self.writer.set_status(cluster, status)
        self._next_look_at = min(self._next_look_at, self.clock() + DRIFT_SECONDS)
        if all(node.state == "Stopped" for node in view.seen.values()):
            raise HopelessError(problem)
        self._actions.close_budgets(cluster)

    def _note_readiness(self, cluster: KafkaCluster, status: KafkaClusterStatus, plan: ClusterPlan) -> None:
        """Say what keeps the cluster from being ready, or that it is. Raises HopelessError if no node runs."""
        stalled_words = [word.message for word in plan.words if word.type == "Stalled"]
        if stalled_words and not self._is_ready:
            has_nodes = cluster.spec.external is None
            if has_nodes and all(node.state in {"Failed", "Stopped"} for node in status.nodes):
                raise HopelessError(stalled_words[0])
            self.writer.say_once(stalled_words[0])
        condition = status.condition("Ready")
        if not self._is_ready and condition is not None and condition.status == "True":
            self._is_ready = True
            self.on_ready()
