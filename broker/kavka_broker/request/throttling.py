"""Holding a client back for its quota, which the audit trail counts where there is one."""

from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.request.broker import Broker, Client


def throttle(client: Client, broker: Broker, quota_type: str, throttle_time_ms: int, now_ms: int) -> None:
    """Have the client's connection muted by its quota of this type."""
    client.throttle(throttle_time_ms, broker.quotas.held(quota_type, client.user, client.client_id, now_ms))
    if broker.use is None or client.role != "broker":
        return  # told by the broker that the client asked, not by the controller too
    effective = broker.quotas.by_type[quota_type].effective(client.user, client.client_id, now_ms)
    if effective is not None:
        quota = quota_type, entity_key(effective.entity), effective.limit
        broker.use.throttled(client.user, client.address, client.client_id, quota, throttle_time_ms)
