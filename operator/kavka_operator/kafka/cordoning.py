"""The cordon of a broker: a setting of its own, which only that broker alters (KIP-1066)."""

from collections.abc import Callable
from typing import Any, Final

from kafka.protocol.admin import IncrementalAlterConfigsRequest

from kavka_operator.domain.plan import CordonNode
from kavka_operator.kafka.errors import raise_for

KEY: Final = "cordoned.log.dirs"
EVERY: Final = "*"
BROKER_RESOURCE: Final = 4
SET, DELETE = 0, 1


def cordon(send: Callable[[Any, int], Any], action: CordonNode) -> None:
    """Cordon a broker, or take its cordon away. Raises KafkaError."""
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    operation, value = (SET, EVERY) if action.is_on else (DELETE, None)
    change = kind.AlterableConfig(name=KEY, config_operation=operation, value=value)
    altered = kind(resource_type=BROKER_RESOURCE, resource_name=str(action.node), configs=[change])
    (result,) = send(IncrementalAlterConfigsRequest(resources=[altered], validate_only=False), action.node).responses
    raise_for(result.error_code, result.error_message)
