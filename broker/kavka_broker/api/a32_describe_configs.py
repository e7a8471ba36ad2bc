"""DescribeConfigs (32): the configs of topics, brokers, groups and client metrics, with where each value comes from.

- A topic: every config. A broker by its id: every config, only from that broker itself. The empty broker: what was
  altered for all brokers. A group, a subscription to client metrics: every config, whether there is one or not.
  Loggers of a broker: only from that broker itself (`broker_loggers`).
- Named keys filter; none named means all. Unknown keys are left out.
- The value of a secret is null. Synonyms and documentation come when they are asked for.
- An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, another broker's id or an unknown type of resource INVALID_REQUEST.
Versions: documentation and type from 3; flexible from 4.
"""

from collections.abc import Iterable

from kavka_broker.core.config.describe import (
    Described,
    describe_broker,
    describe_client_metrics,
    describe_every_broker,
    describe_group,
    describe_topic,
)
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.topic_names import problem_with
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.broker_loggers import describe_loggers
from kavka_broker.request.metadata_answers import layers
from kavka_broker.request.registry import BOTH, api, listing
from kavka_broker.request.split_requests import Each

SHOWN_MAX = 100
"""Characters of a wrong name in a message, which can be as long as an answer allows."""


@api(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    versions=(1, 4),
    on=BOTH,
    each=(Each("resources", "results", per_turn=20, once=True),),
)
@listing
def describe_configs(request: DescribeConfigsRequest, broker: Broker, client: Client) -> DescribeConfigsResponse:
    del client
    return DescribeConfigsResponse(results=[describe(resource, request, broker) for resource in request.resources])


def describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, broker: Broker
) -> DescribeConfigsResult:
    answer = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        described = configs_of(Resource(resource.resource_type, resource.resource_name), broker)
    except BrokerError as reason:
        answer.error_code, answer.error_message = reason.code, reason.message
        return answer
    keys = resource.configuration_keys
    answer.configs = [entry(config, request) for config in described if not keys or config.name in keys]
    return answer


def configs_of(resource: Resource, broker: Broker) -> Iterable[Described]:
    """The configs of a resource. Raises BrokerError."""
    match resource.type:
        case ResourceType.TOPIC:
            if (problem := problem_with(resource.name)) is not None:
                raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            if broker.metadata.topics.get(resource.name) is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{resource.name}'")
            return describe_topic(broker.metadata.configs.topic(resource.name), layers(broker))
        case ResourceType.BROKER if not resource.name:
            return describe_every_broker(layers(broker))
        case ResourceType.BROKER:
            check_own(resource.name, broker)
            return describe_broker(layers(broker))
        case ResourceType.BROKER_LOGGER:
            check_own(resource.name, broker)
            return describe_loggers()
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS:
            if not resource.name:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "name the resource: it has no common default")
            said = broker.metadata.configs.of(resource)
            is_group = resource.type == ResourceType.GROUP
            return describe_group(said, layers(broker)) if is_group else describe_client_metrics(said)
    raise BrokerError(ErrorCode.INVALID_REQUEST, f"resources of type {resource.type} have no configs")


def check_own(name: str, broker: Broker) -> None:
    """Raises BrokerError where another broker is named."""
    if name != str(broker.node_id):
        problem = f'this is broker {broker.node_id}, not "{name[:SHOWN_MAX]}"; ask that broker, or leave the id empty'
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)


def entry(config: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = config.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=config.sensitive,
        synonyms=[DescribeConfigsSynonym(said.name, said.value, said.source) for said in synonyms],
        config_type=config.type,
        documentation=documentation(config.name) if request.include_documentation else None,
    )


def documentation(name: str) -> str | None:
    # Documentation is seldom asked for, so it is imported only on request.
    from kavka_broker.core.config.documentation import ABOUT

    return ABOUT.get(name)
