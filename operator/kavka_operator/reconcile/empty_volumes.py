"""May a node whose volumes ended with its pod begin with empty ones?

Kubernetes makes such a pod again by itself, whatever the partitions of its broker stand like. So the pod has a
scheduling gate, which is lifted where the controller counts on no record that the node held: it is in no ISR, and
where an ISR is empty, another replica has all records. Otherwise an empty replica might lead, and the others would
truncate to it.

Records that nobody has any more hold no gate: those of a partition whose replicas are all empty, as where it has one.
And while no broker answers, a node begins where no other broker is left that could hold anything.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from kavka_operator.domain.name_lists import named, some
from kavka_operator.domain.observed import SeenNode, SeenPartition, SeenVolume, Survey, WantedNode
from kavka_operator.domain.plan import LiftGate
from kavka_operator.reconcile.volumes import FORGET


@dataclass(frozen=True, slots=True)
class EmptyStarts:
    """The gates to lift, and of each other gated node what it waits for; `refused` are those that wait for a person."""

    lift: tuple[LiftGate, ...] = ()
    waiting: Mapping[int, str] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)

    def told(self, seen: Mapping[int, SeenNode]) -> dict[int, SeenNode]:
        """The nodes, with what their gates wait for."""
        return {**seen, **{number: replace(seen[number], message=words) for number, words in self.waiting.items()}}


def empty_starts(
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    survey: Survey | None,
    volumes: Mapping[int, Sequence[SeenVolume]],
) -> EmptyStarts:
    """Decide which nodes may begin with empty volumes. `survey` is None while no broker answers."""
    empty = {number for number, node in seen.items() if node.is_gated}
    if not empty:
        return EmptyStarts()
    given_up = {number for number in empty if seen[number].is_given_up}
    if survey is None or survey.doubt:
        return _unsurveyed(empty, given_up, set(_holders(nodes, seen, volumes)), seen)
    held = {number: _held(number, survey, empty) for number in empty - given_up}
    free = [number for number in sorted(empty) if not held.get(number)]
    refused = {
        number: _last(number, found, seen[number])
        for number, partitions in held.items()
        if (found := [partition for partition in partitions if set(partition.heirs) <= empty])
    }
    in_sync = {number: _counted(number, partitions) for number, partitions in held.items() if partitions}
    return EmptyStarts(
        tuple(LiftGate(number, _gone(number, survey, empty)) for number in free), {**in_sync, **refused}, refused
    )


def only_records(node: int, survey: Survey) -> list[SeenPartition]:
    """The partitions of which no other node has all records, as far as the controller knows."""
    return [partition for partition in survey.partitions if partition.heirs and set(partition.heirs) == {node}]


def _unsurveyed(
    empty: AbstractSet[int],
    given_up: AbstractSet[int],
    holders: AbstractSet[int],
    seen: Mapping[int, SeenNode],
) -> EmptyStarts:
    """Decide while no broker can be believed: as in a new cluster, all nodes begin where none may hold records."""
    free = given_up if holders else empty
    words = f"waits for {named(sorted(holders))} to tell whether others have what it held"
    waiting = {number: f"its volumes are empty, and it {words}{_remedy(seen[number])}" for number in empty - free}
    return EmptyStarts(tuple(LiftGate(number) for number in sorted(free)), waiting)


def _holders(
    nodes: Sequence[WantedNode], seen: Mapping[int, SeenNode], volumes: Mapping[int, Sequence[SeenVolume]]
) -> Iterator[int]:
    """Yield the nodes that may hold records: brokers with claims, or with a pod of which something has run."""
    controllers = {node.id for node in nodes if "broker" not in node.roles}
    ephemeral = {node.id for node in nodes if node.is_ephemeral}
    for number in sorted({*seen, *(node.id for node in nodes)} - controllers):
        node = seen.get(number)
        if number in ephemeral or (node is not None and node.life):
            if node is not None and node.life and not node.is_gated and node.has_begun:
                yield number
        elif node is not None or volumes.get(number):
            yield number


def _held(number: int, survey: Survey, empty: AbstractSet[int]) -> list[SeenPartition]:
    """The partitions that count on a node, and of which another replica may still have something."""
    return [found for found in survey.partitions if found.counts_on(number) and set(found.replicas) - empty]


def _gone(number: int, survey: Survey, empty: AbstractSet[int]) -> tuple[str, ...]:
    """The partitions that nobody has anything of any more, and that counted on a node."""
    return tuple(found.name for found in survey.partitions if found.counts_on(number) and set(found.replicas) <= empty)


def _counted(number: int, partitions: Sequence[SeenPartition]) -> str:
    names = some([partition.name for partition in partitions])
    return f"its volumes are empty, and it counts as in sync with {names} until the controller takes it out"


def _last(number: int, partitions: Collection[SeenPartition], node: SeenNode) -> str:
    names = some([partition.name for partition in partitions])
    return (
        f"node {number}: its volumes ended with its pod, and the controller knows no other replica with all records of"
        f" {names}; let one that lags lead (kafka-leader-election.sh --election-type unclean){_remedy(node)}"
    )


def _remedy(node: SeenNode) -> str:
    return f", or give up what it held with the annotation {FORGET}={node.life}"
