"""DeleteAcls (31): take rules of access back.

- The rules that each filter selects, as DescribeAcls (29) does; the answer names them. A rule goes once, and is named
  by every filter that selects it.
- At most 10,000 rules a request, otherwise INVALID_REQUEST.
- Without an authorizer each filter is SECURITY_DISABLED, and rules that were kept before stay.
Versions: flexible from 2.
"""

from kavka_broker.api.a29_describe_acls import NO_AUTHORIZER, filter_of
from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.metadata.decide.acls import delete, exact
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.delete_acls_request import DeleteAclsRequest
from kavka_broker.protocol.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each


@api(
    DeleteAclsRequest,
    DeleteAclsResponse,
    versions=(1, 3),
    on=BOTH,
    forwarded=True,
    each=(Each("filters", "filter_results", per_turn=200),),
)
async def delete_acls(request: DeleteAclsRequest, broker: Broker, client: Client) -> DeleteAclsResponse:
    """Answer the rules that are gone. Raises ProtocolViolation for unknown words."""
    del client
    filters = [filter_of(wanted) for wanted in request.filters]
    if broker.authorizer is None:
        disabled = BrokerError(ErrorCode.SECURITY_DISABLED, f"{NO_AUTHORIZER}.")
        return DeleteAclsResponse(filter_results=[result(disabled) for _ in filters])
    found: list[list[Rule] | BrokerError] = []
    try:
        controller = broker.active
        # A filter that may select many rules is held against all of them: a thread does that.
        submit = controller.submit if all(map(exact, filters)) else controller.submit_long
        found = await submit(lambda metadata, _: delete(metadata.acls, filters))
    except BrokerError as error:
        found += [error.as_value()] * len(filters)
    return DeleteAclsResponse(filter_results=[result(outcome) for outcome in found])


def result(found: list[Rule] | BrokerError) -> DeleteAclsFilterResult:
    if isinstance(found, BrokerError):
        return DeleteAclsFilterResult(found.code, found.message)
    return DeleteAclsFilterResult(0, None, [DeleteAclsMatchingAcl(0, None, *rule) for rule in found])
