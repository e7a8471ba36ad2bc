"""IncrementalAlterConfigs (44): change configs of topics, brokers, groups and client metrics by key (KIP-339).

- Operations: set, delete (back to the default), append to a list, subtract from it.
- A resource changes whole or not at all, and each for itself. One that is there twice is INVALID_REQUEST.
- A value that cannot stand is INVALID_CONFIG; a config that is read only at start, or that belongs to one broker and
  was sent for all, INVALID_REQUEST.
- The empty broker name alters the default of all brokers. A broker's id alters that broker alone.
- Levels of loggers are decided by the node that is asked (`broker_loggers`), where nothing else is asked with them.
- `validate_only` says what would happen, and nothing does.
Versions: flexible from 1.
"""

from collections import Counter

from kavka_broker.core.config.cordoned import KEY, check_cordoned
from kavka_broker.core.config.definition import ConfigError, split_list
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.configs import Change, Operation, alter_configs
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.broker_loggers import alter_loggers, is_about_loggers
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each


async def refused(
    request: IncrementalAlterConfigsRequest, broker: Broker, client: Client
) -> IncrementalAlterConfigsResponse | None:
    """The answer where log directories are to be cordoned that this broker does not have: no controller knows them."""
    del client
    return await broker.slices.whole(refused_in_slices(request, broker))


def refused_in_slices(
    request: IncrementalAlterConfigsRequest, broker: Broker
) -> Work[IncrementalAlterConfigsResponse | None]:
    cost, own = Cost(), str(broker.node_id)
    for resource in request.resources:
        if cost.add(1):
            yield
        if resource.resource_type != ResourceType.BROKER or resource.resource_name != own:
            continue
        for config in resource.configs:
            if cost.add(1):
                yield
            if (reason := misfit(config, broker)) is not None:
                asked = [Resource(found.resource_type, found.resource_name) for found in request.resources]
                return IncrementalAlterConfigsResponse(responses=[response(found, reason) for found in asked])
    return None


def misfit(config: AlterableConfig, broker: Broker) -> BrokerError | None:
    """Return what is wrong with log directories that are to be cordoned, if anything is."""
    if config.name != KEY or config.config_operation not in (Operation.SET, Operation.APPEND) or not config.value:
        return None
    try:
        check_cordoned(split_list(config.value), broker.config.log_dirs)
    except ConfigError as error:
        return BrokerError(ErrorCode.INVALID_REQUEST, str(error))
    return None


@api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    versions=(0, 1),
    on=BOTH,
    forwarded=True,
    refuses=refused,
    is_local=is_about_loggers,
    each=(Each("resources", "responses", per_turn=50),),
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, broker: Broker, client: Client
) -> IncrementalAlterConfigsResponse:
    del client
    if is_about_loggers(request):
        return IncrementalAlterConfigsResponse(responses=altered_loggers(request, broker))
    asked = [
        (
            Resource(resource.resource_type, resource.resource_name),
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    counts = Counter(resource for resource, _ in asked)

    def decide(metadata: Metadata, _: int) -> Decision[list[AlterConfigsResourceResponse]]:
        records: list[Message] = []
        answers = []
        for resource, changes in asked:
            try:
                check_count(counts[resource])
                records += alter_configs(metadata, resource, changes).records
                answers.append(response(resource, None))
            except BrokerError as reason:
                answers.append(response(resource, reason))
        return Decision([] if request.validate_only else records, answers)

    try:
        return IncrementalAlterConfigsResponse(responses=await broker.active.submit(decide))
    except BrokerError as error:
        return IncrementalAlterConfigsResponse(responses=[response(resource, error) for resource, _ in asked])


def altered_loggers(request: IncrementalAlterConfigsRequest, broker: Broker) -> list[AlterConfigsResourceResponse]:
    counts = Counter(resource.resource_name for resource in request.resources)
    answers = []
    for asked in request.resources:
        resource, reason = Resource(asked.resource_type, asked.resource_name), None
        try:
            check_count(counts[resource.name])
            alter_loggers(resource.name, asked.configs, broker, validate_only=request.validate_only)
        except BrokerError as error:
            reason = error
        answers.append(response(resource, reason))
    return answers


def check_count(count: int) -> None:
    """Raises BrokerError where a resource is named more than once."""
    if count > 1:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "the resource is named more than once; name it once")


def response(resource: Resource, reason: BrokerError | None) -> AlterConfigsResourceResponse:
    if reason is None:
        return AlterConfigsResourceResponse(0, None, resource.type, resource.name)
    return AlterConfigsResourceResponse(reason.code, reason.message, resource.type, resource.name)
