"""GetTelemetrySubscriptions (71): which metrics a client should push, and how often (KIP-714).

- A client without an instance id gets one, and keeps it for life.
- The answer has the metrics of all subscriptions that match the client, and the shortest of their intervals. Without
  any the metrics are empty: the client pushes nothing, and asks again after the interval.
- Asked again before the interval is over: THROTTLING_QUOTA_EXCEEDED, unless the subscriptions have changed since, or a
  push was refused because of its subscription or its codec.
- The answer says too which codecs a push may have, how long it may be, and that flows should come as deltas.
Versions: flexible from 0.
"""

import asyncio
from functools import partial
from typing import Final

from kavka_broker.core.telemetry.instances import ACCEPTED
from kavka_broker.core.telemetry.subscription import Attributes
from kavka_broker.loop.slices import Work
from kavka_broker.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kavka_broker.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kavka_broker.protocol.uuids import to_text
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import SMALL_BYTES_MAX, api
from kavka_broker.telemetry.client_metrics import ClientMetrics

UNKNOWN: Final = "unknown"
"""The name and version of client software that has sent neither."""


@api(GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse, versions=(0, 0), bytes_max=SMALL_BYTES_MAX)
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, broker: Broker, client: Client
) -> GetTelemetrySubscriptionsResponse | asyncio.Task[GetTelemetrySubscriptionsResponse]:
    instance_id = broker.client_metrics.id_of(request.client_instance_id)
    remember(broker, client, instance_id)
    return broker.slices.run(answer(instance_id, attributes(client, instance_id), broker.client_metrics))


def answer(instance_id: bytes, known: Attributes, metrics: ClientMetrics) -> Work[GetTelemetrySubscriptionsResponse]:
    instance = yield from metrics.ask(instance_id, known)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=instance.demand.interval_ms,
        telemetry_max_bytes=metrics.bytes_max,
        delta_temporality=True,
        requested_metrics=list(instance.demand.metrics),
    )


def attributes(client: Client, instance_id: bytes) -> Attributes:
    """Return the client's attributes by the names that patterns use."""
    peer = client.peer
    return {
        "client_instance_id": to_text(instance_id),
        "client_id": client.client_id,
        "client_software_name": UNKNOWN if peer is None else peer.software_name or UNKNOWN,
        "client_software_version": UNKNOWN if peer is None else peer.software_version or UNKNOWN,
        "client_source_address": client.address,
        "client_source_port": None if peer is None else str(peer.port),
    }


def remember(broker: Broker, client: Client, instance_id: bytes) -> None:
    """Forget the instance when its connection ends."""
    peer, metrics = client.peer, broker.client_metrics
    if peer is not None and metrics.hear(peer, instance_id):
        peer.on_lost.append(partial(metrics.lost, peer))
