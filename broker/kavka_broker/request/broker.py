"""What a handler may ask of the node, and what it knows of the client.

`Broker` is a plain record of the parts that `runtime` has wired together. Handlers take from it what they need; they
hold no state of their own.

A node is a broker, a controller, or both. The parts of a role stand in `Serving` and `Leading`. A node has no such
record of a role that it does not have, nor the listeners whose handlers would ask for one: asking is a mistake of ours.
`controller` is the exception, since brokers answer for it too; `active` says in Kafka's words that it is not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, NamedTuple

from kavka_broker.core.client_names import ANONYMOUS
from kavka_broker.core.log_once import ToldOnce
from kavka_broker.loop.message_threads import MessageThreads
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.request.answer_memory import AnswerMemory, Making
from kavka_broker.request.decoded_requests import DecodedRequests, Room
from kavka_broker.request.internal_topics import InternalTopics
from kavka_broker.request.request_bounds import BOUNDS, RequestBounds
from kavka_broker.request.topic_answers import TopicAnswers

if TYPE_CHECKING:
    from kavka_broker.controller.controller import Controller
    from kavka_broker.controller.quorum import Quorum
    from kavka_broker.controller.sessions import Sessions
    from kavka_broker.coordinator.groups.group_coordinator import GroupCoordinator
    from kavka_broker.coordinator.groups.leader_offsets import LeaderOffsets
    from kavka_broker.coordinator.internal_topic import InternalTopic
    from kavka_broker.coordinator.share.share_service import Sharing
    from kavka_broker.coordinator.transactions.marker_writes import MarkerWrites
    from kavka_broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
    from kavka_broker.core.audit.buffer import Journal
    from kavka_broker.core.audit.events import Window
    from kavka_broker.core.audit.usage import UseWindow
    from kavka_broker.core.authentication.delegation import TokenSecrets
    from kavka_broker.core.authentication.login import Login
    from kavka_broker.core.authentication.session import Session
    from kavka_broker.core.authorization.authorizer import Authorizer
    from kavka_broker.core.config.broker import BrokerConfig
    from kavka_broker.core.metadata.image.metadata import Metadata
    from kavka_broker.core.streams_group.topology import InternalTopic as ApplicationTopic
    from kavka_broker.interfaces import Clock
    from kavka_broker.loop.timers import Timers
    from kavka_broker.loop.turns import Flow
    from kavka_broker.membership.channel import ControllerChannel
    from kavka_broker.membership.delayed_fencing import Lingering
    from kavka_broker.membership.lifecycle import Lifecycle
    from kavka_broker.membership.producer_ids import ProducerIds
    from kavka_broker.membership.topic_creation import TopicMaker
    from kavka_broker.membership.unreachable_brokers import Suspects
    from kavka_broker.peers import Peers
    from kavka_broker.protocol.message import Message
    from kavka_broker.quotas.client_quotas import ClientQuotas
    from kavka_broker.quotas.sensor import Holding
    from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions
    from kavka_broker.replica.hosting.replica_manager import ReplicaManager
    from kavka_broker.replica.serving.fetches import Fetches
    from kavka_broker.replica.writing.produce_context import Writes
    from kavka_broker.request.registry import Role
    from kavka_broker.telemetry.client_metrics import ClientMetrics


class Connected:
    """The client of a connection, as far as known. A `Client` is made from it for each request."""

    __slots__ = (
        "address",
        "flow",
        "is_by_token",
        "is_enveloped",
        "listener",
        "login",
        "number",
        "on_login",
        "on_lost",
        "port",
        "session",
        "software_name",
        "software_version",
        "user",
    )

    def __init__(self, address: str, listener: str, port: int = 0, number: int = 0) -> None:
        self.address = address
        self.port = port
        self.number = number  # in the order in which connections are accepted; 0 for none of a client's own
        self.listener = listener
        self.is_enveloped = False  # a broker passes its requests on, and tells the audit trail of them
        self.user = ANONYMOUS
        self.is_by_token = False  # it has logged in by a delegation token
        self.login: Login | None = None  # while the client has yet to say who it is
        self.session: Session | None = None  # how long it holds what it has said; None: as long as the connection
        self.on_login: Callable[[], None] | None = None  # called when a login is over, and when one begins again
        self.software_name = self.software_version = ""
        self.flow: Flow | None = None  # with which it takes its turns on the loop
        self.on_lost: list[Callable[[], None]] = []  # called once, when the connection has ended

    def know(self, user: str, session: Session | None, *, is_by_token: bool = False) -> None:
        """Note that the client has proved to be this user."""
        self.user, self.login, self.session = user, None, session
        self.is_by_token = is_by_token
        if self.on_login is not None:
            self.on_login()
        if session is None:
            self.on_login = None  # no login begins again

    def log_in_again(self, login: Login) -> None:
        """Note that the client is about to prove again who it is."""
        self.login = login
        if self.on_login is not None:
            self.on_login()


class Enveloped(NamedTuple):
    """The answer to a request that came in an envelope."""

    answer: Message | None
    data: bytes  # the frame, with header and without size
    has_decided: bool  # as in `Client`


@dataclass(slots=True)
class Leading:
    """The parts of a controller."""

    controller: Controller
    sessions: Sessions


@dataclass(slots=True)
class Serving:
    """The parts of a broker."""

    lifecycle: Lifecycle
    replicas: ReplicaManager
    fetches: Fetches
    writes: Writes
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    transactions_topic: InternalTopic
    sharing: Sharing
    markers: MarkerWrites
    producer_ids: ProducerIds
    topics: TopicMaker
    suspects: Suspects
    lingering: Lingering
    client_metrics: ClientMetrics
    leader_offsets: LeaderOffsets


@dataclass(slots=True)
class Broker:
    """The parts of one running node, by its roles."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    clock: Clock
    timers: Timers
    metadata: Metadata
    quorum: Quorum
    peers: Peers
    quotas: ClientQuotas
    authorizer: Authorizer | None = None  # None: every client may do everything
    audit: Window | None = None  # counts what the audit trail tells, where there is one
    use: UseWindow | None = None  # likewise, of clients that are let through
    journal: Journal | None = None  # promises room for changes
    is_refusing: bool = False  # data and changes that the trail has no room for, see `audit_backpressure`
    is_trail_over: bool = False  # the node stops, and its audit trail takes nothing more
    refused: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("produce", "fetch", "change"), 0))
    under_way: dict[asyncio.Task[Any], None] = field(default_factory=dict)  # changes that are decided and told
    # Topics that clients have asked for, by connection, each with its client id (`automatic_topics`).
    wanted_topics: dict[Connected | None, tuple[str, dict[str, None]]] = field(default_factory=dict)
    creating: dict[asyncio.Task[None], None] = field(default_factory=dict)
    internal_topics: InternalTopics = field(default_factory=InternalTopics)  # of streams groups (`streams_topics`)
    bounds: RequestBounds = BOUNDS
    told_once: ToldOnce = field(default_factory=ToldOnce)  # what the log has told of clients
    token_secrets: TokenSecrets | None = None  # of delegation tokens; None: there are none
    random_bytes: Callable[[int], bytes] = token_bytes
    leading: Leading | None = None
    serving: Serving | None = None
    channel: ControllerChannel = field(init=False)  # made last, since it also asks this node's own handlers
    slices: Slices = field(default_factory=Slices, init=False)
    message_threads: MessageThreads = field(init=False)
    answers: AnswerMemory = field(init=False)
    decoded_requests: DecodedRequests = field(default_factory=DecodedRequests, init=False)
    topic_answers: TopicAnswers = field(default_factory=TopicAnswers, init=False)
    # Serves a forwarded request that came in an envelope.
    serve_enveloped: Callable[[memoryview, Connected], Awaitable[Enveloped]] = field(init=False)
    # Creates topics in the name of a client, behind its answer.
    create_topics: Callable[[Iterable[str], Client], None] = field(init=False)
    # Likewise the internal topics of a streams group; those that fail not again for that many milliseconds.
    create_internal_topics: Callable[[Sequence[ApplicationTopic], Client, int], None] = field(init=False)
    # Four of a broker's parts, which every Produce and Fetch asks: fields, as a property costs a call or two.
    replicas: ReplicaManager = field(init=False)
    partitions: HostedPartitions = field(init=False)
    fetches: Fetches = field(init=False)
    writes: Writes = field(init=False)

    def __post_init__(self) -> None:
        self.message_threads = MessageThreads(self.slices)
        self.answers = AnswerMemory(self.clock, self.timers)

    def serve(self, serving: Serving) -> None:
        """Take up the parts of a broker."""
        assert self.serving is None, "a broker is made once"
        self.serving = serving
        self.replicas, self.partitions = serving.replicas, serving.replicas.partitions
        self.fetches, self.writes = serving.fetches, serving.writes

    @property
    def controller(self) -> Controller | None:
        """The controller of this node, active or not; None on a node that is only a broker."""
        return None if self.leading is None else self.leading.controller

    @property
    def as_controller(self) -> Leading:
        """The parts of a controller, for handlers that run only on controllers."""
        assert self.leading is not None, "a node that is no controller"
        return self.leading

    @property
    def as_broker(self) -> Serving:
        """The parts of a broker, for handlers that run only on brokers."""
        assert self.serving is not None, "a node that is no broker"
        return self.serving

    @property
    def sessions(self) -> Sessions:
        return self.as_controller.sessions

    @property
    def lifecycle(self) -> Lifecycle:
        return self.as_broker.lifecycle

    @property
    def groups(self) -> GroupCoordinator:
        return self.as_broker.groups

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.as_broker.transactions

    @property
    def markers(self) -> MarkerWrites:
        return self.as_broker.markers

    @property
    def producer_ids(self) -> ProducerIds:
        return self.as_broker.producer_ids

    @property
    def topics(self) -> TopicMaker:
        return self.as_broker.topics

    @property
    def suspects(self) -> Suspects:
        return self.as_broker.suspects

    @property
    def lingering(self) -> Lingering:
        return self.as_broker.lingering

    @property
    def leader_offsets(self) -> LeaderOffsets:
        return self.as_broker.leader_offsets

    @property
    def client_metrics(self) -> ClientMetrics:
        return self.as_broker.client_metrics

    @property
    def leads(self) -> bool:
        """Whether the active controller is in this process."""
        return self.leading is not None and self.leading.controller.is_active

    @property
    def active(self) -> Controller:
        """The active controller, to submit a decision to. Raises NOT_CONTROLLER where it is elsewhere."""
        if self.leading is None or not self.leads:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "the active controller is elsewhere, or not known")
        return self.leading.controller


