"""What this version cannot run yet, said before anything is started. The only place that knows."""

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.platform.nodes import nodes_of

NODES_MAX = 1


def unsupported(cluster: KafkaCluster) -> str | None:
    """Why this cluster cannot be run, and what to write instead; None if it can."""
    nodes = nodes_of(cluster)
    if len(nodes) > NODES_MAX:
        return (
            f"{cluster.identity}: spec.nodePools: {len(nodes)} nodes are wanted, but brokers cannot replicate to each"
            " other yet; write one pool with replicas: 1"
        )
    if set(nodes[0].roles) != {"broker", "controller"}:
        return f"{cluster.identity}: spec.nodePools[0].roles: a single node has to be both; write [broker, controller]"
    return None


def ignored(cluster: KafkaCluster) -> list[str]:
    """Fields that are set and that nothing acts on yet."""
    spec = cluster.spec
    found = []
    if spec.rollout.windows or spec.rollout.delay_seconds:
        found.append("spec.rollout.windows and delaySeconds")
    if spec.audit.topic:
        found.append("spec.audit")
    return [f"{cluster.identity}: {field}: accepted, but nothing acts on it yet" for field in found]
