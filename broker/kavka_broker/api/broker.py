"""What a handler may ask of the broker, and what it knows of the client.

`Broker` is a plain record of the parts that `runtime` has wired together. Handlers take from it what they need; they
hold no state of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka_broker.controller.controller import Controller
    from kavka_broker.coordinator.group_coordinator import GroupCoordinator
    from kavka_broker.core.config.broker import BrokerConfig
    from kavka_broker.core.metadata.image import Metadata
    from kavka_broker.quotas.client_quotas import ClientQuotas
    from kavka_broker.replica.fetch_sessions import FetchSessions
    from kavka_broker.replica.replica_manager import ReplicaManager
    from kavka_broker.seams import Clock
    from kavka_broker.timers import Timers


@dataclass(slots=True)
class Broker:
    """The parts of one running broker."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    clock: Clock
    timers: Timers
    metadata: Metadata
    controller: Controller
    replicas: ReplicaManager
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    quotas: ClientQuotas


@dataclass(slots=True)
class Client:
    """Who sent this request, and how. One a request.

    `throttle_time_ms` is set by a handler whose client is over a quota: the answer leaves at once and the connection
    is then muted for that long (KIP-219).
    """

    version: int
    client_id: str
    correlation_id: int
    address: str
    listener: str
    size_bytes: int = 0  # of the request, without its length field
    user: str = "ANONYMOUS"  # the name of the principal, of type User
    throttle_time_ms: int = 0
