"""DeleteAcls (31): take rules of access back.

- This broker has no authorizer: each filter is SECURITY_DISABLED. Rules that Apache Kafka kept in this cluster stay.
Versions: flexible from 2.
"""

from kavka_broker.api.a29_describe_acls import NO_AUTHORIZER
from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.division import Each
from kavka_broker.api.registry import BOTH, api
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_acls_request import DeleteAclsRequest
from kavka_broker.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse


@api(
    DeleteAclsRequest,
    DeleteAclsResponse,
    versions=(1, 3),
    on=BOTH,
    each=(Each("filters", "filter_results", per_turn=200),),
)
def delete_acls(request: DeleteAclsRequest, broker: Broker, client: Client) -> DeleteAclsResponse:
    del broker, client
    results = [DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, f"{NO_AUTHORIZER}.") for _ in request.filters]
    return DeleteAclsResponse(filter_results=results)
