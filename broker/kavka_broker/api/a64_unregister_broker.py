"""UnregisterBroker (64): forget a broker that will not come back.

- BROKER_ID_NOT_REGISTERED where there is none. One that lives may be forgotten too, as in Apache Kafka: it loses
  what it leads, and its next heartbeat is refused.
- Its replicas stay assigned to it: reassign them first.
Versions: flexible throughout.
"""

from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.registrations import unregister
from kavka_broker.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kavka_broker.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api


@api(UnregisterBrokerRequest, UnregisterBrokerResponse, versions=(0, 0), on=BOTH, forwarded=True)
async def unregister_broker(
    request: UnregisterBrokerRequest, broker: Broker, client: Client
) -> UnregisterBrokerResponse:
    del client
    policy = policy_of(broker.config)
    await broker.active.submit(lambda metadata, _: unregister(metadata, request.broker_id, policy))
    return UnregisterBrokerResponse(error_message=None)
