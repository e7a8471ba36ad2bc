"""How each node stands to what is wanted of it.

Running is not enough: a broker that was restarted is back when it is a member of the cluster and in the in-sync
replicas of every partition that it holds, a controller when it has all that the active controller has. Only then may
the next node go. A partition without a leader takes nobody in: it counts only where it waits for this very node.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from kavka_operator.domain.name_lists import some
from kavka_operator.domain.observed import SeenCluster, SeenNode, SeenQuorum, Survey, WantedNode
from kavka_operator.reconcile.empty_volumes import only_records
from kavka_operator.reconcile.volumes import FORGET, UNTOLD

BROKER, CONTROLLER = "broker", "controller"
UNSEEN = "cannot be seen"


class Standing(Enum):
    """The state of a node, as far as a roll is concerned."""

    CURRENT = auto()  # as wanted, and back in all its partitions and the quorum
    RETURNING = auto()  # as wanted, and on its way
    LOST = auto()  # as wanted, and given up
    STALE = auto()  # serves, with other settings than wanted
    UNREADY = auto()  # does not serve, and has other settings than wanted: nothing is lost by restarting it
    STOPPING = auto()  # on its way down


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One node. `words` say what is missing, or which settings differ."""

    node: WantedNode
    standing: Standing
    words: str = ""
    is_alive: bool = True  # there is a process
    is_as_asked: bool = False  # the operator's version alone gives it other settings
    going: tuple[str, ...] = ()  # volumes that it would come back without
    queued: str = ""  # clusters that are rolled first
    loses: str = ""  # why others lack records that end with its pod, and what to do

    @property
    def emptied(self) -> str:
        """Words for what a restart would take from the node; empty where it takes nothing that others lack."""
        if not self.going:
            return f"{self.name} would come back empty{self.loses}" if self.loses else ""
        are = "is" if len(self.going) == 1 else "are"
        return f"{self.name} would come back empty: {some(self.going)} {are} marked for deletion"

    @property
    def held_for(self) -> str:
        """Words for why the node is not restarted before a person has acted, and for what to do."""
        return f"{self.emptied}; delete its pod when that may be" if self.going else self.emptied

    @property
    def id(self) -> int:
        return self.node.id

    @property
    def name(self) -> str:
        return f"broker {self.id}" if BROKER in self.node.roles else f"controller {self.id}"


def diagnose(
    nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode], cluster: SeenCluster | None, survey: Survey | None
) -> list[Diagnosis]:
    """A diagnosis of every node that is wanted and was started. `survey` is None while no broker answers."""
    found = [_diagnose(node, seen[node.id], cluster, survey) for node in nodes if node.id in seen]
    return [replace(diagnosis, loses=_loses(seen[diagnosis.id], survey)) for diagnosis in found]


def _loses(seen: SeenNode, survey: Survey | None) -> str:
    """Words for records that end with the pod of a node and that others lack; empty where there are none."""
    if not seen.life or seen.is_gated or seen.is_given_up or not seen.has_begun:
        return ""
    remedy = f"to give up what it holds, set the annotation {FORGET}={seen.life}"
    if survey is None or survey.doubt:
        return "" if seen.is_alive else f": its volumes end with its pod, and {UNTOLD}; {remedy}"
    # A serving node waits for other replicas by the check of its batch; where none can come, a person decides.
    found = [
        partition.name
        for partition in only_records(seen.id, survey)
        if not seen.is_alive or partition.leader is None or len(partition.replicas) == 1
    ]
    words = f": its volumes end with its pod, and no other replica of {some(found)} has all records; {remedy}"
    return words if found else ""


def _diagnose(node: WantedNode, seen: SeenNode, cluster: SeenCluster | None, survey: Survey | None) -> Diagnosis:
    missing = "; ".join(_missing(node, seen, cluster, survey))
    if seen.state == "Stopping":
        return Diagnosis(node, Standing.STOPPING, "is stopping")
    if to_restart(node, seen):
        serves = seen.state == "Running" and _has_joined(node, cluster)
        standing = Standing.STALE if serves else Standing.UNREADY
        words, going, queued = have_changed(seen.changed), seen.going, seen.queued
        return Diagnosis(node, standing, words, seen.is_alive, seen.is_as_asked, going, queued)
    if seen.state == "Failed":
        return Diagnosis(node, Standing.LOST, seen.message or "does not run", going=seen.going)
    return Diagnosis(node, Standing.RETURNING if missing else Standing.CURRENT, missing, going=seen.going)


def to_restart(node: WantedNode, seen: SeenNode) -> bool:
    """Whether a node has other settings than wanted, and takes them by a restart alone."""
    return seen.fingerprint != node.fingerprint and not seen.is_in_place


def have_changed(settings: Sequence[str]) -> str:
    """Words for settings that have changed."""
    if not settings:
        return "its settings have changed"
    return some(settings) + (" has changed" if len(settings) == 1 else " have changed")


def _has_joined(node: WantedNode, cluster: SeenCluster | None) -> bool:
    return BROKER not in node.roles or (cluster is not None and node.id in cluster.brokers)


def _missing(node: WantedNode, seen: SeenNode, cluster: SeenCluster | None, survey: Survey | None) -> Iterator[str]:
    """The reasons why a restarted node is not back yet."""
    if seen.state != "Running":
        yield f"is {seen.state.lower()}" + (f" ({seen.message})" if seen.message else "")
        return
    if survey is None or cluster is None:
        yield UNSEEN
        return
    if not _has_joined(node, cluster):
        yield "has not joined yet, or is fenced" + (f" ({'; '.join(seen.obstacles)})" if seen.obstacles else "")
        return
    if behind := [
        partition.name
        for partition in survey.partitions
        if node.id in partition.replicas
        and node.id not in partition.isr
        and (partition.leader is not None or node.id in partition.elr)
    ]:
        yield f"is not in sync yet with {some(behind)}"
    if CONTROLLER not in node.roles:
        return
    if _lacks_vote(node, survey.quorum):
        yield "has no vote yet"
    elif not survey.quorum.is_caught_up(node.id):
        yield "has not caught up with the active controller yet"


def _lacks_vote(node: WantedNode, quorum: SeenQuorum) -> bool:
    """Whether a controller is to get a vote with the directory that it has; where voters never change, none is."""
    if node.controller is None or not quorum.directories:
        return False
    return quorum.directories.get(node.id) != node.controller.directory_id
