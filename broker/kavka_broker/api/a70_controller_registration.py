"""ControllerRegistration (70): a controller says where it listens and what it supports.

- UNSUPPORTED_VERSION where the cluster uses a feature level that it does not know.
- Saying the same again writes nothing.
Versions: flexible throughout.
"""

from kavka_broker.core.metadata.decide.registrations import register_controller
from kavka_broker.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kavka_broker.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kavka_broker.protocol.messages.metadata.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import CONTROLLER, SMALL_BYTES_MAX, api


@api(
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    versions=(0, 0),
    on=CONTROLLER,
    bytes_max=SMALL_BYTES_MAX,
)
async def controller_registration(
    request: ControllerRegistrationRequest, broker: Broker, client: Client
) -> ControllerRegistrationResponse:
    del client
    record = RegisterControllerRecord(
        request.controller_id,
        request.incarnation_id,
        request.zk_migration_ready,
        [
            ControllerEndpoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in request.listeners
        ],
        [
            ControllerFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        ],
    )
    await broker.active.submit(lambda metadata, _: register_controller(metadata, record))
    return ControllerRegistrationResponse(error_message=None)
