"""Cycles of transactions that depend on each other (Adya's G0 and G1c, as Elle finds them).

| edge | from | to |
|---|---|---|
| ww | the writer of a value | the writer of the next value in the partition |
| wr | the writer of a value | an operation whose highest read of the partition it is |
| process | an operation | the next one of its process |

An operation reads a range. Only its highest read makes an edge: the writers of what is below are before it by ww. There
are no anti-dependencies (rw): a poll ends where its answer is full, which says nothing of what comes behind.
"""

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from typing import Final

from tests.histories.anomalies import Anomaly
from tests.histories.components import components
from tests.histories.operations import Key, Operation, Outcome, key_text
from tests.histories.versions import Versions

#: Each anomaly, the edges of its cycles, and those of which a cycle has one at least. Earlier ones are not repeated.
CYCLES: Final = (
    ("G1c", ("wr",), ("wr",)),
    ("G1c-process", ("wr", "process"), ("wr",)),
    ("G0", ("ww",), ("ww",)),
    ("G0-process", ("ww", "process"), ("ww",)),
    ("G1c-ww", ("ww", "wr"), ("wr",)),
)


EDGES_TRIED_MAX: Final = 50  # so that a component of thousands of operations is told of in seconds


@dataclass(slots=True)
class Graph:
    """Operations by number, and between two of them each kind of edge with its reason."""

    operations: list[Operation] = field(default_factory=list)
    edges: list[dict[int, dict[str, str]]] = field(default_factory=list)

    def add(self, source: int, target: int, kind: str, reason: str) -> None:
        if source != target:
            self.edges[source].setdefault(target, {}).setdefault(kind, reason)

    def next(self, source: int, kinds: Collection[str]) -> list[int]:
        return [target for target, found in self.edges[source].items() if any(kind in found for kind in kinds)]


def cycles(versions: Versions) -> Iterator[Anomaly]:
    """One anomaly for each component of operations that depend on each other in a cycle."""
    graph = graph_of(versions)
    told: set[frozenset[int]] = set()
    for name, kinds, needed in CYCLES:
        for component in components(len(graph.operations), partial(graph.next, kinds=kinds)):
            cycle = find_cycle(graph, component, kinds, needed)
            if cycle is None or frozenset(cycle) in told:
                continue
            told.add(frozenset(cycle))
            yield Anomaly(name, cycle_text(graph, cycle, kinds))


def graph_of(versions: Versions) -> Graph:
    """The operations that are not known to have failed, with their edges."""
    operations = [one for one in versions.history.operations if one.outcome is not Outcome.FAIL]
    graph = Graph(operations, [{} for _ in operations])
    numbers = {id(operation): number for number, operation in enumerate(operations)}
    writers = {value: numbers[id(writer)] for value, writer in versions.writers.items() if id(writer) in numbers}
    for key, order in versions.order.items():
        for value, following in pairwise(order):
            if value in writers and following in writers:
                reason = f"{following} is behind {value} in {key_text(key)}"
                graph.add(writers[value], writers[following], "ww", reason)
    last: dict[str, int] = {}
    for number, operation in enumerate(operations):
        for key, value in _highest(versions, operation).items():
            if value in writers:
                graph.add(writers[value], number, "wr", f"it read {value} of {key_text(key)}")
        if operation.process in last:
            graph.add(last[operation.process], number, "process", f"{operation.process} did this next")
        last[operation.process] = number
    return graph


def _highest(versions: Versions, operation: Operation) -> dict[Key, str]:
    """The highest value that an operation has read of each partition."""
    found: dict[Key, str] = {}
    for key, _, value in operation.readings():
        at = versions.index.get((key, value), -1)
        if at >= 0 and (key not in found or at > versions.index[key, found[key]]):
            found[key] = value
    return found


def find_cycle(graph: Graph, component: list[int], kinds: Collection[str], needed: Collection[str]) -> list[int] | None:
    """A short cycle in a component that begins with one of the needed edges; the shortest where there are few."""
    inside = set(component)
    edges = ((source, target) for source in component for target in graph.next(source, needed) if target in inside)
    best: list[int] | None = None
    for source, target in islice(edges, EDGES_TRIED_MAX):
        path = _path(graph, target, source, kinds, inside)
        if path is not None and (best is None or len(path) < len(best)):
            best = path
    return best and [best[-1], *best[:-1]]


def _path(graph: Graph, source: int, target: int, kinds: Collection[str], inside: set[int]) -> list[int] | None:
    """The shortest way from one operation to another, both included."""
    before: dict[int, int | None] = {source: None}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        if node == target:
            path = [node]
            while (previous := before[path[-1]]) is not None:
                path.append(previous)
            return path[::-1]
        for following in graph.next(node, kinds):
            if following in inside and following not in before:
                before[following] = node
                waiting.append(following)
    return None


def cycle_text(graph: Graph, cycle: list[int], kinds: Collection[str]) -> str:
    """The operations of a cycle, and why each comes before the next."""
    names = {number: f"T{index}" for index, number in enumerate(cycle, 1)}
    lines = [f"{names[number]} = {graph.operations[number]}" for number in cycle]
    for number, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        kind, reason = next((kind, why) for kind, why in graph.edges[number][following].items() if kind in kinds)
        lines.append(f"{names[number]} is before {names[following]} ({kind}): {reason}")
    return "\n  ".join(["each of these is before the next, and the last before the first", *lines])
