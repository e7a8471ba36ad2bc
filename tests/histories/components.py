"""Strongly connected components of a graph, by Tarjan's algorithm, without recursion: histories are long."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

Neighbours = Callable[[int], Iterable[int]]


def components(count: int, neighbours: Neighbours) -> list[list[int]]:
    """Components of more than one of the nodes 0 to `count` - 1, each in ascending order."""
    search = Search(neighbours)
    for root in range(count):
        if root not in search.number:
            search.visit(root)
    return search.found


@dataclass(slots=True)
class Search:
    """A depth-first search. `low` is the earliest node on the stack that a node is known to reach."""

    neighbours: Neighbours
    found: list[list[int]] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)
    low: dict[int, int] = field(default_factory=dict)
    stack: dict[int, None] = field(default_factory=dict)

    def visit(self, root: int) -> None:
        """Find the components of all that the root reaches and that was not visited before."""
        calls = [self._begin(root)]
        while calls:
            node, targets = calls[-1]
            target = next(targets, None)
            if target is None:
                calls.pop()
                self._end(node, calls[-1][0] if calls else node)
            elif target not in self.number:
                calls.append(self._begin(target))
            elif target in self.stack:
                self.low[node] = min(self.low[node], self.number[target])

    def _begin(self, node: int) -> tuple[int, Iterator[int]]:
        self.number[node] = self.low[node] = len(self.number)
        self.stack[node] = None
        return node, iter(self.neighbours(node))

    def _end(self, node: int, caller: int) -> None:
        self.low[caller] = min(self.low[caller], self.low[node])
        if self.low[node] < self.number[node]:
            return
        component = [self.stack.popitem()[0]]
        while component[-1] != node:
            component.append(self.stack.popitem()[0])
        if len(component) > 1:
            self.found.append(sorted(component))
