"""Who a node of the quorum is, and its patience.

The names are those of Kafka's configuration (`controller.quorum.*`); the two short delays are Kavka's own. A follower
that loses its connection to the leader does not wait for the fetch timeout: it asks the others almost at once whether
they have lost it too. The small spread keeps them from asking all at the same moment.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A node by its names. `listener` is the controller listener over which the quorum speaks."""

    node_id: int
    directory_id: bytes
    cluster_id: str
    listener: str = "CONTROLLER"
    endpoints: tuple[tuple[str, str, int], ...] = ()  # listener, host, port: the node's addresses for others
    is_controller: bool = True  # the node has the role of a controller; a broker alone never votes


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the quorum: times in milliseconds, sizes in bytes."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    lost_delay_ms: tuple[int, int] = (10, 60)
    fetch_wait_max_ms: int = 500
    fetch_bytes_max: int = 8 * 1024 * 1024
    snapshot_chunk_bytes: int = 1024 * 1024
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    auto_join: bool = False  # controller.quorum.auto.join.enable (KIP-1186)

    def __post_init__(self) -> None:
        assert min(self.election_timeout_ms, self.fetch_timeout_ms, self.request_timeout_ms) >= 1, self
        assert 0 <= self.lost_delay_ms[0] <= self.lost_delay_ms[1], self.lost_delay_ms
        assert min(self.fetch_bytes_max, self.snapshot_chunk_bytes) >= 1, self
