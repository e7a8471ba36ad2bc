"""AlterConfigs (33): say all configs of a topic, broker, group or subscription, as before KIP-339.

- What the request does not name goes back to its default; so do keys that somebody else has set.
- Values are judged as by IncrementalAlterConfigs (44), which replaces this: whole resources, each for itself. A key
  without a value, and a key or a resource that is there twice, is INVALID_REQUEST.
- `validate_only` says what would happen, and nothing does.
Versions: flexible from 2.
"""

from collections import Counter

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.configs import replace_configs
from kavka_broker.core.metadata.image.configs import Resource
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_configs_request import AlterConfigsRequest
from kavka_broker.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each


@api(
    AlterConfigsRequest,
    AlterConfigsResponse,
    versions=(0, 2),
    on=BOTH,
    forwarded=True,
    each=(Each("resources", "responses", per_turn=50),),
)
async def alter_configs(request: AlterConfigsRequest, broker: Broker, client: Client) -> AlterConfigsResponse:
    del client
    asked = [
        (
            Resource(resource.resource_type, resource.resource_name),
            [(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    counts = Counter(resource for resource, _ in asked)

    def decide(metadata: Metadata, _: int) -> Decision[list[AlterConfigsResourceResponse]]:
        records: list[Message] = []
        answers = []
        for resource, values in asked:
            try:
                if counts[resource] > 1:
                    raise BrokerError(ErrorCode.INVALID_REQUEST, "the resource is named more than once; name it once")
                records += replace_configs(metadata, resource, values).records
                answers.append(response(resource, None))
            except BrokerError as reason:
                answers.append(response(resource, reason))
        return Decision([] if request.validate_only else records, answers)

    try:
        return AlterConfigsResponse(responses=await broker.active.submit(decide))
    except BrokerError as error:
        return AlterConfigsResponse(responses=[response(resource, error) for resource, _ in asked])


def response(resource: Resource, reason: BrokerError | None) -> AlterConfigsResourceResponse:
    code, message = (0, None) if reason is None else (reason.code, reason.message)
    return AlterConfigsResourceResponse(code, message, resource.type, resource.name)
