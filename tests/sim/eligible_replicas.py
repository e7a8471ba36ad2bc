"""Which replicas have to be able to take over, by what they really hold: the brokers under test are not asked.

An heir of a partition is a replica that has every committed record on its disk as the observer sees it, and whose word
counts by KIP-966: it is in the ISR, or it was when the ISR fell below `min.insync.replicas`, and has not stopped
uncleanly since. The second is reckoned here, from the ISRs alone. What the controller says of eligible replicas is
judged by it:

| invariant | meaning |
|---|---|
| EligibleAreKept | such a replica is in the ISR or the ELR |
| HeirsLead | a partition has no leader, though such a replica is in service |

Heirs decide also which faults a seed may play (`may_lose_records`, `may_end`). A broker that forgets one is not spared.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kavka_broker.core.metadata.image.brokers import GIVEN_UP
from tests.sim.history import Place, place_text
from tests.sim.node import Node
from tests.sim.observed import place_of

Simulation = Any

#: What a broker says of a replica that it begins again, or of which it has nothing any more.
ANEW: Final = (
    "replica.restarted", "replica.damaged", "directory.lost", "directory.failed", "stray.moved", "partition.not_opened",
)  # fmt: skip
LEADERLESS_SECONDS_MAX: Final = 4.0


def is_well(node: Node) -> bool:
    """Whether other nodes can count on the data of this one."""
    return node.is_serving and not node.is_disk_faulty and not node.is_damaged


class Heirs:
    """Follows the ISRs of all partitions through the newest images."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._states: dict[Place, Any] = {}
        self._eligible: dict[Place, dict[int, None]] = {}
        self._incarnations: dict[int, bytes] = {}  # as the image before said
        self._leaderless: dict[Place, float] = {}  # since when an heir is in service and does not lead
        for event in ANEW:
            simulation.events.listeners.setdefault(event, []).append(self._began_anew)
        simulation.events.listeners.setdefault("registration.accepted", []).append(self._registered)

    # --- what happens ---------------------------------------------------------------------------------------------

    def ended(self, node: Node) -> None:
        """A process has ended. If it was not by a controlled stop, nobody has to believe its logs any more."""
        if not node.is_clean:
            self.lost(node)

    def lost(self, node: Node) -> None:
        """It may have lost records."""
        for eligible in self._eligible.values():
            eligible.pop(node.node_id, None)

    def _registered(self, process: str, _: Mapping[str, Any]) -> None:
        for node in self._simulation.nodes:
            if node.process.name == process:
                node.has_moved_volume = False

    def _began_anew(self, process: str, _: Mapping[str, Any]) -> None:
        for node in self._simulation.nodes:
            if node.process.name == process:
                self.lost(node)

    def look(self, image: Any) -> None:
        """The newest image is another one."""
        for topic, index, state in self._partitions(image):
            place = place_of(topic.name, topic.topic_id, index)
            before = self._states.get(place)
            if before is state:
                continue
            self._states[place] = state
            self._follow(place, before, state, self._least_in_sync(image, topic.name, state))
            for broker_id in self._eligible[place]:
                if broker_id not in (*state.isr, *state.elr):
                    self._simulation.fail(
                        f"EligibleAreKept: {place_text(place)}: node{broker_id} was in sync as the ISR fell below "
                        f"min.insync.replicas, and has stopped in no other way than cleanly; now it is {state}"
                    )
        self._incarnations = {broker.broker_id: broker.incarnation_id for broker in image.brokers}

    def _partitions(self, image: Any) -> Iterator[tuple[Any, int, Any]]:
        """All but those of topics whose records may go."""
        may_lose = self._simulation.invariants.may_lose
        for topic in image.topics if image is not None else ():
            if topic.name not in may_lose:
                for index, state in topic.partitions.items():
                    yield topic, index, state

    def _least_in_sync(self, image: Any, topic: str, state: Any) -> int:
        least = int(image.configs.topic(topic).get("min.insync.replicas", self._simulation.shape.min_isr))
        return min(least, len(state.replicas))

    def _follow(self, place: Place, before: Any, state: Any, least: int) -> None:
        eligible = self._eligible.setdefault(place, {})
        is_seen = before is not None and state.partition_epoch <= before.partition_epoch + 1
        if len(state.isr) >= least or not is_seen:
            eligible.clear()  # or it is not known in which order the others have left
            return
        stayed = {*eligible, *before.isr} - {*state.isr}
        eligible.clear()
        for broker_id in state.replicas:
            node = self._simulation.nodes[broker_id - 1]
            is_given_up = state.directory_of(broker_id) in GIVEN_UP
            # Where it registers just now, its former life is what the controller judges.
            is_as_before = self._incarnations.get(broker_id) == self._incarnation(broker_id)
            is_trusted = is_as_before and self._is_as_known(node) and not node.is_disk_faulty
            if broker_id in stayed and not is_given_up and is_trusted:
                eligible[broker_id] = None

    def _is_as_known(self, node: Node) -> bool:
        """Whether the controller knows the life that the node lives, or it has ended cleanly."""
        if not node.is_alive:
            return node.is_clean
        broker, known = getattr(node.server, "broker", None), self._incarnation(node.node_id)
        return broker is not None and known == broker.lifecycle._introduction.incarnation_id

    def _incarnation(self, broker_id: int) -> bytes | None:
        image = self._simulation.invariants.image
        registration = None if image is None else image.brokers.get(broker_id)
        return None if registration is None else bytes(registration.incarnation_id)

    # --- leaders --------------------------------------------------------------------------------------------------

    def look_for_leaders(self) -> None:
        """HeirsLead, asked now and then."""
        image, now = self._simulation.invariants.image, self._simulation.loop.time()
        for topic, index, state in self._partitions(image):
            place = place_of(topic.name, topic.topic_id, index)
            able = [heir for heir in (*state.isr, *self._eligible.get(place, ())) if may_lead(image, state, heir)]
            if state.leader >= 0 or not able:
                self._leaderless.pop(place, None)
            elif now - self._leaderless.setdefault(place, now) > LEADERLESS_SECONDS_MAX:
                self._simulation.fail(f"HeirsLead: {place_text(place)} has no leader; nodes {able} could: {state}")

    def entitled(self, place: Place) -> list[int]:
        """Members of the ISR, and those that have to be eligible."""
        state = self._states.get(place)
        return [] if state is None else [*state.isr, *self._eligible.get(place, ())]

    # --- what may be done -----------------------------------------------------------------------------------------

    def has_all(self, node_id: int, place: Place) -> bool:
        """Whether this replica really holds all that is committed."""
        known = self._simulation.invariants
        truth, view = known.truths.get(place), known.views.get((node_id, place))
        if self._is_by_end(place):
            ends = [seen.high_watermark for seen in known.seen_at(place)]
            return view is not None and view.end_offset >= max(ends, default=0)
        if truth is None or not truth.committed:
            return True
        return view is not None and all(view.has(batch) for batch, _ in reversed(truth.committed))

    def _is_by_end(self, place: Place) -> bool:
        """Whether nothing is known of it but where it ends: each replica cleans its own log."""
        return place[0] in self._simulation.rules

    def has_heir_beside(self, node: Node, place: Place) -> bool:
        """Whether another one can take over, with all that is committed; where that is nothing, nobody has to."""
        truth = self._simulation.invariants.truths.get(place)
        is_empty = (truth is None or not truth.committed) and not self._is_by_end(place)
        return is_empty or self._has_entitled_beside(node, place)

    def has_entitled_beside(self, node: Node) -> bool:
        """Whether each partition of this node has another that may lead, be it empty: a directory that is gone for good
        takes the right to lead with it, and the replica that was the last in sync waits for that directory.
        """
        return all(
            node.node_id not in state.replicas or self._has_entitled_beside(node, place)
            for place, state in self._places()
        )

    def _has_entitled_beside(self, node: Node, place: Place) -> bool:
        for heir_id in self.entitled(place):
            heir = self._simulation.nodes[heir_id - 1]
            is_trusted = heir is not node and is_well(heir) and not self._simulation.invariants.is_lossy(heir_id)
            if is_trusted and self._is_as_known(heir) and self.has_all(heir_id, place):
                return True
        return False

    def has_heirs_beside(self, node: Node) -> bool:
        """Whether that is so of every partition."""
        return all(self.has_heir_beside(node, place) for place, _ in self._places())

    def may_end(self, node: Node, *, is_synced: bool) -> bool:
        """Whether each partition has an heir beside this node, or nobody of it lacks anything."""
        return all(
            self.has_heir_beside(node, place) or self._lack_nothing(state, place, is_synced=is_synced)
            for place, state in self._places()
        )

    def have_all_everything(self, *, is_synced: bool) -> bool:
        """Whether no replica that has lost something is without it still."""
        return all(self._lack_nothing(state, place, is_synced=is_synced) for place, state in self._places())

    def _places(self) -> list[tuple[Place, Any]]:
        found = self._partitions(self._simulation.invariants.image)
        return [(place_of(topic.name, topic.topic_id, index), state) for topic, index, state in found]

    def _lack_nothing(self, state: Any, place: Place, *, is_synced: bool) -> bool:
        known = self._simulation.invariants
        doubtful = [node_id for node_id in known.doubtful(is_synced=is_synced) if node_id in state.replicas]
        return not any(
            known.is_lossy(node_id)
            or self._simulation.nodes[node_id - 1].is_damaged
            or not self.has_all(node_id, place)
            for node_id in doubtful
        )


def may_lead(image: Any, state: Any, broker_id: int) -> bool:
    """Whether this broker is in service, with the directory of its replica."""
    registration = image.brokers.get(broker_id)
    return registration is not None and registration.usable and registration.has_online(state.directory_of(broker_id))
