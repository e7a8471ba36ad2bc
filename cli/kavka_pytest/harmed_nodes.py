"""The nodes of a cluster that a test has isolated, or whose disk it has filled; each is told what follows for it."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kavka_pytest.brokers import KafkaError
from kavka_pytest.node_faults import NodeFault, read_applied, write_fault

APPLY_SECONDS_MAX: Final = 30.0
POLL_SECONDS: Final = 0.005


class HarmedNodes:
    """The faults of the nodes of a cluster, as a test sets them; `ports` are those that each node listens on."""

    def __init__(self, directory: Path, ports: Callable[[], Mapping[int, Sequence[int]]]) -> None:
        self.full: set[int] = set()
        self.isolated: set[int] = set()
        self.seconds_max = APPLY_SECONDS_MAX
        self._directory, self._ports = directory, ports
        self._told: dict[int, NodeFault] = {}

    def harm(self, harmed: set[int], node: int) -> int:
        """Add a node to `full` or `isolated`, and return it. Raises KafkaError, and then the fault is taken back."""
        nodes = self._ports()
        if node not in nodes:
            raise KafkaError(f"there is no node {node}; there are {', '.join(map(str, sorted(nodes)))}")
        harmed.add(node)
        try:
            self.apply(self.seconds_max)
        except KafkaError:
            harmed.discard(node)
            self.tell()
            raise
        return node

    def heal(self, node: int) -> None:
        """Take all faults from a node. Raises KafkaError."""
        self.full.discard(node)
        self.isolated.discard(node)
        self.apply()

    def heal_all(self) -> None:
        """Take all faults from all nodes. Raises KafkaError."""
        if self.full or self.isolated:
            self.full.clear()
            self.isolated.clear()
            self.apply()

    def apply(self, seconds_max: float = APPLY_SECONDS_MAX) -> None:
        """Have each node apply its faults. Raises KafkaError where one does not in time, as one that is paused."""
        self.tell()
        deadline = time.monotonic() + seconds_max
        while late := [
            node for node, fault in self._told.items() if read_applied(self._directory, node) < fault.number
        ]:
            if time.monotonic() > deadline:
                raise KafkaError(f"nodes {', '.join(map(str, late))} have not applied their faults; are they paused?")
            time.sleep(POLL_SECONDS)

    def tell(self) -> None:
        """Tell each node whose faults have changed."""
        ports = self._ports()
        for node in ports:
            fault = self._fault_of(node, ports)
            if fault != self._told.get(node, NodeFault()):
                self._told[node] = NodeFault(fault.number + 1, fault.is_disk_full, fault.cut_ports)
                write_fault(self._directory, node, self._told[node])

    def _fault_of(self, node: int, ports: Mapping[int, Sequence[int]]) -> NodeFault:
        """Return what goes wrong at a node now, with the number of what it was told last."""
        others = [other for other in ports if other != node and (node in self.isolated or other in self.isolated)]
        cut = tuple(sorted(port for other in others for port in ports[other]))
        return NodeFault(self._told.get(node, NodeFault()).number, node in self.full, cut)
