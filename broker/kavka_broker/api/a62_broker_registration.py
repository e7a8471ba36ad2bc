"""BrokerRegistration (62): a broker joins, fenced at first; its epoch is the answer.

- Another cluster's id is INCONSISTENT_CLUSTER_ID.
- Who may register, and what becomes of a former incarnation: `core.metadata.decide.registrations`.
- The session of the new incarnation begins with its first heartbeat.
- A broker that migrates from ZooKeeper is refused: there is nothing to migrate from.
Versions: flexible throughout; the epoch of a clean stop comes from version 3.
"""

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.registrations import Register, register
from kavka_broker.core.metadata.image.brokers import Endpoint
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kavka_broker.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import CONTROLLER, SMALL_BYTES_MAX, api

log = get("controller")


@api(BrokerRegistrationRequest, BrokerRegistrationResponse, versions=(0, 4), on=CONTROLLER, bytes_max=SMALL_BYTES_MAX)
async def broker_registration(
    request: BrokerRegistrationRequest, broker: Broker, client: Client
) -> BrokerRegistrationResponse:
    def decide(metadata: Metadata, _: int) -> Decision[int]:
        check(request, broker)
        present = broker.sessions.presence(metadata.brokers.get(request.broker_id))
        return register(metadata, command(request), policy_of(broker.config), present=present)

    try:
        epoch = await broker.active.submit(decide)
    except BrokerError as refusal:
        news = broker.sessions.refused(request.broker_id, request.incarnation_id, refusal.message or refusal.code.name)
        if news and refusal.code is not ErrorCode.NOT_CONTROLLER:
            log.warning(
                "broker.refused",
                broker=request.broker_id,
                address=client.address,
                error=refusal.code.name,
                reason=refusal.message,
            )
        raise
    log.info("broker.registered", broker=request.broker_id, epoch=epoch, rack=request.rack)
    return BrokerRegistrationResponse(broker_epoch=epoch)


def check(request: BrokerRegistrationRequest, broker: Broker) -> None:
    """Raises BrokerError for a broker that does not belong here."""
    if request.cluster_id != broker.cluster_id:
        problem = f"broker {request.broker_id} belongs to cluster {request.cluster_id}, this is {broker.cluster_id}"
        raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, problem)
    if request.broker_id < 0 or request.is_migrating_zk_broker:
        problem = f"broker {request.broker_id} migrates from ZooKeeper, or has a negative id"
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)


def command(request: BrokerRegistrationRequest) -> Register:
    return Register(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            Endpoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in request.listeners
        ),
        directories=tuple(request.log_dirs),
        features={
            feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in request.features
        },
        rack=request.rack,
        previous_epoch=request.previous_broker_epoch,
    )
