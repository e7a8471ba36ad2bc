"""CreateAcls (30): allow or deny access.

- Each rule for itself: INVALID_REQUEST where it has no sense (`core.metadata.decide.acls`). A rule that is in force
  already is no error.
- Answered when the rules are committed; they hold on a broker as soon as its image has them.
- Without an authorizer each rule is SECURITY_DISABLED, and none is kept.
- A word that says of itself that it is unknown (0) closes the connection; one above those known is INVALID_REQUEST.
Versions: flexible from 2.
"""

from kavka_broker.api.a29_describe_acls import NO_AUTHORIZER
from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.metadata.decide.acls import create
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each

UNKNOWN = 0  # of all words of a rule


@api(
    CreateAclsRequest,
    CreateAclsResponse,
    versions=(1, 3),
    on=BOTH,
    forwarded=True,
    each=(Each("creations", "results", per_turn=200),),
)
async def create_acls(request: CreateAclsRequest, broker: Broker, client: Client) -> CreateAclsResponse:
    """Answer each rule's refusal, or none. Raises ProtocolViolation for unknown words."""
    del client
    rules = [rule_of(creation) for creation in request.creations]
    if broker.authorizer is None:
        disabled = BrokerError(ErrorCode.SECURITY_DISABLED, f"{NO_AUTHORIZER}.")
        return CreateAclsResponse(results=[result(disabled) for _ in rules])
    try:
        controller = broker.active
        ids = [controller.new_uuid() for _ in rules]
        refusals = await controller.submit(lambda metadata, _: create(metadata.acls, rules, ids))
    except BrokerError as error:
        refusals = [error] * len(rules)
    return CreateAclsResponse(results=[result(refusal) for refusal in refusals])


def rule_of(creation: AclCreation) -> Rule:
    """Return the rule that is asked for. Raises ProtocolViolation where a word says that it is unknown."""
    said = (creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type)
    if UNKNOWN in said:
        raise ProtocolViolation("an access rule with an unknown word")
    return Rule(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def result(refusal: BrokerError | None) -> AclCreationResult:
    if refusal is None:
        return AclCreationResult(0, "")
    return AclCreationResult(refusal.code, refusal.message)
