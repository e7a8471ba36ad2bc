"""May nodes run with the volumes that a resource wants?

Taking a volume out of a resource, or giving it another name, would take away whatever it holds: the node would begin
with an empty directory and lead it as if nothing had ever been there. So a node is only started without a volume that
is known to be empty, and never with an empty directory in the place of one that has vanished. The metadata log stays
where it is for good: a controller that began a new one would forget whom it has voted for. What a dead disk held is
given up by the id of its directory, with the annotation `kavka.dev/forget-volumes` on the KafkaCluster: the id of an
empty one that takes its place is another, so that the next loss is noticed again. A node of which nothing is left, not
even an id, is given up as `node-ID`.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.name_lists import counted, some
from kavka_operator.domain.observed import SeenNode, SeenVolume, Survey, WantedNode

FORGET = "kavka.dev/forget-volumes"
METADATA_LOG = "__cluster_metadata-0"
UNTOLD = "no broker tells whether others have what it held"


def refusals(
    wanted: KafkaCluster, nodes: Sequence[WantedNode], seen: Mapping[int, Sequence[SeenVolume]]
) -> dict[int, str]:
    """The nodes that may not be started as they are wanted, and why."""
    found = {node.id: refusal(node, seen.get(node.id, ()), forgotten(wanted)) for node in nodes}
    return {number: words for number, words in found.items() if words is not None}


def refusal(node: WantedNode, seen: Sequence[SeenVolume], given_up: Sequence[str] = ()) -> str | None:
    """The reason why the node may not be started as it is wanted; None if it may."""
    vanished = [words for volume in seen if (words := _vanished(node, volume, given_up))]
    return "; ".join([*removals(node, seen), *vanished]) or None


def last_copies(
    wanted: KafkaCluster,
    nodes: Sequence[WantedNode],
    seen: Mapping[int, SeenNode],
    survey: Survey | None,
    volumes: Mapping[int, Sequence[SeenVolume]],
) -> dict[int, str]:
    """The nodes that have lost a volume and may not begin with an empty one, and why.

    Where voters and directories have ids, an empty volume is no danger to the quorum. It is one to a partition that
    counts the node as in sync: the empty replica would be taken for a whole one. Where the ISR is empty, the controller
    has to know another replica with all records.
    """
    given_up = set(forgotten(wanted))
    lost = {
        node.id: [found for found in seen[node.id].lost if found not in given_up] for node in nodes if node.id in seen
    }
    bare = [node.id for node in nodes if node.id not in seen and node.volumes and not volumes.get(node.id)]
    former = {line.id for line in wanted.status.nodes} if wanted.status.cluster_id else set()
    found = {number: _needed(number, ids, seen[number].message, survey) for number, ids in lost.items() if ids}
    found |= {number: _missed(number, survey, former) for number in bare if f"node-{number}" not in given_up}
    return {number: words for number, words in found.items() if words is not None}


def _missed(number: int, survey: Survey | None, former: AbstractSet[int]) -> str | None:
    """The reason why a node of which nothing is left may not begin as a new one; None if it may, as a new node may.

    `former` are the nodes that the last status tells of: while no broker answers, any of them may have held something.
    """
    give_up = f"give up what they held with the annotation {FORGET}=node-{number}"
    if survey is None or survey.doubt:
        if number not in former:
            return None
        return f"node {number}: none of its volumes is there, and {UNTOLD}; wait, bring them back, or {give_up}"
    words = _counting(number, survey)
    return f"node {number}: none of its volumes is there, and {words}; bring them back, or {give_up}" if words else None


def _needed(number: int, ids: Sequence[str], message: str, survey: Survey | None) -> str | None:
    give_up = f"or give it up with the annotation {FORGET}={','.join(ids)}"
    if survey is None or survey.doubt:
        return f"node {number}: {message}, and {UNTOLD}; wait, {give_up}"
    words = _counting(number, survey)
    return f"node {number}: {message}, and {words}; bring it back, {give_up}" if words else None


def _counting(number: int, survey: Survey) -> str:
    """Words for the partitions that count on a node; empty where none does."""
    found = [partition for partition in survey.partitions if partition.counts_on(number)]
    in_sync = [partition.name for partition in found if number in partition.isr]
    others = [partition.name for partition in found if not partition.isr]
    words = [f"it counts as in sync with {some(in_sync)}"] if in_sync else []
    return " and ".join([*words, *([f"no other replica of {some(others)} has all records"] if others else [])])


def removals(node: WantedNode, seen: Sequence[SeenVolume]) -> list[str]:
    """The reasons against taking away the volumes that are no longer wanted."""
    gone = [volume for volume in seen if volume.name not in node.volumes and volume.is_there]
    return [f"{_name(node, volume)} {_held(volume)}" for volume in gone if not volume.is_empty]


def forgotten(wanted: KafkaCluster) -> tuple[str, ...]:
    """The volumes that a person has given up, by the ids of their directories."""
    return tuple(wanted.metadata.annotations.get(FORGET, "").replace(",", " ").split())


def empty_volumes(
    wanted: KafkaCluster, nodes: Sequence[WantedNode], seen: Mapping[int, Sequence[SeenVolume]]
) -> tuple[str, ...]:
    """The volumes that hold nothing on any node of their pool, as POOL/VOLUME: those may be taken out."""
    found = []
    for pool in wanted.spec.node_pools:
        members = [node.id for node in nodes if node.pool == pool.name]
        for volume in pool.storage.volumes:
            copies = [copy for number in members for copy in seen.get(number, ()) if copy.name == volume.name]
            if len(copies) == len(members) and all(copy.is_empty for copy in copies):
                found.append(f"{pool.name}/{volume.name}")
    return tuple(found)


def _name(node: WantedNode, volume: SeenVolume) -> str:
    return f'volume "{volume.name}" of node {node.id}'


def _vanished(node: WantedNode, volume: SeenVolume, given_up: Sequence[str]) -> str | None:
    """The reasons against going on without a volume that was there."""
    has_a_vote = volume.has_metadata and "controller" in node.roles
    if volume.is_there or not volume.was_used or (volume.directory_id in given_up and not has_a_vote):
        return None
    name = _name(node, volume)
    if volume.logs:
        return f"{name} holds {_counted(volume)} and no meta.properties; bring that file back"
    if has_a_vote:
        return (
            f"{name} has vanished from {volume.place} with what the controller has voted and knows; bring it back: a"
            " controller never begins again by itself"
        )
    return (
        f"{name} has vanished from {volume.place}, and what it held is not known; bring it back, or give it up with"
        f" the annotation {FORGET}={volume.directory_id}"
    )


def _held(volume: SeenVolume) -> str:
    """Words for what a volume that is to go holds, and what to do."""
    if volume.logs is None:
        return "cannot be read, so that nobody knows what it holds; put it back into spec.nodePools"
    if not volume.was_used:
        return f"holds {_counted(volume)}; put it into spec.nodePools, or move {volume.place} away"
    if volume.has_metadata:
        return "holds the metadata log, which stays where it is; put it back into spec.nodePools"
    return (
        f"holds {_counted(volume)}; put it back into spec.nodePools, move"
        " them to another volume with kafka-reassign-partitions.sh, and take it out when it is empty"
    )


def _counted(volume: SeenVolume) -> str:
    logs = volume.logs or ()
    return f"{counted(len(logs), 'replica')} ({some(logs)})"
