"""From a frame to the pieces of its answer.

`Dispatcher.begin` decodes the request, calls its handler and gives an `Exchange`: finished at once where the handler
did not wait, else with a future. It knows nothing of sockets; `net` sends what an exchange holds, in the order in
which the exchanges began.

What goes wrong, and what the peer sees (as Apache Kafka does it):

- a request of a client that has yet to say who it is (`core/authentication/login.py`): ProtocolViolation;
- a request behind the end of what the client has said (`core/authentication/session.py`): the connection closes;
- a request to a broker whose image is known to be outdated (`membership/outdated_image.py`): the connection closes, so
  that the client asks another broker who leads;
- an API key or version that is not served, or bytes that do not decode: ProtocolViolation, the connection closes;
- ApiVersions of a version that is not served: a v0 answer with UNSUPPORTED_VERSION and the table, so that the client
  can choose again;
- BrokerError out of a handler: the answer with that code, where the API has one at its top;
- ProtocolViolation out of a handler (Produce with acks=0 has no other way to tell): the connection closes;
- any other error of a handler: logged with its traceback, and UNKNOWN_SERVER_ERROR;
- a forwarded API that no active controller has answered in time: what the handler says without a controller;
- InvariantViolation or a failed assertion: nobody sees an answer, since the process stops.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple

from kavka_broker.core.audit.events import Window
from kavka_broker.core.audit.usage import UseWindow
from kavka_broker.core.authentication.login import SASL_AUTHENTICATE, SASL_HANDSHAKE, Login
from kavka_broker.core.authentication.session import Session
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX, shortened
from kavka_broker.dispatch.forwarding import Forwarded, forward
from kavka_broker.dispatch.large_requests import (
    WRITTEN_AT_ONCE_MAX,
    check_size,
    handle,
    handle_in_parts,
    is_long,
    read_at_once,
    read_large,
)
from kavka_broker.logs import get
from kavka_broker.loop.coroutine_time import Steps
from kavka_broker.loop.message_threads import AT_ONCE_BYTES_MAX
from kavka_broker.loop.slices import LoopTime
from kavka_broker.loop.turns import Flow
from kavka_broker.membership.outdated_image import OUTDATED
from kavka_broker.protocol.codec import TooManyElements
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import encode_response_parts, read_request_header
from kavka_broker.protocol.message import Message, Row, whole
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.quotas.client_quotas import REQUEST
from kavka_broker.quotas.sensor import Sensor
from kavka_broker.request.answer_memory import AnswerMemory
from kavka_broker.request.broker import Broker, Client, Connected, Enveloped
from kavka_broker.request.registry import CONTROLLER, Answer, Api, Postponed, Role
from kavka_broker.request.throttling import throttle

log = get("api")

API_VERSIONS = 18
ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS = 34, 35
#: What asks this broker of itself and of no leader: it is served when the broker's image is outdated, too.
OF_NO_LEADER: Final = frozenset(
    {API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS}
)
SIZE = Struct(">i")


class Exchange:
    """A request on the way to its answer. `pieces` are the answer's; None before it, and for a request without one."""

    __slots__ = (
        "answer",
        "api",
        "began_ns",
        "client",
        "counted_bytes",
        "is_login",
        "loop_ns",
        "make",
        "observed",
        "pieces",
        "sensor",
        "started_ms",
        "waiting",
        "written_bytes",
    )

    def __init__(self, api: Api, client: Client, started_ms: float, began_ns: int = 0) -> None:
        self.api = api
        self.client = client
        self.is_login = False  # the client has yet to say who it is
        self.counted_bytes = 0  # how much of `client.copied_bytes` the connection has counted
        self.started_ms = started_ms
        self.began_ns = began_ns  # since then it has the loop
        self.loop_ns = 0  # the time it held the loop before then, not charged yet
        self.sensor: Sensor | None = None  # pays for an answer that a thread writes
        self.observed: tuple[str, str] | None = None  # the client, if that is observed
        self.pieces: list[Any] | None = None
        self.answer: Message | None = None
        self.waiting: asyncio.Future[Any] | None = None  # the future of an Answer, or of an answer in bytes
        self.make: Callable[[], Answer] | None = None  # makes the answer once `waiting` is done
        self.written_bytes = 0  # of a long answer that counts in `answer_memory`

    def end_making(self) -> None:
        """Give back the place of an answer that is on its way, or whose connection has ended, and its request's."""
        self.client.end_room()
        making, self.client.making = self.client.making, None
        if making is not None:
            making.end()

    def forget(self) -> None:
        """Give everything back, and free it: the client has left. Its task holds it, also in the traceback of its end:
        a cycle would keep all that it has decoded and made until the oldest generation is collected, which is never.
        """
        self.end_making()
        self.waiting = self.make = None
        client = self.client
        client.on_request_forgotten = client.on_let_go = client.hurry = None

    @property
    def flow(self) -> Flow | None:
        """The client's flow, in which it takes turns on the loop. None for a request of this process."""
        return None if self.client.peer is None else self.client.peer.flow

    @property
    def queue_name(self) -> tuple[str, str]:
        """The client where it has turns of something else than the loop."""
        return self.client.queue_name

    @property
    def is_between_nodes(self) -> bool:
        """Whether only another node sends such a request: a follower's Fetch, or what the controller alone serves."""
        return self.api.on is CONTROLLER or (self.client.is_exempt and not self.api.pipelined)


