"""Carries out what is planned for the nodes of a cluster, and says which nodes others may take away meanwhile."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.plan import (
    Action,
    AddVoter,
    AskedAction,
    ClusterAction,
    ClusterPlan,
    CordonNode,
    ElectLeaders,
    MoveReplicas,
    Plan,
    RemoveVoter,
    RestartNode,
    StopNode,
    Word,
    reconciling,
    stalled,
)
from kavka_operator.loop.interfaces import Platform, PlatformUnavailableError
from kavka_operator.loop.observer import Looker
from kavka_operator.loop.status_writer import StatusWriter
from kavka_operator.reconcile.quorum import CHANGING as QUORUM_CHANGING

DONE_MAX: Final = 100  # actions for a cluster that are announced with its next status
TAKING: Final = (RestartNode, StopNode, AddVoter, RemoveVoter)
"""Actions that count on what was seen of the other nodes."""


@dataclass(slots=True)
class NodeActions:
    """Performs actions where the nodes run, and asks Kafka for those that only Kafka can do."""

    platform: Platform
    looker: Looker
    writer: StatusWriter
    tell: Callable[[str], None]
    done: deque[Action] = field(default_factory=lambda: deque(maxlen=DONE_MAX))
    """What was done and is not announced yet."""

    def perform(self, cluster: KafkaCluster, plan: ClusterPlan, openings: frozenset[int]) -> ClusterPlan:
        """Carry out the actions of a plan; the plan, or why it cannot be carried out here.

        Before a node or a vote is taken away, nobody else may take one: who might just have done so is looked at again.
        `openings` are the nodes that others may take away where none is taken here.
        """
        is_taking = any(isinstance(action, TAKING) for action in plan.actions)
        try:
            has_closed = self.platform.allow(cluster, frozenset() if is_taking else openings)
            if is_taking and has_closed:
                return replace(plan, actions=(), rollout=cluster.status.roll)
            for action in plan.actions:
                if words := self._do(action):
                    return Plan(words=words, rollout=plan.rollout)
        except PlatformUnavailableError as error:
            return Plan(words=stalled("PlatformUnavailable", str(error)))
        if plan.rollout is not None and plan.rollout.blocked_by:
            self.writer.say_once(f"roll: {plan.rollout.blocked_by[0]}")
        return plan

    def close_budgets(self, cluster: KafkaCluster) -> None:
        """Let nobody take any node away; where that cannot be written, it is told already that something is wrong."""
        with suppress(PlatformUnavailableError):
            self.platform.allow(cluster, frozenset())

    def _do(self, action: ClusterAction) -> tuple[Word, ...]:
        """Carry out an action; the words for why it cannot be, where the rest of its plan waits for the next look."""
        if isinstance(action, AskedAction):
            return self._ask(action)
        if isinstance(action, StopNode) and (obstacle := self.looker.obstacle(action)) is not None:
            words = f"node {action.node} is not stopped yet: {obstacle}"
            self.writer.say_once(words)
            return reconciling("Shrinking", words)
        self.platform.perform(action)
        self.done.append(action)
        return ()

    def _ask(self, action: AskedAction) -> tuple[Word, ...]:
        """Ask Kafka for an action; the words for why it was refused. Nothing waits for leaders or cordons."""
        if (error := self.looker.perform(action)) is None:
            self.done.append(action)
            (self.writer.say_once if isinstance(action, CordonNode) else self.tell)(str(action))
            return ()
        self.writer.say_once(error)
        if isinstance(action, ElectLeaders | CordonNode):
            return ()
        return reconciling("Shrinking" if isinstance(action, MoveReplicas) else QUORUM_CHANGING, error)
