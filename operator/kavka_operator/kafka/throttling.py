"""The rates of throttled replicas: settings of each broker by itself."""

import contextlib
from collections.abc import Iterable, Mapping

import kafka.errors
from kafka.protocol.admin import DescribeConfigsRequest

from kavka_operator.domain.plan import LimitBrokers
from kavka_operator.kafka.broker_settings import BROKER_RESOURCE, Send, alter
from kavka_operator.kafka.errors import raise_for
from kavka_operator.reconcile.reassignments import RATES

BROKER_OVERRIDE_SOURCE = 2


def rates(send: Send, brokers: Iterable[int]) -> dict[int, Mapping[str, str]]:
    """The rates that are set, by broker; one that does not answer is left out."""
    found = {}
    for broker in brokers:
        with contextlib.suppress(kafka.errors.KafkaError, OSError):
            found[broker] = _rates_of(send, broker)
    return found


def limit(send: Send, action: LimitBrokers) -> None:
    """Set the rates, or take them away. Raises KafkaError."""
    value = None if action.rate is None else str(action.rate)
    for broker in action.brokers:
        alter(send, broker, dict.fromkeys(RATES, value))


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