class Written(NamedTuple):
    """An answer that is already encoded."""

    message: Message
    pieces: list[Any]


DURATION_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The upper bounds of the buckets in which requests are counted by their time."""


class ApiStats:
    """Counters of one API key, read by the metrics at scrape time. `by_duration` has a count for each bucket."""

    __slots__ = ("by_duration", "errors", "requests", "seconds")

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.seconds = 0.0
        self.by_duration = [0] * (len(DURATION_BOUNDS_S) + 1)


class Dispatcher:
    """Decodes, calls the handler, encodes, for the listeners of one role. `crash` is called with an error that must
    stop the process.
    """

    def __init__(
        self,
        broker: Broker,
        apis: Mapping[int, Api],
        crash: Callable[[BaseException], None],
        time: LoopTime,
        role: Role = "broker",
    ) -> None:
        self._broker = broker
        self._apis = {key: api for key, api in apis.items() if role in api.on}
        self._crash = crash
        self._time = time
        # The sensor that pays for the answer being sent, and since when.
        self._sending: Sensor | None = None
        self._sending_to: tuple[str, str] | None = None  # the client, while request percentages are observed
        self._sending_since_ns = 0
        self._role: Role = role
        self.stats = {key: ApiStats() for key in self._apis}

    @property
    def answers(self) -> AnswerMemory:
        """Return the memory of long answers, which counts what connections have not taken of theirs."""
        return self._broker.answers

    @property
    def audit(self) -> Window | None:
        """Return what counts for the audit trail, where there is one."""
        return self._broker.audit

    @property
    def use(self) -> UseWindow | None:
        """As `audit`, of delays by limits."""
        return self._broker.use

    def begin(self, frame: memoryview, peer: Connected, keep: Callable[[memoryview], memoryview]) -> Exchange:
        """Start a request. `keep` gives the frame for longer than this call. Raises ProtocolViolation where the
        connection has to be closed.
        """
        if self._sending is not None:
            self.sent()
        try:
            is_bare = peer.login is not None and peer.login.takes_bare_tokens
            exchange = self._begin_token(frame, peer) if is_bare else self._begin(frame, peer, keep)
        finally:
            self._time.payer = None
        if exchange.waiting is not None:
            exchange.loop_ns += self._time.now_ns() - exchange.began_ns
        return exchange

    def _begin(self, frame: memoryview, peer: Connected, keep: Callable[[memoryview], memoryview]) -> Exchange:
        began_ns = self._time.now_ns()
        header, body = read_request_header(frame)
        api = self._apis.get(header.api_key)
        if api is None:
            raise ProtocolViolation(f"API key {header.api_key} is not served")
        client_id = header.client_id or ""
        client = Client(
            header.api_version,
            client_id if len(client_id) <= NAME_CHARACTERS_MAX else shortened(client_id),
            header.correlation_id,
            peer.address,
            peer.listener,
            len(frame),
            peer.user,
            0,
            self._role,
            peer,
        )
        exchange = self._time.payer = Exchange(api, client, self._broker.clock.monotonic_ms(), began_ns)
        if not api.supports(header.api_version):
            self._refuse_version(exchange, peer)
            return exchange
        if (peer.login is not None or peer.session is not None or self._is_outdated) and not self._may_come(
            exchange, peer
        ):
            return exchange
        check_size(api, len(frame))
        if api.forwarded and self._role == "broker":
            client.copied_bytes = len(frame)
            exchange.waiting = self._task(forward(keep(frame), body, api, self._broker, client), exchange)
            return exchange
        if len(frame) > AT_ONCE_BYTES_MAX and not api.pipelined:
            client.copied_bytes = len(frame)
            exchange.waiting = self._task(self._serve_large(keep(frame), body, exchange), exchange)
            return exchange
        try:
            request = read_at_once(frame, body, api, header.api_version)
        except TooManyElements:
            client.copied_bytes, client.is_holding = len(frame), True
            exchange.waiting = self._task(self._serve_large(keep(frame), body, exchange), exchange)
            return exchange
        try:
            answer = handle(request, api, self._broker, client)
        except Exception as error:  # noqa: BLE001 - sorted out by `_failure`: nothing is swallowed
            answer = self._failure(exchange, error)
        if answer is None or isinstance(answer, Message):
            self._finish_or_write(exchange, answer)
        elif isinstance(answer, Postponed):
            exchange.waiting, exchange.make = answer.until, answer.make
        else:
            exchange.waiting = self._task(answer, exchange)
        return exchange

    @property
    def _is_outdated(self) -> bool:
        """Whether this broker's image names leaders that are none any more, and it knows that."""
        serving = self._broker.serving
        return serving is not None and serving.lifecycle.outdated.is_known and self._role == "broker"

    def _session_holds(self, exchange: Exchange, peer: Connected, session: Session) -> bool:
        """Whether a client is still known, or begins to renew its login. Otherwise there is no answer but the end of
        the connection, behind the answers that are owed.
        """
        if exchange.api.key == SASL_HANDSHAKE and session.begin_renewal(exchange.started_ms):
            peer.log_in_again(Login(session.settings, session.counts, session))
            return True
        if session.holds(exchange.started_ms):
            return True
        exchange.client.is_last = "its login does not hold any more, and it has not renewed it"
        return False

    def _may_come(self, exchange: Exchange, peer: Connected) -> bool:
        """Whether a client that is not known, or not for good, may ask for this, and whether anybody may. Raises
        ProtocolViolation where no answer can say no.
        """
        if self._is_outdated and exchange.api.key not in OF_NO_LEADER:
            exchange.client.is_last = OUTDATED
            return False
        if peer.login is None:
            return peer.session is None or self._session_holds(exchange, peer, peer.session)
        exchange.is_login = peer.login.is_first
        try:
            peer.login.check(exchange.api.key)
        except BrokerError as error:
            exchange.client.is_last = str(error)
            self._finish(exchange, self._failure(exchange, error))
            return False
        return True

    def _begin_token(self, token: memoryview, peer: Connected) -> Exchange:
        """Take a token without a request around it, and answer with the bare one of the mechanism. Raises
        ProtocolViolation for a token that proves nothing, as there is no answer that could say so.
        """
        api, client = self._apis[SASL_AUTHENTICATE], Client(0, "", 0, peer.address, peer.listener, len(token))
        client.user, client.role, client.peer = peer.user, self._role, peer
        exchange = self._time.payer = Exchange(api, client, self._broker.clock.monotonic_ms(), self._time.now_ns())
        exchange.is_login = peer.login is not None and peer.login.is_first
        answer = api.handle(SaslAuthenticateRequest(bytes(token)), self._broker, client)
        if isinstance(answer, Postponed):
            exchange.waiting, exchange.make = answer.until, partial(_refuse_token, client)
        else:
            assert isinstance(answer, SaslAuthenticateResponse)
            self._charge(exchange)
            exchange.answer, exchange.pieces = answer, [SIZE.pack(len(answer.auth_bytes)), answer.auth_bytes]
        return exchange

    def _task(self, answer: Awaitable[Any], exchange: Exchange) -> asyncio.Future[Any]:
        if isinstance(answer, Coroutine):
            answer = Steps(answer, exchange, self._time)
        return asyncio.ensure_future(answer)

    async def _serve_large(self, frame: memoryview, body: int, exchange: Exchange) -> Answer:
        broker, api, client = self._broker, exchange.api, exchange.client
        request = await read_large(frame, body, api, broker, client)
        answer = handle(request, api, broker, client)
        del frame, request  # frees both while the answer waits for others, as JoinGroup's does
        if answer is not None and not isinstance(answer, Message):
            answer = await self._task(answer, exchange)
        return answer

    def _finish_or_write(self, exchange: Exchange, answer: Answer | Forwarded | Written) -> None:
        """Finish, or have a thread write a long answer and wait again: the request has been charged already."""
        if isinstance(answer, Written):
            # What the thread took has come to the request's time.
            self._sending, self._sending_to = exchange.sensor, exchange.observed
            self._sending_since_ns = exchange.began_ns - exchange.loop_ns
            exchange.loop_ns = 0
            self._finish(exchange, answer)
            return
        self._charge(exchange)
        if exchange.client.throttle_time_ms:
            answer = told(answer, exchange)
        if isinstance(answer, Message) and is_long(answer, exchange.api, exchange.client):
            exchange.sensor, exchange.observed = self._sending, self._sending_to
            exchange.waiting = self._task(self._written(answer, exchange), exchange)
        else:
            self._finish(exchange, answer)

    async def _written(self, answer: Message, exchange: Exchange) -> Written:
        client, threads = exchange.client, self._broker.message_threads
        if client.making is None and not (exchange.api.is_counting or exchange.is_between_nodes):
            client.making = await self._broker.answers.turn(client.queue_name)
        pieces = await threads.write(answer, client.version, client.correlation_id, client.encoded)
        return Written(answer, pieces)

    def complete(self, exchange: Exchange) -> None:
        """Finish an exchange whose `waiting` is done; it may wait again for a long answer. Raises ProtocolViolation."""
        assert exchange.waiting is not None
        assert exchange.waiting.done()
        waiting, exchange.waiting = exchange.waiting, None
        if waiting.cancelled():
            # Without this answer, all later answers of the connection would be taken for others.
            raise ProtocolViolation(f"{exchange.api.name} was given up")
        make, exchange.make = exchange.make, None
        self.sent()
        exchange.began_ns, self._time.payer = self._time.now_ns(), exchange
        try:
            try:
                answer = waiting.result() if make is None else make()
            except Exception as error:  # noqa: BLE001 - sorted out by `_failure`: nothing is swallowed
                answer = self._failure(exchange, error)
            self._finish_or_write(exchange, answer)
        finally:
            self._time.payer = None
            del waiting  # an error in it has a traceback with this frame

    async def serve_enveloped(self, frame: memoryview, peer: Connected) -> Enveloped:
        """The answer to a frame that came in an envelope and has been kept. Raises ProtocolViolation."""
        exchange = self.begin(frame, peer, keep=lambda kept: kept)
        try:
            while exchange.waiting is not None:
                await asyncio.gather(exchange.waiting, return_exceptions=True)
                self.complete(exchange)
        finally:
            exchange.end_making()
        data = b"".join(exchange.pieces or ())[SIZE.size :]
        self.sent()  # the loop's next work is not charged to this client
        return Enveloped(exchange.answer, data, exchange.client.has_decided)

    async def ask(self, request: Message) -> Message:
        """Answer a request of this process, as if a listener had received it, in its newest version."""
        assert request.API_KEY is not None
        api = self._apis[request.API_KEY]
        client = Client(api.versions[1], "", 0, "", "", role=self._role)
        exchange = Exchange(api, client, self._broker.clock.monotonic_ms())
        try:
            answer = handle_in_parts(request, api, self._broker, client)
            if answer is not None and not isinstance(answer, Message):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - sorted out by `_failure`: nothing is swallowed
            answer = self._failure(exchange, error)
        assert answer is not None
        return answer

    def _finish(self, exchange: Exchange, answer: Answer | Forwarded | Written) -> None:
        if isinstance(answer, Forwarded):
            exchange.pieces = [SIZE.pack(len(answer.data)), answer.data]
            if len(answer.data) > WRITTEN_AT_ONCE_MAX:
                exchange.written_bytes = len(answer.data)
        elif isinstance(answer, Written):
            exchange.answer, exchange.pieces = answer.message, answer.pieces
            if exchange.client.making is not None:
                exchange.written_bytes = sum(map(len, answer.pieces))
                exchange.client.making.made(exchange.written_bytes)
        elif answer is not None:
            client = exchange.client
            exchange.answer = answer
            exchange.pieces = encode_response_parts(answer, client.version, client.correlation_id)
        if exchange.client.making is not None and not exchange.written_bytes:
            exchange.end_making()
        if exchange.client.room is not None:
            exchange.client.room.end()
        stats = self.stats[exchange.api.key]
        stats.requests += 1
        seconds = (self._broker.clock.monotonic_ms() - exchange.started_ms) / 1000
        stats.seconds += seconds
        stats.by_duration[bisect_left(DURATION_BOUNDS_S, seconds)] += 1

    def _charge(self, exchange: Exchange) -> None:
        """Count the time on the loop until now, and throttle a client that has taken too much of it."""
        client, quota = exchange.client, self._broker.quotas.requests
        name = None
        if client.is_exempt or exchange.api.on is CONTROLLER:
            sensor = quota.exempt
        elif exchange.is_login:
            sensor = quota.before_login
        else:
            name = (client.user, client.client_id)
            sensor = quota.resolved.get(name) or quota.sensor_of(*name, int(exchange.started_ms))
            sensor.last_used_ms = exchange.started_ms
        now_ns = self._time.now_ns()
        loop_ns = exchange.loop_ns + now_ns - exchange.began_ns
        exchange.loop_ns = 0
        exchange.began_ns = self._sending_since_ns = now_ns
        self._sending = sensor
        self._sending_to = name if quota.observed.is_on else None
        sensor.used_total += loop_ns
        if self._sending_to is not None:
            quota.observe(*self._sending_to, loop_ns, int(self._broker.clock.monotonic_ms()))
        if sensor.limit is not None:
            now_ms = int(self._broker.clock.monotonic_ms())
            delay_ms = quota.charge(sensor, loop_ns, now_ms)
            if delay_ms:
                throttle(client, self._broker, REQUEST, delay_ms, now_ms)

    def sent(self) -> None:
        """Count the time that encoding and sending the last answer has taken: the share of Kafka's network threads."""
        sensor = self._sending
        if sensor is None:
            return
        self._sending = None
        loop_ns = self._time.now_ns() - self._sending_since_ns
        sensor.used_total += loop_ns
        if self._sending_to is not None:
            now_ms = int(self._broker.clock.monotonic_ms())
            self._broker.quotas.requests.observe(*self._sending_to, loop_ns, now_ms)
        if sensor.limit is not None:
            self._broker.quotas.requests.add(sensor, loop_ns, int(self._broker.clock.monotonic_ms()))

    def _failure(self, exchange: Exchange, error: BaseException) -> Message:
        self.stats[exchange.api.key].errors += 1
        exchange.end_making()
        try:
            code, message = self._coded(exchange, error)
            answer = error_answer(exchange.api, exchange.client.version, code, message)
            if answer is None:
                raise ProtocolViolation(f"{exchange.api.name}: {error}")
            return answer
        finally:
            del error  # where it is raised, its traceback holds this frame

    def _coded(self, exchange: Exchange, error: BaseException) -> tuple[ErrorCode, str | None]:
        """Return the code and the message of an error. Raises what no answer can say."""
        try:
            match error:
                case BrokerError():
                    return error.code, error.message
                case ProtocolViolation():
                    raise error
                case AssertionError():
                    self._crash(error)
                    raise error
                case _:
                    log.exception("request.failed", error, api=exchange.api.name, version=exchange.client.version)
                    return ErrorCode.UNKNOWN_SERVER_ERROR, None
        finally:
            del error  # as above

    def _refuse_version(self, exchange: Exchange, peer: Connected) -> None:
        """Answer ApiVersions of a version that is not served. Raises ProtocolViolation for another request."""
        if exchange.api.key != API_VERSIONS:
            low, high = exchange.api.versions
            words = f"{exchange.api.name} v{exchange.client.version} is not served, v{low} to v{high} are"
            raise ProtocolViolation(words)
        if peer.login is not None:
            if not self._may_come(exchange, peer):
                return
            peer.login.refuse_versions()
        exchange.client.version = 0
        request = exchange.api.request()
        answer = exchange.api.handle(request, self._broker, exchange.client)
        assert isinstance(answer, Message)
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
        self._finish(exchange, answer)


