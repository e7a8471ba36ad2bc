"""PushTelemetry (72): a client pushes metrics, as OpenTelemetry writes them (KIP-714).

Refused, in this order:
- an instance id that stands for none, or a push after one that said it was the last: INVALID_REQUEST;
- a push before the interval is over: THROTTLING_QUOTA_EXCEEDED. The first push after asking comes any time, and so
  does the last one, which a client marks as `terminating`;
- another subscription id than the one given last: UNKNOWN_SUBSCRIPTION_ID, and the client asks again;
- a codec that there is not: UNSUPPORTED_COMPRESSION_TYPE;
- more than telemetry.max.bytes, before or after it is unpacked: TELEMETRY_TOO_LARGE;
- what is no OTLP: INVALID_RECORD. It is not even unpacked where nobody has asked the client for metrics.
Versions: flexible from 0.
"""

import asyncio
from collections.abc import Coroutine

from kavka_broker.api.a71_get_telemetry_subscriptions import attributes, remember
from kavka_broker.core.telemetry.instances import Push
from kavka_broker.protocol.messages.push_telemetry_request import PushTelemetryRequest
from kavka_broker.protocol.messages.push_telemetry_response import PushTelemetryResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api


@api(PushTelemetryRequest, PushTelemetryResponse, versions=(0, 0))
def push_telemetry(
    request: PushTelemetryRequest, broker: Broker, client: Client
) -> PushTelemetryResponse | Coroutine[None, None, PushTelemetryResponse]:
    instance_id, data = request.client_instance_id, request.metrics
    push = Push(request.subscription_id, request.compression_type, len(data), request.terminating)
    remember(broker, client, instance_id)
    known = attributes(client, instance_id)
    judged = broker.slices.run(broker.client_metrics.push(instance_id, known, push, data, broker.slices.time))
    return PushTelemetryResponse() if judged is None else answered(judged)


async def answered(
    judged: "Coroutine[None, None, None] | asyncio.Task[Coroutine[None, None, None] | None]",
) -> PushTelemetryResponse:
    """Return the answer once the push is accepted. Raises BrokerError where it is refused."""
    taking = await judged if isinstance(judged, asyncio.Task) else judged
    if taking is not None:
        await taking
    return PushTelemetryResponse()
