"""The log directories of a local cluster's nodes, before a node is started on them.

A node is not started where a volume is missing that it has used, nor where a directory belongs to another cluster; new
directories are formatted, and their ids are kept, so that a volume that is lost one day is known to be.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.domain.observed import SeenVolume
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.local import node_identity, processes, volumes
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_processes import STOP_SECONDS_MAX, broker_command
from kavka_operator.platform.local.server_properties import LocalNode, wanted_node
from kavka_operator.reconcile.volumes import refusal

FORMAT_SECONDS_MAX = 30.0


@dataclass(slots=True)
class NodeDirectories:
    """The log directories of one cluster's nodes."""

    layout: Layout
    cluster_id: str
    given_up: tuple[str, ...] = ()  # the volumes that may be formatted again

    def seen(self, number: int) -> Sequence[SeenVolume]:
        """The volumes of a node, as they lie on the disk."""
        return volumes.look(self.layout, number, node_identity.read(self.layout).volumes.get(number, {}))

    def fault(self, node: LocalNode) -> str | None:
        """The reason why the node may not be started, or None: it would lack a volume, or format one again."""
        return refusal(wanted_node(node), self.seen(node.id), self.given_up)

    def prepare(self, node: LocalNode) -> None:
        """Format the directories of a node if they are new, and note them. Its properties are written by then.

        Raises PlatformUnavailableError.
        """
        if not self._is_formatted(node):
            self._format(node)
        self._note(node)

    def _is_formatted(self, node: LocalNode) -> bool:
        """Whether every log directory is formatted. Raises PlatformUnavailableError for one of another cluster."""
        texts = []
        for name in node.volumes:
            path = self.layout.data(node.id) / name / node_identity.META_PROPERTIES
            texts.append(read_text(path))
            owner = parse_properties(texts[-1] or "").get("cluster.id", self.cluster_id)
            if owner != self.cluster_id:
                raise PlatformUnavailableError(
                    f"{path.parent} belongs to cluster {owner}, and this is {self.cluster_id}; put the directory away,"
                    f" or write {owner} into {self.layout.cluster_id} if it is this cluster's after all"
                )
        return all(text is not None for text in texts)

    def _format(self, node: LocalNode) -> None:
        """Format the directories of a node. Raises PlatformUnavailableError."""
        for name in node.volumes:
            (self.layout.data(node.id) / name).mkdir(parents=True, exist_ok=True)
        config = str(self.layout.properties(node.id))
        command = broker_command("format", "--config", config, f"--cluster-id={self.cluster_id}", "--ignore-formatted")
        log = self.layout.log(node.id)
        process = processes.start(command, log)
        try:
            code = process.wait(FORMAT_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            processes.stop_children([process], STOP_SECONDS_MAX)
        if code != 0:
            raise PlatformUnavailableError(f"node {node.id} could not be formatted: {processes.tail(log)} (see {log})")

    def _note(self, node: LocalNode) -> None:
        known = node_identity.read(self.layout)
        paths = [self.layout.data(node.id) / name for name in node.volumes]
        now = known.formatted(node.id, {path.name: node_identity.directory_id(path) or "" for path in paths})
        if now != known:
            node_identity.keep(self.layout, now)
