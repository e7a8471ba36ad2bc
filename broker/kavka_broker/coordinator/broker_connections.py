"""Connections to brokers of the cluster, as the coordinators use them."""

from typing import Final

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.peers import Peer, Peers

CONNECTIONS_MAX: Final = 100

Address = tuple[str, int]


class Connections:
    """A connection to each broker, by the address at which it is registered."""

    def __init__(self, metadata: Metadata, peers: Peers, listener: str, client_id: str) -> None:
        self._metadata = metadata
        self._peers = peers
        self._listener = listener
        self._client_id = client_id
        self._peers_by_address: dict[Address, Peer] = {}

    def to(self, broker_id: int) -> Peer | None:
        """Return the connection; None where the broker cannot be reached now."""
        registered = self._metadata.brokers.get(broker_id)
        endpoint = None if registered is None or registered.fenced else registered.endpoints.get(self._listener)
        if endpoint is None:
            return None
        address = (endpoint.host, endpoint.port)
        if address not in self._peers_by_address:
            if len(self._peers_by_address) >= CONNECTIONS_MAX:
                # Brokers may return under new addresses, so that old connections pile up.
                self.close()
            self._peers_by_address[address] = self._peers.to(*address, client_id=self._client_id)
        return self._peers_by_address[address]

    def close(self) -> None:
        for peer in self._peers_by_address.values():
            peer.close()
        self._peers_by_address.clear()
