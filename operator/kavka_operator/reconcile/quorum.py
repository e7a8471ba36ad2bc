"""Which controllers vote: those that the resource wants, each with the directory that its volume has now (KIP-853).

One voter comes or goes at a time, and only while a majority that keeps up with the active controller is left after it:

    a voter whose directory is lost             goes first; its node observes with a new one, and can be added then
    a voter that is not wanted and is away      goes as well: it only makes majorities larger
    a wanted controller that has caught up      is added
    a voter that is not wanted and keeps up     goes once every wanted controller votes, the active one last;
                                                its node is stopped after that (`cluster.shrink`)

A voter that is away never helps, so that taking it away is always safe while the quorum lives. Where it lives no more,
such as when one of two voters has lost its volume, nothing can be changed, and that is said. Nothing is changed either
while a node of a roll is down, nor where the voters stand in every configuration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.domain.observed import ControllerPlace, SeenNode, SeenQuorum, Survey, WantedNode
from kavka_operator.domain.plan import AddVoter, ClusterPlan, Plan, RemoveVoter, VoterAction, reconciling

CHANGING = "QuorumChanging"
CONTROLLER = "controller"


def follow(
    nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode], survey: Survey | None, rollout: RolloutStatus | None
) -> ClusterPlan | None:
    """The next change of the voters, or what it waits for; None where they are as wanted, or cannot be changed."""
    places = places_of(nodes)
    if survey is None or places is None or not survey.quorum.directories:
        return None
    change = _Change(places, survey.quorum)
    if change.is_done:
        return None
    step = survey.doubt or _moving(seen, rollout) or change.step()
    if isinstance(step, str):
        return Plan((), reconciling(CHANGING, f"{change.words}; waits: {step}"), rollout)
    return Plan((step,), reconciling(CHANGING, f"{change.words}; {step}"), rollout)


def places_of(nodes: Sequence[WantedNode]) -> dict[int, ControllerPlace] | None:
    """Places at which the wanted controllers vote; None where voters never change, or one is not known."""
    controllers = [node for node in nodes if CONTROLLER in node.roles]
    places = {node.id: node.controller for node in controllers if node.controller is not None}
    return places if places and len(places) == len(controllers) else None


def _moving(seen: Mapping[int, SeenNode], rollout: RolloutStatus | None) -> str:
    """The node that a roll has taken down, in words; empty if there is none."""
    current = rollout.current if rollout is not None else ()
    down = [number for number in current if number in seen and seen[number].state != "Running"]
    down += [number for number, node in sorted(seen.items()) if node.state == "Stopping"]
    return f"node {down[0]} is being restarted" if down else ""


@dataclass(frozen=True, slots=True)
class _Change:
    """The voters that are wanted, beside those that there are."""

    places: Mapping[int, ControllerPlace]
    quorum: SeenQuorum

    @property
    def missing(self) -> list[int]:
        """The wanted controllers that have no vote, be it that a former directory of theirs has one."""
        return [number for number in sorted(self.places) if not self._votes(number)]

    @property
    def lost(self) -> list[int]:
        """The wanted controllers that vote with a directory that they have no more."""
        return [number for number in self.missing if number in self.quorum.voters]

    @property
    def surplus(self) -> list[int]:
        """The voters that are not wanted: first those that are away, last the active controller."""
        found = [voter for voter in self.quorum.voters if voter not in self.places]
        return sorted(found, key=lambda voter: (self._is_level(voter), voter == self.quorum.leader, voter))

    @property
    def is_done(self) -> bool:
        return not self.missing and not self.surplus

    @property
    def words(self) -> str:
        """The voters that there are, and those that there shall be."""
        return f"controllers {_listed(self.quorum.voters)} vote, and {_listed(self.places)} shall"

    def step(self) -> VoterAction | str:
        """The next change, or what it waits for."""
        surplus = self.surplus
        if away := [*self.lost, *(voter for voter in surplus if not self._is_level(voter))]:
            return self._remove(away[0])
        if caught_up := [number for number in self.missing if not self._lacks(number)]:
            return self._add(caught_up[0])
        if self.missing:
            return "; ".join(map(self._lacks, self.missing))
        return self._remove(surplus[0])

    def _add(self, number: int) -> VoterAction | str:
        if waits := self._without_majority((*self.quorum.voters, number)):
            return waits
        place = self.places[number]
        return AddVoter(number, place.directory_id, place.host, place.port, place.listener)

    def _remove(self, voter: int) -> VoterAction | str:
        if len(self.quorum.voters) == 1:
            return f"controller {voter} is the only voter"
        if waits := self._without_majority([other for other in self.quorum.voters if other != voter]):
            return waits
        return RemoveVoter(voter, self.quorum.directories[voter])

    def _without_majority(self, voters: Sequence[int]) -> str:
        """The reason why these voters would be no quorum; empty if they would. A new voter among them has caught up."""
        behind = [voter for voter in voters if voter in self.quorum.voters and not self._is_level(voter)]
        needed = len(voters) // 2 + 1
        if len(voters) - len(behind) >= needed:
            return ""
        return f"of controllers {_listed(voters)} {needed} must keep up with the active one (behind: {_listed(behind)})"

    def _lacks(self, number: int) -> str:
        """The reason why a controller cannot be given a vote yet; empty if it can."""
        observer = self.quorum.observer(number, self.places[number].directory_id)
        if observer is None:
            return f"controller {number} does not fetch the metadata log yet"
        if not observer.is_caught_up:
            return f"controller {number} is {observer.lag} records behind the active one"
        return ""

    def _votes(self, number: int) -> bool:
        return self.quorum.directories.get(number) == self.places[number].directory_id

    def _is_level(self, voter: int) -> bool:
        """Whether a voter counts: it keeps up, with a directory that is not lost."""
        return self.quorum.is_caught_up(voter) and (voter not in self.places or self._votes(voter))


def _listed(numbers: Sequence[int] | Mapping[int, object]) -> str:
    return ", ".join(map(str, sorted(numbers)))
