"""Settings of one broker by itself, which only that broker describes and alters."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.protocol.admin import IncrementalAlterConfigsRequest

from kavka_operator.kafka.errors import raise_for

BROKER_RESOURCE: Final = 4
SET, DELETE = 0, 1

Send = Callable[[Any, int], Any]
"""Sends a request to a broker, by its id."""


def alter(send: Send, broker: int, values: Mapping[str, str | None]) -> None:
    """Set these settings, and take away those without a value. Raises KafkaError."""
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        kind.AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in values.items()
    ]
    altered = kind(resource_type=BROKER_RESOURCE, resource_name=str(broker), configs=changes)
    (result,) = send(IncrementalAlterConfigsRequest(resources=[altered], validate_only=False), broker).responses
    raise_for(result.error_code, result.error_message)
