"""Cycles of transactions that depend on each other (Adya's G0, G1c, G-single and G2, as Elle finds them).

| edge | from | to |
|---|---|---|
| ww | the writer of a value | the writer of the next value in the partition |
| wr | the writer of a value | an operation whose highest read of the partition it is |
| process | an operation | the next one of its process |
| realtime | an operation | one that began when it was over |
| rw | an operation whose highest read of the partition a value is | the writer of the next value of another writer |

An operation reads a range. Only its highest read makes an edge: the writers of what is below are before it by ww. An
anti-dependency (rw) breaks no promise: a poll ends where its answer is full, which says nothing of what comes behind.
Of realtime the edges to the first operations that began then are enough: those behind follow from these.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from math import inf
from typing import Final

from tests.histories.anomalies import Anomaly
from tests.histories.components import components
from tests.histories.operations import Key, Operation, Outcome, key_text
from tests.histories.versions import Versions

#: Each anomaly, the edge with which its cycles begin, and the edges that lead back. Earlier ones are not repeated.
CYCLES: Final = (
    ("G1c", "wr", ("wr",)),
    ("G1c-process", "wr", ("wr", "process")),
    ("G1c-realtime", "wr", ("wr", "realtime")),
    ("G0", "ww", ("ww",)),
    ("G0-process", "ww", ("ww", "process")),
    ("G0-realtime", "ww", ("ww", "realtime")),
    ("G1c-ww", "wr", ("ww", "wr")),
    ("G-single", "rw", ("ww", "wr")),
    ("G-single-realtime", "rw", ("ww", "wr", "realtime")),
    ("G2", "rw", ("ww", "wr", "rw")),
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
    for name, first, back in CYCLES:
        kinds = (*back, first)
        for component in components(len(graph.operations), partial(graph.next, kinds=kinds)):
            cycle = find_cycle(graph, component, first, back)
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
            following = _next_of_another(versions, writers, key, value)
            if following:
                graph.add(number, writers[following], "rw", f"it read {value} of {key_text(key)}, and not {following}")
        if operation.process in last:
            graph.add(last[operation.process], number, "process", f"{operation.process} did this next")
        last[operation.process] = number
    _add_realtime(graph)
    return graph


def _add_realtime(graph: Graph) -> None:
    by_begin = sorted(range(len(graph.operations)), key=lambda number: graph.operations[number].invoked)
    begins = [graph.operations[number].invoked for number in by_begin]
    first_ends = [inf] * (len(by_begin) + 1)  # of those from here on
    for at in reversed(range(len(by_begin))):
        completed = graph.operations[by_begin[at]].completed
        first_ends[at] = min(first_ends[at + 1], inf if completed is None else completed)
    for number, operation in enumerate(graph.operations):
        if operation.completed is None:
            continue
        start = bisect_right(begins, operation.completed)
        for at in range(start, bisect_right(begins, first_ends[start])):
            graph.add(number, by_begin[at], "realtime", f"{operation.process} was done before this began")


def _next_of_another(versions: Versions, writers: Mapping[str, int], key: Key, value: str) -> str:
    """The first value behind this one that another operation has written; empty for none. A poll may end anywhere."""
    order, at = versions.order[key], versions.index[key, value] + 1
    while at < len(order) and (order[at] not in writers or writers[order[at]] == writers.get(value)):
        at += 1
    return order[at] if at < len(order) else ""


def _highest(versions: Versions, operation: Operation) -> dict[Key, str]:
    """The highest value that an operation has read of each partition."""
    found: dict[Key, str] = {}
    for key, _, value in operation.readings():
        at = versions.index.get((key, value), -1)
        if at >= 0 and (key not in found or at > versions.index[key, found[key]]):
            found[key] = value
    return found


def find_cycle(graph: Graph, component: list[int], first: str, back: Collection[str]) -> list[int] | None:
    """A short cycle in a component that begins with such an edge; the shortest where there are few."""
    inside = set(component)
    edges = ((source, target) for source in component for target in graph.next(source, (first,)) if target in inside)
    best: list[int] | None = None
    for source, target in islice(edges, EDGES_TRIED_MAX):
        path = _path(graph, target, source, back, inside)
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
