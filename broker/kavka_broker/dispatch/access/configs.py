"""Gates of configs: of topics and groups by their names, of all else by the cluster."""

from collections.abc import Callable
from typing import Any

from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.dispatch.access.gates import CLUSTER, GROUP, TOPIC, Access, Elements
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages import alter_configs_response, incremental_alter_configs_response
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResult
from kavka_broker.request.broker import Broker, Client


def by_resource(operation: Operation) -> Callable[[Any, Broker, Client, Access], BrokerError | None]:
    """Return the check of a resource that has configs. Of an unknown type the handler says what is wrong."""

    def refusal(resource: Any, broker: Broker, client: Client, access: Access) -> BrokerError | None:
        del broker, client
        match resource.resource_type:
            case ResourceType.TOPIC:
                kind, name = TOPIC, resource.resource_name
            case ResourceType.GROUP:
                kind, name = GROUP, resource.resource_name
            case ResourceType.BROKER | ResourceType.BROKER_LOGGER | ResourceType.CLIENT_METRICS:
                kind, name = CLUSTER, CLUSTER_NAME
            case _:
                return None
        return None if access.may(operation, kind, name) else access.refusal(operation, kind, name)

    return refusal


def described(resource: Any, refusal: BrokerError) -> DescribeConfigsResult:
    return DescribeConfigsResult(refusal.code, refusal.message, resource.resource_type, resource.resource_name)


def altered(resource: Any, refusal: BrokerError) -> alter_configs_response.AlterConfigsResourceResponse:
    return alter_configs_response.AlterConfigsResourceResponse(
        refusal.code, refusal.message, resource.resource_type, resource.resource_name
    )


def altered_by_key(
    resource: Any, refusal: BrokerError
) -> incremental_alter_configs_response.AlterConfigsResourceResponse:
    return incremental_alter_configs_response.AlterConfigsResourceResponse(
        refusal.code, refusal.message, resource.resource_type, resource.resource_name
    )


DESCRIBE_CONFIGS = Elements("resources", "results", by_resource(Operation.DESCRIBE_CONFIGS), described)
ALTER_CONFIGS = Elements("resources", "responses", by_resource(Operation.ALTER_CONFIGS), altered)
INCREMENTAL_ALTER_CONFIGS = Elements("resources", "responses", by_resource(Operation.ALTER_CONFIGS), altered_by_key)
