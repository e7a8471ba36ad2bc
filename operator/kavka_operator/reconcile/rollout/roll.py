"""The next step of a roll.

What is already under way comes first: nothing new is begun while a node is on its way down or up, or while it could
lead again and does not. Then the gates that a person has set (hold, approval, window, delay), then the check, then the
restart. The only memory is the `rollout` of the resource's status, so that whoever looks next can go on; one that was
written there by hand is none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.domain.name_lists import counted, named, some
from kavka_operator.domain.observed import SeenCluster, SeenNode, Survey, WantedNode
from kavka_operator.domain.plan import (
    ClusterAction,
    ClusterPlan,
    ElectLeaders,
    Plan,
    RestartNode,
    Word,
    reconciling,
    stalled,
)
from kavka_operator.reconcile.rollout import windows
from kavka_operator.reconcile.rollout.batches import next_batch
from kavka_operator.reconcile.rollout.diagnose import UNSEEN, Diagnosis, Standing, diagnose, to_restart
from kavka_operator.reconcile.rollout.plan import RollPlan, plan

APPROVE = "kavka.dev/approve-rollout"
HOLD_NODES = "kavka.dev/hold-nodes"
EVERY_NODE = "all"
"""A word in the annotation HOLD_NODES that holds every node, also one that comes later."""
PENDING = "RolloutPending"
BLOCKED_BY_MAX = 16


def names_in(text: str) -> list[str]:
    """The names in a text with commas or spaces between them, as in the annotation HOLD_NODES."""
    return text.replace(",", " ").split()


def is_on(cluster: KafkaCluster, nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode]) -> bool:
    """Whether a node is to be restarted, or a restart is not over yet."""
    stale = any(node.id in seen and to_restart(node, seen[node.id]) for node in nodes)
    return stale or cluster.status.roll is not None


def roll(
    cluster: KafkaCluster,
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    live: SeenCluster | None,
    survey: Survey | None,
    now: datetime,
) -> ClusterPlan | None:
    """The next step, or None where the roll is done. `survey` is None while no broker answers."""
    diagnoses = diagnose(nodes, seen, live, survey)
    if survey is None and not cluster.status.cluster_id:  # no broker has ever answered: there is nothing to lose
        diagnoses = [replace(diagnosis, loses="") for diagnosis in diagnoses]
    return _Roll(cluster, diagnoses, plan(nodes, diagnoses, survey), survey, now).step()


@dataclass(frozen=True, slots=True)
class _Roll:
    """The state of a roll at one look."""

    cluster: KafkaCluster
    diagnoses: Sequence[Diagnosis]
    plan: RollPlan
    survey: Survey | None
    now: datetime

    def step(self) -> ClusterPlan | None:
        if lost := self._those(Standing.LOST):
            return self._stop(lost)
        held = self._held()
        dead = [diagnosis for diagnosis in self.order if not diagnosis.is_alive]
        if dead and held is None:
            return self._restart(dead)
        if not self.plan.order and not (self._before and self._before.total):
            return None  # settings changed and changed back: no node was restarted; nodes that join were just started
        moving = self._those(Standing.STOPPING, Standing.RETURNING)
        if on_their_way := [f"{diagnosis.name} {diagnosis.words}" for diagnosis in moving if diagnosis.words != UNSEEN]:
            return self._wait("Rolling", on_their_way)
        if self.survey is None:
            emptied = [diagnosis.emptied for diagnosis in self._free() if diagnosis.loses and not diagnosis.is_alive]
            return self._leave("RolloutHeld", emptied) if emptied else self._wait("Rolling", ["no broker answers"])
        if partitions := self._without_preferred_leader(self.survey):
            names = some([partition.name for partition in self.survey.partitions if partition.key in partitions])
            return self._act([ElectLeaders(partitions)], f"{names} back to where they are to be led")
        if not self.plan.order:
            return None
        return held or self._queued() or self._pause() or self._next(self.survey)

    @property
    def asked_for(self) -> Sequence[Diagnosis]:
        """The nodes to restart, without those that have what the resource asks for, unless a person approved those."""
        is_approved = self.cluster.metadata.annotations.get(APPROVE) == self.plan.hash
        return [diagnosis for diagnosis in self.plan.order if is_approved or not diagnosis.is_as_asked]

    @property
    def order(self) -> Sequence[Diagnosis]:
        """The nodes that are to be restarted, are not held, and lose nothing by it."""
        return [diagnosis for diagnosis in self._free() if not diagnosis.emptied]

    def _free(self) -> list[Diagnosis]:
        """The nodes that are to be restarted and are not held."""
        held = self._names_held()
        return [diagnosis for diagnosis in self.asked_for if not {str(diagnosis.id), EVERY_NODE} & held]

    def _names_held(self) -> set[str]:
        return set(names_in(self.cluster.metadata.annotations.get(HOLD_NODES, "")))

    def _fault_of_hold(self) -> str:
        """The fault of the annotation that holds nodes: then all of them are held."""
        known = {str(diagnosis.id) for diagnosis in self.diagnoses}
        if strangers := sorted(self._names_held() - known - {EVERY_NODE}):
            names = ", ".join(sorted(known, key=int))
            words = f"which is no node; write ids of {names}, or {EVERY_NODE}"
            return f'the annotation {HOLD_NODES} names "{strangers[0]}", {words}'
        return ""

    def _held(self) -> ClusterPlan | None:
        """The plan where a person has set something in the way of any restart."""
        rollout = self.cluster.spec.rollout
        listed = named([diagnosis.id for diagnosis in self.asked_for or self.plan.order])
        if rollout.hold:
            return self._leave("RolloutHeld", [f"{listed} for spec.rollout.hold: false"])
        if fault := self._fault_of_hold():
            return self._leave("RolloutHeld", [fault])
        if self.plan.order and not self.asked_for:
            words = f"this version of the operator gives them other settings: {self.plan.order[0].words}"
            return self._leave("OperatorUpgraded", [f"{listed} for the annotation {APPROVE}={self.plan.hash}; {words}"])
        if emptied := [diagnosis.held_for for diagnosis in self._free()] if not self.order else []:
            return self._leave("RolloutHeld", emptied)
        if self.plan.order and not self.order:
            return self._leave("RolloutHeld", [f"{listed} for the end of the annotation {HOLD_NODES}"])
        approved = self.cluster.metadata.annotations.get(APPROVE)
        if rollout.approval == "Manual" and approved != self.plan.hash:
            return self._leave("RolloutWaits", [f"{listed} for the annotation {APPROVE}={self.plan.hash}"])
        if not windows.is_open(rollout.windows, self.now):
            return self._leave("RolloutWaits", [f"{listed} for a window: {windows.shown(rollout.windows)}"])
        return None

    def _queued(self) -> ClusterPlan | None:
        """The plan while other clusters are rolled first."""
        if waiting := [diagnosis.queued for diagnosis in self.order if diagnosis.queued]:
            return self._leave("RolloutWaits", [f"{named([found.id for found in self.order])} for {waiting[0]}"])
        return None

    def _pause(self) -> ClusterPlan | None:
        resume = self._resume_time()
        if resume is None or self.now >= resume:
            return None
        return self._wait("Rolling", [f"until {_clock(resume)} (spec.rollout.delaySeconds)"])

    def _next(self, survey: Survey) -> ClusterPlan:
        """The first node that may go down, with as many others as may go with it."""
        batch = next_batch(self.order, survey, self.cluster.spec.rollout.max_concurrent)
        return self._restart(batch.nodes) if batch.nodes else self._wait("Rolling", batch.obstacles)

    def _stop(self, lost: Sequence[Diagnosis]) -> ClusterPlan:
        words = "; ".join(f"{diagnosis.name} did not come back: {diagnosis.words}" for diagnosis in lost)
        kept = (
            f"; {named(sorted(diagnosis.id for diagnosis in self.plan.order))} keep their former settings"
            if self.plan.order
            else ""
        )
        advice = "; mend the settings and apply them again"
        return Plan((), stalled("RolloutStopped", words + kept + advice), self._status((words,)))

    def _restart(self, those: Sequence[Diagnosis]) -> ClusterPlan:
        actions = [RestartNode(diagnosis.id, diagnosis.words) for diagnosis in those]
        return self._act(actions, "; ".join(map(str, actions)), tuple(diagnosis.id for diagnosis in those))

    def _act(self, actions: Sequence[ClusterAction], doing: str, current: tuple[int, ...] = ()) -> ClusterPlan:
        status = self._status((), current)
        return Plan(tuple(actions), reconciling("Rolling", f"{_progress(status)}; {doing}"), status)

    def _wait(self, reason: str, what: Sequence[str]) -> ClusterPlan:
        """The plan while something that ends by itself is in the way."""
        status = self._status(tuple(what))
        return Plan((), reconciling(reason, _waiting(status, what)), status)

    def _leave(self, reason: str, what: Sequence[str]) -> ClusterPlan:
        """The plan while a person or a window has to let the roll go on; the cluster may well be ready meanwhile."""
        status = self._status(tuple(what))
        return Plan((), (Word(PENDING, "True", reason, _waiting(status, what)),), status)

    def _those(self, *standings: Standing) -> list[Diagnosis]:
        return [diagnosis for diagnosis in self.diagnoses if diagnosis.standing in standings]

    def _without_preferred_leader(self, survey: Survey) -> tuple[tuple[str, int], ...]:
        """The partitions whose preferred leader was restarted, is back, and does not lead yet."""
        back = {diagnosis.id for diagnosis in self._those(Standing.CURRENT)}
        return tuple(
            partition.key
            for partition in survey.partitions
            if partition.preferred in back
            and partition.preferred in partition.isr
            and partition.leader != partition.preferred
        )

    @property
    def _before(self) -> RolloutStatus | None:
        before = self.cluster.status.roll
        return before if before is not None and before.plan == self.plan.hash else None

    def _still_current(self) -> tuple[int, ...]:
        known = self._before.current if self._before is not None else ()
        return tuple(
            diagnosis.id
            for diagnosis in self.diagnoses
            if diagnosis.id in known and diagnosis.standing is not Standing.CURRENT
        )

    def _resume_time(self) -> datetime | None:
        """The end of the pause after the last node, counted from the look that found it back."""
        before, delay = self._before, self.cluster.spec.rollout.delay_seconds
        if before is None or not delay:
            return None
        return self.now + timedelta(seconds=delay) if before.current else before.resume_time

    def _status(self, blocked_by: tuple[str, ...], begun: tuple[int, ...] = ()) -> RolloutStatus:
        before, current = self._before, (*self._still_current(), *begun)
        waiting = {*current, *(diagnosis.id for diagnosis in self.plan.order)}
        total = max(before.total if before is not None else 0, len(waiting))
        same_wait = before is not None and before.blocked_by and before.current == current
        return RolloutStatus(
            plan=self.plan.hash,
            progress=f"{total - len(waiting)}/{total}",
            done=total - len(waiting),
            total=total,
            current=current,
            blocked_by=tuple(words[:1024] for words in blocked_by[:BLOCKED_BY_MAX]),
            blocked_since=(before.blocked_since if before is not None and same_wait else self.now)
            if blocked_by
            else None,
            at_risk=self.plan.at_risk,
            resume_time=None if begun or current else self._resume_time(),
        ).signed()


def is_pending(step: ClusterPlan) -> bool:
    """Whether the roll is left alone until a person or a window lets it go on."""
    return any(word.type == PENDING for word in step.words)


def _waiting(status: RolloutStatus, what: Sequence[str]) -> str:
    since = f" (since {_clock(status.blocked_since)})" if status.blocked_since else ""
    return f"{_progress(status)}; waits{since}: {some(what, 2, '; ')}"


def _progress(status: RolloutStatus) -> str:
    return f"{status.done} of {counted(status.total, 'node')} restarted"


def _clock(moment: datetime | None) -> str:
    return "" if moment is None else moment.strftime("%H:%M:%SZ")
