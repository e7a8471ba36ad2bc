"""DescribeAcls (29): which access is allowed to whom.

- This broker has no authorizer, so nothing is denied and no rule is shown: SECURITY_DISABLED, as Apache Kafka without
  an authorizer says, which clients take as final.
Versions: flexible from 2.
"""

from typing import Final

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import BOTH, api
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_acls_request import DescribeAclsRequest
from kavka_broker.protocol.messages.describe_acls_response import DescribeAclsResponse

NO_AUTHORIZER: Final = "No Authorizer is configured"  # tools print these words


@api(DescribeAclsRequest, DescribeAclsResponse, versions=(1, 3), on=BOTH)
def describe_acls(request: DescribeAclsRequest, broker: Broker, client: Client) -> DescribeAclsResponse:
    del request, broker
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=f"{NO_AUTHORIZER} on the {client.role}"
    )
