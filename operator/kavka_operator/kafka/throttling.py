"""The rates of throttled replicas: settings of each broker by itself, which only that broker describes and alters."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import kafka.errors
from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from kavka_operator.domain.plan import LimitBrokers
from kavka_operator.kafka.errors import raise_for
from kavka_operator.reconcile.moves import RATES

BROKER_RESOURCE, BROKER_OVERRIDE_SOURCE = 4, 2
SET, DELETE = 0, 1

Send = Callable[[Any, int], Any]
"""Sends a request to a broker, by its id."""


def rates(send: Send, brokers: Iterable[int]) -> dict[int, Mapping[str, str]]:
    """The rates that are set, by broker; one that does not answer is left out."""
    found = {}
    for broker in brokers:
        with contextlib.suppress(kafka.errors.KafkaError, OSError):
            found[broker] = _rates_of(send, broker)
    return found


def limit(send: Send, action: LimitBrokers) -> None:
    """Set the rates, or take them away. Raises KafkaError."""
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    operation, value = (DELETE, None) if action.rate is None else (SET, str(action.rate))
    changes = [kind.AlterableConfig(name=key, config_operation=operation, value=value) for key in RATES]
    for broker in action.brokers:
        altered = kind(resource_type=BROKER_RESOURCE, resource_name=str(broker), configs=changes)
        (result,) = send(IncrementalAlterConfigsRequest(resources=[altered], validate_only=False), broker).responses
        raise_for(result.error_code, result.error_message)


def _rates_of(send: Send, broker: int) -> Mapping[str, str]:
    wanted = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=str(broker), configuration_keys=list(RATES)
    )
    (result,) = send(DescribeConfigsRequest(resources=[wanted]), broker).results
    raise_for(result.error_code, result.error_message)
    return {
        setting.name: setting.value
        for setting in result.configs
        if setting.config_source == BROKER_OVERRIDE_SOURCE and setting.name in RATES and setting.value is not None
    }
