"""Brokers whose image is outdated, as the disk under it is full and takes no news.

| invariant | meaning |
|---|---|
| SentAwayRightly | clients are sent away as long as the broker's image has it unfenced and the newest has not |
| OutdatedNamesNoLeader | a broker that hears that it is fenced, while its image stands still, serves no client |
"""

from dataclasses import dataclass
from typing import Any, Final

from tests.sim.loop import Process

CLIENTS_ASK: Final = tuple(key.to_bytes(2, "big") for key in (0, 1, 3))  # Produce, Fetch, Metadata


SOON_SECONDS: Final = 2.0  # a connection is closed behind the answers that are owed


@dataclass(slots=True)
class Standing:
    """An image that has stood still since then, in one process."""

    process: Process
    offset: int
    since: float


class OutdatedImages:
    """Follows the images of nodes that have no room for metadata, whenever a client asks one of them for anything."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        # The longest wait for an answer to a heartbeat: one that is answered later was sent when the image stood still.
        self._answer_s_max = int(simulation.shape.settings.get("broker.session.timeout.ms", 9_000)) / 2_000
        self._standing: dict[int, Standing] = {}  # by node
        self._differed: dict[str, float] = {}  # by process: when its image was outdated last
        simulation.events.listeners["broker.outdated"] = [lambda process, _: self.is_outdated(process)]
        simulation.network.on_request |= dict.fromkeys(CLIENTS_ASK, self._asked)

    def is_outdated(self, process: str) -> bool:
        """Whether the newest image has this process's broker fenced, or another registration of it, and its own not; or
        a moment ago.
        """
        now = float(self._simulation.loop.time())
        if self._differs(next(node for node in self._simulation.nodes if str(node.process) == process)):
            self._differed[process] = now
        return now - self._differed.get(process, -SOON_SECONDS) < SOON_SECONDS

    def _differs(self, node: Any) -> bool:
        now = self._simulation.invariants.image.brokers.get(node.node_id)
        own = node.broker.quorum.metadata.brokers.get(node.node_id)
        if own is None or own.fenced:
            return False
        return now is None or now.fenced or now.epoch != own.epoch

    def _asked(self, source: Process, target: Process) -> None:
        node = next((node for node in self._simulation.nodes if node.process is target), None)
        if node is None or not node.is_serving:
            return
        quorum, now = node.broker.quorum, self._simulation.loop.time()
        if not quorum.runner.retries.waits_for_room or not self._differs(node):
            self._standing.pop(node.node_id, None)
            return
        standing = self._standing.get(node.node_id)
        if standing is None or standing.process is not target or standing.offset != quorum.metadata.offset:
            self._standing[node.node_id] = Standing(target, quorum.metadata.offset, now)
            return
        heard_at = now - node.broker.lifecycle.silent_ms / 1000
        if heard_at - standing.since > self._answer_s_max and not node.broker.lifecycle.outdated.is_known:
            self._simulation.fail(
                f"OutdatedNamesNoLeader: {target} serves {source}, and was fenced before {standing.since:.4f} s"
            )
