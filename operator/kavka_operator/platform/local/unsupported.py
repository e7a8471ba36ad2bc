"""What this version cannot run yet, said before anything is started. The only place that knows."""

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.platform.local import volumes
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import Members
from kavka_operator.platform.local.server_properties import local_nodes, port_clashes, wanted_node
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile.volumes import removals


def unsupported(cluster: KafkaCluster, layout: Layout, members: Members) -> str | None:
    """The reason why this cluster cannot be run, and what to write instead; None if it can."""
    if "," in str(layout.root) and cluster.spec.external is None:
        return (
            f"{cluster.identity}: the state directory would be {layout.root}, and log.dirs cannot name a directory with"
            " a comma; choose another one by --state-dir or KAVKA_STATE_DIR"
        )
    if ephemeral := [pool.name for pool in cluster.spec.node_pools if pool.storage.is_ephemeral]:
        return (
            f'{cluster.identity}: spec.nodePools "{ephemeral[0]}": storage.type: Ephemeral is of pods on Kubernetes;'
            " take storage out, and remove the records with kavka down --volumes, or run kavka up --ephemeral without a"
            " file"
        )
    voters = tuple(node.id for node in nodes_of(cluster, members.pools) if node.is_controller)
    if members.voters and members.voters != voters:
        return (
            f"{cluster.identity}: spec.nodePools: the controllers are nodes {_listed(members.voters)} since the first"
            f" start and would be nodes {_listed(voters)}, which is not possible yet; to have more brokers, add a pool"
            " with roles: [broker]"
        )
    complete = members.joined_by(cluster, lambda _: True)
    return "; ".join(port_clashes(local_nodes(cluster, layout, complete))) or None


def lost_volumes(cluster: KafkaCluster, layout: Layout, members: Members) -> str | None:
    """Words for volumes with logs that the resource no longer names, and what to do; None without such."""
    complete = members.joined_by(cluster, lambda _: True)
    found = []
    for node in map(wanted_node, local_nodes(cluster, layout, complete)):
        found += removals(node, volumes.look(layout, node.id, members.volumes.get(node.id, {})))
    return f"{cluster.identity}: spec.nodePools: {'; '.join(found)}" if found else None


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
