"""HeardBrokersStay: a broker whose heartbeats arrive keeps its registration, whatever else arrives under its id.

What its former processes have sent may come at any time, and order tells nothing. A broker that has lost its place
comes back by itself, so nothing but this rule objects. It is judged where the controller has heard the broker for sure,
and by a connection that stood: it was unfenced; its heartbeats have arrived since then without a pause of half a
session; no connection between the two has ended since it registered; and the controller is the same.
"""

from dataclasses import dataclass
from typing import Any, Final

from tests.sim.loop import Process

HEARTBEAT: Final = (63).to_bytes(2, "big")
SESSION_MS: Final = "broker.session.timeout.ms"


@dataclass(slots=True)
class Known:
    """One registration, as it was seen first and last; and the heartbeats of its process that have arrived."""

    registration: Any
    process: Process
    began: float
    controller_epoch: int
    heard_since: float | None = None  # without a pause
    heard_at: float = 0.0


class Registrations:
    """Those of all brokers, by id, followed through the images that nodes have committed."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        self._loop = simulation.loop
        self._pause_max = int(simulation.shape.settings.get(SESSION_MS, 9_000)) / 2_000
        self._known: dict[int, Known] = {}
        self._ended_at: dict[tuple[Process, Process], float] = {}  # when a connection between them was lost
        self.unregistered: dict[int, None] = {}  # brokers that a client has asked to forget
        simulation.network.on_request[HEARTBEAT] = self._heard
        simulation.network.on_end = self._lost

    def _heard(self, source: Process, target: Process) -> None:
        for known in self._known.values():
            if known.process is source and self._is_controller(target):
                now = self._loop.time()
                if known.heard_since is None or now - known.heard_at > self._pause_max:
                    known.heard_since = now
                known.heard_at = now

    def _lost(self, source: Process, target: Process) -> None:
        self._ended_at[source, target] = self._ended_at[target, source] = self._loop.time()

    def _is_controller(self, process: Process) -> bool:
        node = next((other for other in self._simulation.nodes if other.process is process), None)
        return node is not None and node.server is not None and bool(node.broker.quorum.is_leader)

    def look(self, image: Any, epoch: int) -> None:
        """The newest image is another one; `epoch` is that of the quorum where it was seen."""
        for node in self._simulation.nodes:
            now, known = image.brokers.get(node.node_id), self._known.get(node.node_id)
            if known is not None and now is not None and now.epoch == known.registration.epoch:
                known.registration = now
                continue
            if known is not None and now is not None and self._must_stay(node, known, epoch):
                self._simulation.fail(
                    f"HeardBrokersStay: {known.process} was registered at epoch {known.registration.epoch} and heard, "
                    f"last at {known.heard_at:.4f} s; another registration at epoch {now.epoch} has its place"
                )
            self._follow(node, now, epoch)

    def _follow(self, node: Any, registration: Any, epoch: int) -> None:
        self._known.pop(node.node_id, None)
        broker = getattr(node.server, "broker", None)
        if broker is None or registration is None:
            return
        if registration.incarnation_id == broker.lifecycle._introduction.incarnation_id:
            self._known[node.node_id] = Known(registration, node.process, self._loop.time(), epoch)

    def _must_stay(self, node: Any, known: Known, epoch: int) -> bool:
        now = self._loop.time()
        if known.registration.fenced or known.heard_since is None or node.node_id in self.unregistered:
            return False
        is_same = node.process is known.process and node.is_serving and epoch == known.controller_epoch
        is_heard = now - known.heard_at <= self._pause_max and known.heard_since - known.began <= self._pause_max
        return is_same and is_heard and not self._was_parted(node, known)

    def _was_parted(self, node: Any, known: Known) -> bool:
        others = [
            other.process
            for other in self._simulation.nodes
            if other is not node and self._is_controller(other.process)
        ]
        return not others or any(self._ended_at.get((known.process, other), -1.0) >= known.began for other in others)