@dataclass(slots=True)
class Client:
    """The sender of one request, and how it was sent.

    A handler whose client is over a quota calls `throttle`. The connection takes `held`, counts in it, and is muted for
    `throttle_time_ms` from then on; the answer names that time too, and leaves as soon as it is made (KIP-219).
    """

    version: int
    client_id: str
    correlation_id: int
    address: str
    listener: str
    size_bytes: int = 0  # the size of the request, without its length field
    user: str = ANONYMOUS  # the name of the principal, of type User
    throttle_time_ms: int = 0
    role: Role = "broker"  # the role of the listener that received it
    peer: Connected | None = None  # its connection; None where the request was made in this process
    held: Holding | None = None  # counts the connection's muted time, until the connection takes it
    # Set by a handler that waits before its effect: later requests of the connection wait until `let_go`.
    is_holding: bool = False
    on_let_go: Callable[[], None] | None = None
    # Request bytes kept beyond the handler: they count in `queued.max.request.bytes` until the answer.
    copied_bytes: int = 0
    on_request_forgotten: Callable[[], None] | None = None
    # A part of the request is decided for good: no controller may be asked for the whole request again.
    has_decided: bool = False
    # Set by a handler that has counted its answer and found it long: a thread writes it.
    has_long_answer: bool = False
    # The place of an answer that is long, or may be; the exchange ends it.
    making: Making | None = None
    # What a large request takes of memory, decoded.
    room: Room | None = None
    # The path of the arrays of its answer whose elements are encoded already.
    encoded: tuple[str, ...] = ()
    # The error of a commit that the request has waited for: it waits for no other one.
    commit_error: ErrorCode = ErrorCode.NONE
    # Set by a gate: whether the client may describe the topic of this name; None where it may describe all.
    may_describe: Callable[[str], bool] | None = None
    may_create: Callable[[str], bool] | None = None  # likewise
    # Set by a long poll: the next request of its connection has arrived, so it should not wait much longer.
    hurry: Callable[[], None] | None = None
    is_exempt: bool = False  # its time counts against no quota
    is_answered: bool = False  # its request goes on behind the answer: no quota can hold it back any more
    is_last: str = ""  # why the connection is closed after the answer
    is_hurried: bool = False  # the next request had arrived before the long poll began to wait

    @property
    def principal(self) -> str:
        """The principal as access rules name it, with its type."""
        return f"User:{self.user}"

    @property
    def queue_name(self) -> tuple[str, str]:
        """In whose turn it has what is scarce: its principal, or without a login its address."""
        return (self.user, self.address if self.user == ANONYMOUS else "")

    @property
    def connection_number(self) -> int:
        """The number of its connection, in the order in which they were accepted; 0 for none."""
        return 0 if self.peer is None else self.peer.number

    @property
    def has_own_connection(self) -> bool:
        """Whether the client itself sent the request here: it was neither made in this process nor enveloped."""
        return self.peer is not None and not self.peer.is_enveloped

    @property
    def is_by_token(self) -> bool:
        """Whether the client has logged in by a delegation token."""
        return self.peer is not None and self.peer.is_by_token

    def throttle(self, throttle_time_ms: int, held: Holding) -> None:
        """Have the connection muted for `throttle_time_ms`, unless another quota wants it muted for longer."""
        if throttle_time_ms > self.throttle_time_ms:
            self.throttle_time_ms, self.held = throttle_time_ms, held

    def forget_request(self) -> None:
        """Stop counting the request's bytes: the waiting answer does not need them."""
        self.copied_bytes = 0
        self.end_room()
        if self.on_request_forgotten is not None:
            self.on_request_forgotten()

    def end_room(self) -> None:
        """Give back what the decoded request took."""
        if self.room is not None:
            self.room.end()

    def let_go(self) -> None:
        """Let the next requests of the connection begin, after `is_holding`."""
        self.is_holding = False
        if self.on_let_go is not None:
            self.on_let_go()
