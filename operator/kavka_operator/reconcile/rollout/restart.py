"""Restarts on request: an annotation of the KafkaCluster is among what a node is asked to be.

So a new text in it makes a roll like any other, with all its checks, and the same text never makes a second one.
"""

from kavka_operator.api.cluster import KafkaCluster

RESTART = "kavka.dev/restart"


def restart_mark(cluster: KafkaCluster) -> str:
    """The text of the last request to restart all nodes; empty where there was none."""
    return cluster.metadata.annotations.get(RESTART, "")
