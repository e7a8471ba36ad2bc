"""DescribeAcls (29): which access is allowed to whom.

- The rules that a filter selects, grouped by the pattern of their resources. Null, and ANY, select every value; MATCH
  selects by a name what holds for it.
- Without an authorizer nothing is denied and no rule is shown: SECURITY_DISABLED, as Apache Kafka says, which clients
  take as final.
- A filter with a word that this version does not know closes the connection.
Versions: flexible from 2.
"""

import asyncio
from typing import Final

from kavka_broker.core.authorization.access_rules import Rule, RuleFilter
from kavka_broker.core.authorization.acl_types import Operation, PatternType, Permission, ResourceType
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.delete_acls_request import DeleteAclsFilter
from kavka_broker.protocol.messages.describe_acls_request import DescribeAclsRequest
from kavka_broker.protocol.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, SMALL_BYTES_MAX, api, listing

NO_AUTHORIZER: Final = "No Authorizer is configured"  # tools print these words


@api(DescribeAclsRequest, DescribeAclsResponse, versions=(1, 3), on=BOTH, bytes_max=SMALL_BYTES_MAX)
@listing
def describe_acls(
    request: DescribeAclsRequest, broker: Broker, client: Client
) -> DescribeAclsResponse | asyncio.Task[DescribeAclsResponse]:
    """Answer the selected rules. Raises ProtocolViolation for unknown words."""
    wanted = filter_of(request)
    if broker.authorizer is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=f"{NO_AUTHORIZER} on the {client.role}"
        )
    return broker.slices.run(describe_all(wanted, list(broker.metadata.acls.rules.values())))


def describe_all(wanted: RuleFilter, rules: list[Rule]) -> Work[DescribeAclsResponse]:
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    cost = Cost()
    for rule in rules:
        if wanted.selects(rule):
            pattern = (rule.resource_type, rule.resource_name, rule.pattern_type)
            resource = resources.setdefault(pattern, DescribeAclsResource(*pattern))
            resource.acls.append(AclDescription(rule.principal, rule.host, rule.operation, rule.permission))
        if cost.add(2):
            yield
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def filter_of(asked: DescribeAclsRequest | DeleteAclsFilter) -> RuleFilter:
    """Return the filter of a request. Raises ProtocolViolation for a number that stands for no word."""
    for value, words in (
        (asked.resource_type_filter, ResourceType),
        (asked.pattern_type_filter, PatternType),
        (asked.operation, Operation),
        (asked.permission_type, Permission),
    ):
        check_word(value, words)
    return RuleFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def check_word(value: int, words: type[ResourceType] | type[PatternType] | type[Operation] | type[Permission]) -> None:
    """Raises ProtocolViolation for a number that stands for no word of access rules."""
    if not words.UNKNOWN < value <= max(words):
        raise ProtocolViolation(f"{words.__name__} {value} is unknown; {max(words).value} is the highest")
