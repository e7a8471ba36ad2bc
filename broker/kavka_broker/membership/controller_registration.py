"""A controller tells the active one where it listens and what it supports, once in each of its lives.

The active controller writes its own registration when it begins to lead. The others ask for theirs to be written, until
the image shows it: kafka-metadata-quorum and clients with `bootstrap.controllers` find the controllers by it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from kavka_broker.core.config.listeners import Listener as Address
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kavka_broker.protocol.messages.controller_registration_response import ControllerRegistrationResponse

log = get("membership")

REGISTER_MS_MAX: Final = 10_000
RETRY_MS: Final = 1_000


async def register_controller(
    node_id: int,
    incarnation_id: bytes,
    listeners: Sequence[Address],
    features: Mapping[str, tuple[int, int]],
    channel: ControllerChannel,
    metadata: Metadata,
) -> None:
    """Register this controller; return when the image has this incarnation."""
    request = ControllerRegistrationRequest(
        node_id,
        incarnation_id,
        listeners=[
            Listener(listener.name, listener.host, listener.port, listener.protocol_id) for listener in listeners
        ],
        features=[Feature(name, low, high) for name, (low, high) in sorted(features.items())],
    )
    while not is_registered(metadata, node_id, incarnation_id):
        try:
            answer = await channel.ask(request, ControllerRegistrationResponse, timeout_ms=REGISTER_MS_MAX)
        except Unreachable as problem:
            log.warning("controller.not_registered", node=node_id, reason=str(problem))
        else:
            if answer.error_code != ErrorCode.NONE:
                reason = answer.error_message or ErrorCode(answer.error_code).name
                log.warning("controller.not_registered", node=node_id, reason=reason)
        await asyncio.sleep(RETRY_MS / 1000)


def is_registered(metadata: Metadata, node_id: int, incarnation_id: bytes) -> bool:
    return any(
        controller.controller_id == node_id and controller.incarnation_id == incarnation_id
        for controller in metadata.brokers.controllers()
    )
