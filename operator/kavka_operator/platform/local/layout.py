"""Where a local cluster keeps what it has: one directory a cluster.

STATE/NAMESPACE/CLUSTER/
    lock              held by the `kavka up` that runs the cluster
    supervisor.json   who that is
    cluster-id        drawn once, at the first start
    audit.key         the key that signs the audit trail, drawn once
    members.json      the ids and ports of each node, and who votes
    cluster.yaml      the resource of a cluster that `kavka up` made without a file
    ephemeral         there, where the cluster is removed when it stops
    resources/        what is wanted, a file a resource
    status/           what was last seen of each
    config/           server.properties of each node
    certificates/     of a secured cluster: ca.crt for clients; authority/, operator/ and node-0/... with keys
    data/node-0/...   log directories, one a volume
    logs/node-0.log   what the node says
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STATE_VARIABLE = "KAVKA_STATE_DIR"


def default_state_directory() -> Path:
    """`$KAVKA_STATE_DIR`, or `kavka` below the user's state directory."""
    if own := os.environ.get(STATE_VARIABLE):
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "kavka"


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one cluster."""

    root: Path
    namespace: str
    cluster: str

    @classmethod
    def of(cls, state: Path, namespace: str, cluster: str) -> "Layout":
        """The paths of a cluster below a state directory."""
        return cls(state / namespace / cluster, namespace, cluster)

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def supervisor(self) -> Path:
        return self.root / "supervisor.json"

    @property
    def cluster_id(self) -> Path:
        return self.root / "cluster-id"

    @property
    def audit_key(self) -> Path:
        return self.root / "audit.key"

    @property
    def declared(self) -> Path:
        """The resource of a cluster that `kavka up` made without a file."""
        return self.root / "cluster.yaml"

    @property
    def ephemeral(self) -> Path:
        """A mark: the cluster is removed with its records when it stops."""
        return self.root / "ephemeral"

    @property
    def members(self) -> Path:
        return self.root / "members.json"

    @property
    def resources(self) -> Path:
        return self.root / "resources"

    @property
    def status(self) -> Path:
        return self.root / "status"

    @property
    def supervisor_log(self) -> Path:
        return self.root / "logs" / "up.log"

    def properties(self, node: int) -> Path:
        """The settings that a node is started with."""
        return self.root / "config" / f"node-{node}.properties"

    @property
    def certificates(self) -> Path:
        """The directory with the certificates of a secured cluster."""
        return self.root / "certificates"

    def certificates_of(self, node: int) -> Path:
        """The directory with the certificates of a node."""
        return self.certificates / f"node-{node}"

    @property
    def certificates_of_operator(self) -> Path:
        """The directory with the certificate by which the operator, and the command, are known."""
        return self.certificates / "operator"

    def data(self, node: int) -> Path:
        """The directory of a node's volumes."""
        return self.root / "data" / f"node-{node}"

    def log(self, node: int) -> Path:
        """The log of a node."""
        return self.root / "logs" / f"node-{node}.log"

    def pid(self, node: int) -> Path:
        """The file with the process id of a node."""
        return self.root / f"node-{node}.pid"

    def pids(self) -> Iterator[tuple[int, Path]]:
        """Yield each node that was started, and the file with its process id."""
        for path in sorted(self.root.glob("node-*.pid")):
            number = path.stem.removeprefix("node-")
            if number.isascii() and number.isdecimal():  # otherwise the file is not Kavka's
                yield int(number), path

    def secret(self, name: str) -> Path:
        """The directory of a Secret: a file for each key."""
        return self.root / "secrets" / name

    def owned(self) -> Iterator[Path]:
        """The paths that Kavka made in the cluster's directory, except the volumes of its nodes."""
        yield from (self.resources, self.status, self.certificates, self.root / "config", self.root / "logs")
        yield from (self.root / "secrets", self.supervisor, self.cluster_id, self.audit_key, self.members)
        yield from (self.declared, self.ephemeral, self.root / "store.lock", self.lock)
        yield from (path for _, path in self.pids())

    def make(self) -> None:
        """Make the directories, for this user alone."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for directory in (self.resources, self.status, self.root / "config", self.root / "data", self.root / "logs"):
            directory.mkdir(exist_ok=True, mode=0o700)


def clusters(state: Path) -> Iterator[Layout]:
    """Every cluster that the state directory knows."""
    for lock in sorted(state.glob("*/*/resources")):
        root = lock.parent
        yield Layout(root, root.parent.name, root.name)
