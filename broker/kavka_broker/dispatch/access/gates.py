"""Gates: what stands before a handler where access is restricted.

A gate asks the authorizer, hands the permitted part of a request on to the handler, and adds the refusals to the
answer. So a handler knows nothing of access, and no gate is in the way where there is no authorizer. The three kinds
here serve most APIs; `table` says which API has which.

A handler begins within the call of its gate, as Produce needs it; a gate that has very many names to look at takes
turns with others instead.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kavka_broker.core.audit.events import Window
from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation, ResourceType
from kavka_broker.core.authorization.authorizer import Authorizer
from kavka_broker.core.client_names import shortened
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import Answer, Api
from kavka_broker.request.split_requests import with_items

ITEMS_PER_TURN: Final = 500
"""Names that are looked at in one turn: three milliseconds."""
CODES: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER

Outcome = Answer | Awaitable[Answer]


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of the client of one request."""

    authorizer: Authorizer
    principal: str
    address: str
    audit: Window | None = None

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return self.authorizer.allows(self.principal, self.address, operation, resource_type, name)

    def may_cluster(self, operation: Operation) -> bool:
        return self.may(operation, CLUSTER, CLUSTER_NAME)

    def may_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        return self.authorizer.allows_some(self.principal, self.address, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """Return the client's operations on a resource, as bits."""
        return self.authorizer.operations(self.principal, self.address, resource_type, name)

    def refusal(self, operation: Operation, resource_type: ResourceType, name: str) -> BrokerError:
        """Return the error that says what the client lacks; the audit trail tells of it."""
        kind = resource_type.name.lower().replace("_", " ")
        if self.audit is not None:
            self.audit.denied(self.principal, self.address, operation.name, resource_type.name.lower(), name)
        words = f"{self.principal} at {self.address} may not {operation.name} the {kind} {shortened(name)}"
        return BrokerError(CODES[resource_type], words)


Gate = Callable[[Any, Api, Broker, Client, Access], Outcome]


def guarded(api: Api, gate: Gate | None, authorizer: Authorizer) -> Api:
    """Return the API with its gate before the handler; None is no gate. This process may ask its own handlers."""
    if gate is None:
        return api

    def handle(request: Message, broker: Broker, client: Client) -> Outcome:
        if client.peer is None:
            return api.handle(request, broker, client)
        return gate(request, api, broker, client, Access(authorizer, client.principal, client.address, broker.audit))

    return replace(api, handle=handle)


def then(outcome: Outcome, change: Callable[[Any], None]) -> Outcome:
    """Return an answer that is changed once it is there. An answer that is not sent stays so."""
    if outcome is None:
        return None
    if isinstance(outcome, Message):
        change(outcome)
        return outcome
    return _changed(outcome, change)


async def _changed(outcome: Awaitable[Answer], change: Callable[[Any], None]) -> Answer:
    answer = await outcome
    if answer is not None:
        change(answer)
    return answer


@dataclass(frozen=True, slots=True)
class OnCluster:
    """A gate of the whole request: an operation on the cluster.

    `refused` makes the answer of an API that has no error at its top.
    """

    operation: Operation
    refused: Callable[[Any, BrokerError, int], Message] | None = None  # the last is the version

    def __call__(self, request: Message, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
        if access.may_cluster(self.operation):
            return api.handle(request, broker, client)
        refusal = access.refusal(self.operation, CLUSTER, CLUSTER_NAME)
        if self.refused is None:
            raise refusal
        return self.refused(request, refusal, client.version)


@dataclass(frozen=True, slots=True)
class OnGroup:
    """A gate of the whole request: an operation on its group."""

    operation: Operation

    def __call__(self, request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
        if access.may(self.operation, GROUP, request.group_id):
            return api.handle(request, broker, client)
        raise access.refusal(self.operation, GROUP, request.group_id)


@dataclass(frozen=True, slots=True)
class Elements:
    """A gate of each element of a request: `asked` and `answered` are where they stand, and where their answers do.

    `refusal` says why an element is refused, or None; `refused` makes the answer of one. `is_open` lets a request
    through as a whole.
    """

    asked: str
    answered: str
    refusal: Callable[[Any, Broker, Client, Access], BrokerError | None]
    refused: Callable[[Any, BrokerError], object]
    is_open: Callable[[Access], bool] | None = None
    asks_always: bool = False  # the handler has something to say also where no element is permitted

    def __call__(self, request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
        items: Sequence[Any] = getattr(request, self.asked) or ()
        if self.is_open is not None and self.is_open(access):
            return api.handle(request, broker, client)
        if len(items) > ITEMS_PER_TURN:
            return self._in_turns(items, request, api, broker, client, access)
        return self._handed_on(self._refusals(items, broker, client, access), items, request, api, broker, client)

    async def _in_turns(
        self, items: Sequence[Any], request: Message, api: Api, broker: Broker, client: Client, access: Access
    ) -> Answer:
        refusals: list[BrokerError | None] = []
        try:
            async for some in broker.slices.in_turns(items, ITEMS_PER_TURN):
                refusals += self._refusals(some, broker, client, access)
            outcome = self._handed_on(refusals, items, request, api, broker, client)
        except BaseException:
            let_go(client)
            raise
        return outcome if outcome is None or isinstance(outcome, Message) else await outcome

    def _refusals(
        self, items: Sequence[Any], broker: Broker, client: Client, access: Access
    ) -> list[BrokerError | None]:
        return [self.refusal(item, broker, client, access) for item in items]

    def _handed_on(
        self,
        refusals: Sequence[BrokerError | None],
        items: Sequence[Any],
        request: Message,
        api: Api,
        broker: Broker,
        client: Client,
    ) -> Outcome:
        """Return the handler's answer to what is permitted, with the refusals behind it."""
        if not any(refusals):
            return api.handle(request, broker, client)
        both = list(zip(items, refusals, strict=True))
        answers = [self.refused(item, refusal) for item, refusal in both if refusal is not None]

        def add(answer: Message) -> None:
            getattr(answer, self.answered).extend(answers)

        permitted = [item for item, refusal in both if refusal is None]
        if permitted or self.asks_always:
            return then(api.handle(with_items(request, self.asked, permitted), broker, client), add)
        let_go(client)
        return then(api.response(), add)


def let_go(client: Client) -> None:
    """Let the next requests of a connection begin that a thread's reading has held up; no handler will."""
    if client.is_holding:
        client.let_go()
