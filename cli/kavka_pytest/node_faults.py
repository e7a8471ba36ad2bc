"""The faults of brokers that run as processes: a test writes a file for each node, and the node's process reads it.

    DIRECTORY/node-0.json     the faults of node 0, with a number that grows
    DIRECTORY/node-0.applied  the number that its process has applied

Both are replaced as a whole. A node that starts reads its file before it does anything else, so that a fault outlives
a kill.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

VARIABLE: Final = "KAVKA_TEST_FAULTS"
"""The environment variable that names the directory."""


@dataclass(frozen=True, slots=True)
class NodeFault:
    """The faults of a node: a full disk, and ports of this machine that it does not reach."""

    number: int = 0
    is_disk_full: bool = False
    cut_ports: tuple[int, ...] = ()


def read_fault(directory: Path, node: int) -> NodeFault:
    """The faults of a node; none where there is no file yet."""
    try:
        found = json.loads((directory / f"node-{node}.json").read_text())
    except FileNotFoundError:
        return NodeFault()
    return NodeFault(found["number"], found["is_disk_full"], tuple(found["cut_ports"]))


def write_fault(directory: Path, node: int, fault: NodeFault) -> None:
    """Tell a node of its faults."""
    _replace(directory / f"node-{node}.json", json.dumps(asdict(fault)))


def write_applied(directory: Path, node: int, number: int) -> None:
    """Note that a node has applied the faults of this number."""
    _replace(directory / f"node-{node}.applied", str(number))


def read_applied(directory: Path, node: int) -> int:
    """The number of the faults that a node has applied last; 0 where there were none."""
    try:
        return int((directory / f"node-{node}.applied").read_text())
    except FileNotFoundError:
        return 0


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(text)
    os.replace(unfinished, path)