def _refuse_token(client: Client) -> Message:
    raise ProtocolViolation(client.is_last)


def told(answer: Answer | Forwarded | Written, exchange: Exchange) -> Answer | Forwarded | Written:
    """Put into the answer how long the client has to wait."""
    throttle_time_ms = exchange.client.throttle_time_ms
    if isinstance(answer, Forwarded):
        return answer.throttled(exchange.api, exchange.client.version, throttle_time_ms)
    if isinstance(answer, Message) and hasattr(answer, "throttle_time_ms"):
        answer.throttle_time_ms = throttle_time_ms
    return answer


def error_answer(api: Api, version: int, code: ErrorCode, message: str | None) -> Message | None:
    """An answer of the API with this error; None if the answer has no error at its top."""
    fields = {row[1]: row for row in api.response.SCHEMA}
    if "error_code" not in fields or not carries(fields["error_code"], version):
        return None
    answer = api.response()
    answer.error_code = int(code)  # type: ignore[attr-defined]
    if message is not None and "error_message" in fields and carries(fields["error_message"], version):
        answer.error_message = message  # type: ignore[attr-defined]
    return answer


def carries(field: Row, version: int) -> bool:
    """Whether the field may have a value in this version, even if it is not written."""
    _, _, _, (low, high), _, _, _, _, is_ignorable, _ = whole(field)
    return is_ignorable or low <= version <= high
