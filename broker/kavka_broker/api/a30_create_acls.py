"""CreateAcls (30): allow or deny access.

- This broker has no authorizer: each rule is SECURITY_DISABLED, and none is kept.
Versions: flexible from 2.
"""

from kavka_broker.api.a29_describe_acls import NO_AUTHORIZER
from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.division import Each
from kavka_broker.api.registry import BOTH, api
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_acls_request import CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse


@api(
    CreateAclsRequest, CreateAclsResponse, versions=(1, 3), on=BOTH, each=(Each("creations", "results", per_turn=200),)
)
def create_acls(request: CreateAclsRequest, broker: Broker, client: Client) -> CreateAclsResponse:
    del broker, client
    results = [AclCreationResult(ErrorCode.SECURITY_DISABLED, f"{NO_AUTHORIZER}.") for _ in request.creations]
    return CreateAclsResponse(results=results)
