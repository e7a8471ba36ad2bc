"""What is refused while the audit trail has no room (`kavka.audit.failure.policy=reject`), before it has an effect.

- Produce: NOT_ENOUGH_REPLICAS for each partition, as every client sends again after its backoff, and gives up when it
  would anyway.
- Fetch of a consumer: KAFKA_STORAGE_ERROR for each partition, after `max_wait_ms`, as every client asks again, and
  shows its application nothing.
- A change: POLICY_VIOLATION, with words that say what to do, as a person or a program is to know at once.

What mends the trail is let in, and told all the same: nodes among each other, super users, requests on a controller's
own listener, and of everybody reading the audit topic and altering nothing but it. So are logins and refusals, whose
number is told however many they are, and what tells nothing. A node that stops has ended its trail, and lets in no
change of a client: another node tells it.
"""

from typing import TYPE_CHECKING, Any, Final, cast

from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message

if TYPE_CHECKING:
    from kavka_broker.request.broker import Broker, Client
    from kavka_broker.request.registry import Api

WORDS: Final = (
    f"the audit trail has no room, and kavka.audit.failure.policy is reject: {AUDIT_TOPIC} takes no events, and nothing"
    " was done; it can be mended by a super user, or by whoever may alter that topic"
)
STOPS: Final = (
    "this node stops, its audit trail has ended, and kavka.audit.failure.policy is reject: nothing was done; ask"
    " another node, or this one when it has started again"
)
#: By API: which topics an alteration of topics names.
NAMED: Final = {
    37: lambda request: [topic.name for topic in request.topics],
    43: lambda request: [topic.topic for topic in request.topic_partitions or ()],
    45: lambda request: [topic.name for topic in request.topics],
}
CONFIGS: Final = (33, 44)


def refusal(code: ErrorCode) -> BrokerError:
    """Return the error of a request that is refused."""
    return BrokerError(code, WORDS)


def refusal_of_change(broker: "Broker") -> BrokerError:
    """Return the error of a change that is refused."""
    return BrokerError(ErrorCode.POLICY_VIOLATION, STOPS if broker.is_trail_over else WORDS)


def is_mender(broker: "Broker", client: "Client") -> bool:
    """Whether requests of this client are let in, whatever they ask for."""
    if client.peer is None or client.role == "controller":
        return True
    return broker.authorizer is not None and broker.authorizer.is_super(client.principal)


def is_let_in(request: Message, api: "Api", broker: "Broker", client: "Client") -> bool:
    """Whether a change is let in although the trail may have no room; none is once the trail has ended."""
    if broker.is_trail_over and client.peer is not None:
        return False
    return is_mender(broker, client) or _mends(request, api.key)


def _mends(request: Any, key: int) -> bool:
    """Whether a request alters the audit topic and nothing else."""
    if key in CONFIGS:
        found = {(resource.resource_type, resource.resource_name) for resource in request.resources}
        return found == {(ResourceType.TOPIC, AUDIT_TOPIC)}
    return key in NAMED and set(NAMED[key](request)) == {AUDIT_TOPIC}


class Refusing:
    """A broker as a handler sees it whose request is refused: what would decide or change raises the refusal, where the
    handler has a place for errors.
    """

    def __init__(self, broker: "Broker", error: BrokerError) -> None:
        self._broker = broker
        self._error = error
        self.replicas = self.partitions = self.groups = self.quorum = _Raising(error)

    @classmethod
    def of(cls, broker: "Broker", error: BrokerError) -> "Broker":
        """Return such a broker."""
        return cast("Broker", cls(broker, error))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    @property
    def leads(self) -> bool:
        """Whether the active controller is asked here: it would be."""
        return True

    @property
    def active(self) -> Any:
        """Raises the refusal."""
        raise self._error


class _Raising:
    """A part of a broker of which nothing can be asked."""

    def __init__(self, error: BrokerError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error
