"""One client's connection: frames in, answers out, in the order of the requests.

Five things can hold a connection back, and each costs nothing while it lasts:

- an answer that waits (a long poll, a rebalance): the next request is not begun, except behind Produce, whose effect is
  over when it waits for its acknowledgements;
- a throttled client: the connection is muted for `throttle_time_ms` from the moment of the charge (KIP-219), also where
  the answer that says so still waits for its acknowledgements: whoever pipelines gets no more than whoever does not;
- a slow reader: nothing is begun while more than `OUTBOX_BYTES_MAX` waits to be sent;
- the others: of what it has sent ahead at most `REQUESTS_PER_TURN_MAX` are begun in one turn of the loop;
- other clients: where more is asked than the loop has time for, it waits for the turn of its client (`turns`).

While held back the socket is read only until the inbox is full, and while muted or waiting for a turn not at all; then
the kernel's window does the rest. It is not read either while the requests of all connections have used up
`queued.max.request.bytes`, and its next is a longer one. Of a new connection, and of one that was just muted, little is
read at a time: what it has sent ahead would be kept for as long as it is held back.
"""

import asyncio
from collections import deque
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.login import Login
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.dispatch.dispatcher import Dispatcher, Exchange
from kavka_broker.interfaces import Clock
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.loop.turns import CONNECTION_NS, NS_PER_BYTE, Flow
from kavka_broker.net.inbox import Inbox
from kavka_broker.net.limits import Limits
from kavka_broker.net.outbox import GATHERED_BYTES_MAX, Outbox
from kavka_broker.net.tls import USER_CHARACTERS_MAX
from kavka_broker.net.transports import free, stream_of
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.quotas.sensor import HeldTime, Holding
from kavka_broker.request.broker import Connected

OUTBOX_BYTES_MAX = 1024 * 1024
IN_FLIGHT_MAX = 64
NO_USER = (
    "no rule of ssl.principal.mapping.rules is about its certificate, it has no subject in DER, or names a user by more"
    f" than {USER_CHARACTERS_MAX} characters"
)
_NUMBERS: Final = count(1)
REQUESTS_PER_TURN_MAX = 64
"""A small request takes 4 to 40 microseconds."""


class ConnectionOwner(Protocol):
    """The listener of a connection, which counts it."""

    name: str
    dispatcher: Dispatcher | None
    limits: Limits
    sasl: SaslSettings | None
    authentications: Authentications
    clock: Clock
    timers: Timers
    received_bytes: int

    def user_of(self, transport: asyncio.Transport, /) -> str | None: ...

    def opened(self, connection: "Connection", /) -> None: ...

    def told_login(self, address: str, user: str | None, /) -> None: ...

    def told_failure(self, address: str, /) -> None: ...

    def closed(self, connection: "Connection", /) -> None: ...

    def refused(self, connection: "Connection", reason: str, /) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """A connection of `listener`, which holds the dispatcher, the limits and the set of all connections."""

    def __init__(self, listener: ConnectionOwner) -> None:
        self._listener = listener
        assert listener.dispatcher is not None, "a listener serves once it has a dispatcher"
        self._dispatcher = listener.dispatcher
        self._inbox = Inbox(listener.limits.request_bytes_max, listener.limits.memory)
        self._exchanges: deque[Exchange] = deque()
        self._is_blocked = False
        self.is_paused = False
        self._turns = listener.limits.turns
        self._waits_for_turn = False
        self._has_turn = False
        self._waits_to_be_read = False  # in its next turn, for the first time since it was muted
        self._flow: Flow  # that of newcomers, until the first request tells whose it is
        self._former_flow: Flow | None = None  # in whose turn that request was begun
        self._reads_ahead = False
        self._received_bytes = self._charged_bytes = 0
        self._has_ended = False  # the client sends nothing more
        self.mute: Timer | None = None
        self._held: Holding  # the held time of the quota's share for which the connection is muted
        self.muted_until_ms = 0.0
        self.login_deadline: Timer | None = None  # until the client has logged in for the first time
        self.last_active_ms = 0.0
        self.doing = ""  # the API served last, for the watchdog
        self._taken_bytes = 0  # bytes taken by the client, at the last sweep

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        began_ns = self._turns.now_ns()
        self._transport = transport = stream_of(transport)
        listener, address = self._listener, transport.get_extra_info("peername")
        host, port = address[:2] if address else ("", 0)
        self.peer = Connected(host, listener.name, port, next(_NUMBERS))
        user = listener.user_of(transport)
        if user is not None:
            self.peer.user = user
        if (sasl := listener.sasl) is not None:
            self.peer.login, self.peer.on_login = Login(sasl, listener.authentications), self._login_changed
            self._bound_frames()
            self.login_deadline = listener.timers.after(listener.limits.login_ms_max, self._end_login)
        self.outbox = Outbox(transport)
        self.last_active_ms = listener.clock.monotonic_ms()
        self._flow = self._turns.join_newcomers(listener.name, host)
        listener.opened(self)
        listener.told_login(host, user)
        if user is None:
            self.close(NO_USER)
        self._turns.charge_too(self._flow, self._turns.now_ns() - began_ns + CONNECTION_NS)

    def _login_changed(self) -> None:
        """Note that the client has logged in, or begins to do so again."""
        self._end_deadline()
        self._bound_frames()

    def _end_deadline(self) -> None:
        if self.login_deadline is not None:
            self.login_deadline.cancel()
            self.login_deadline = None  # it holds this connection

    def _end_login(self) -> None:
        """Close the connection of a client that has not logged in in time, unless a failed login closes it already."""
        login = self.peer.login
        assert login is not None, "a login ends its deadline"
        if not login.has_failed and not self._transport.is_closing():
            login.fail()
            self._listener.told_failure(self.peer.address)
            self.close(f"it has not logged in for {self._listener.limits.login_ms_max} ms (kavka.login.timeout.ms)")

    def _bound_frames(self) -> None:
        """Take only short frames while the client says who it is, also when it does so again."""
        login, bytes_max = self.peer.login, self._listener.limits.request_bytes_max
        self._inbox.frame_bytes_max = bytes_max if login is None else min(bytes_max, login.settings.receive_bytes_max)

    def connection_lost(self, exc: Exception | None) -> None:
        began_ns = self._turns.now_ns()
        self._listener.closed(self)
        self.outbox.clear()
        self._listener.limits.memory.forget(self._advance)
        self._inbox.close()
        self._end_mute()
        self._end_deadline()
        for exchange in self._exchanges:
            if exchange.waiting is not None:
                exchange.waiting.cancel()
            self._give_back_copy(exchange)
            exchange.forget()
        self._exchanges.clear()
        self.peer.on_login = None
        for tell in list(self.peer.on_lost):
            tell()
        self._leave_turns(began_ns)
        free(self._transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox.room() if self._reads_ahead else self._inbox.little_room()

    def buffer_updated(self, nbytes: int) -> None:
        self._inbox.received(nbytes)
        self._received_bytes += nbytes
        self._listener.received_bytes += nbytes
        self.last_active_ms = self._listener.clock.monotonic_ms()
        self._advance()

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._owes_a_begin():
            return True
        self.outbox.end()
        return False

    def _owes_a_begin(self) -> bool:
        """Whether a request that was sent whole is yet to begin, and gets no answer: a producer that uses acks=0
        may leave as soon as it has sent. A client that leaves before an answer wants none, nor the requests behind it,
        and one that does not take its answers wants no more of them.
        """
        if self._transport.get_write_buffer_size():
            return False
        if self._is_blocked:
            return self._exchanges[-1].client.is_holding
        return bool(self._inbox.waiting_bytes) and self._is_held_back()

    def pause_writing(self) -> None:
        """The transport holds a chunk back: the outbox waits for `resume_writing`."""

    def resume_writing(self) -> None:
        began_ns = self._turns.now_ns()
        self.outbox.resume()
        self._charge(began_ns)
        self._advance()

    def close(self, reason: str) -> None:
        """Close at once, and say why in one line."""
        self._listener.refused(self, reason)
        self._transport.abort()

    def _violated(self, violation: ProtocolViolation) -> None:
        if self.peer.login is not None:
            self.peer.login.fail()
        self.close(str(violation))

    def close_after(self, delay_ms: int, reason: str) -> None:
        """Hear nothing of the client any more, and close when the delay is over."""
        self._end_mute()
        self._end_deadline()
        self._held = Holding(HeldTime())
        now_ms = self._listener.clock.monotonic_ms()
        self._held.begin(int(now_ms))
        self.muted_until_ms = now_ms + delay_ms
        self.mute = self._listener.timers.after(delay_ms, partial(self.close, reason))
        # A transport that is new begins to read in this turn, even if it is told not to.
        asyncio.get_running_loop().call_soon(self._read_or_pause)

    def abort(self) -> None:
        self._transport.abort()

    def idle_ms(self, now_ms: float) -> float:
        """Return how long nothing has come in or gone out. Called once a sweep: bytes taken since then count as now."""
        taken_bytes = self.outbox.sent_bytes - self._transport.get_write_buffer_size()
        if taken_bytes != self._taken_bytes:
            self._taken_bytes, self.last_active_ms = taken_bytes, now_ms
        return now_ms - self.last_active_ms

    @property
    def is_muted(self) -> bool:
        """Whether the client is over a quota, and is not read from for now."""
        return self.mute is not None

    def _is_held_back(self) -> bool:
        return (
            self._is_blocked
            or self._waits_for_turn
            or self.mute is not None
            or self.outbox.waiting_bytes > OUTBOX_BYTES_MAX
            or len(self._exchanges) >= IN_FLIGHT_MAX
            or self._transport.is_closing()
        )

    def _advance(self) -> None:
        """Begin every request that has arrived and may begin."""
        try:
            self._begin_all()
        except ProtocolViolation as violation:
            self._violated(violation)
            return
        except Exception:
            # A defect of ours: the request is gone, and the next answer would be taken for its own.
            self.abort()
            raise
        self._inbox.give_back()
        if self._is_blocked and self._inbox.waiting_bytes:
            self._hurry()
        if self._inbox.is_starved:
            self._listener.limits.memory.wait(self._advance)
        if self._has_ended and not self._owes_a_begin():
            self.outbox.end()
        else:
            self._read_or_pause()

    def _hurry(self) -> None:
        """Tell the waiting request, if it can do with less time, that another has come behind it."""
        client = self._exchanges[-1].client
        client.is_hurried = True
        if client.hurry is not None:
            client.hurry()

    def _begin_all(self) -> None:
        turns, outbox = self._turns, self.outbox
        if not self._has_turn and self._inbox.waiting_bytes and not self._may_begin() and not self._is_held_back():
            self._wait_for_turn()  # others are to go first
            return
        outbox.gather()
        begun, began_ns, end_ns = 0, turns.now_ns(), turns.quantum_ns
        end_ns += began_ns
        try:
            while not self._is_held_back():
                is_over = begun and (begun == REQUESTS_PER_TURN_MAX or turns.now_ns() >= end_ns)
                if is_over and self._inbox.waiting_bytes:
                    self._wait_for_turn()
                    break
                frame = self._inbox.next_frame()
                if frame is None:
                    break
                begun += 1
                if len(frame) > GATHERED_BYTES_MAX:
                    # The work takes a while: finished answers must not wait for it.
                    outbox.flush()
                self._begin(frame)
        finally:
            outbox.flush()
            self._dispatcher.sent()
            self._charge(began_ns)

    def _may_begin(self) -> bool:
        """Whether its client may have the loop now. A newcomer goes with the other connections of its client."""
        if self._turns.may_begin(self._flow):
            return True
        if not self._flow.is_part or self._waits_for_turn or self.peer.login is not None:
            return False
        client_id = self._inbox.first_client_id()
        flow = None if client_id is None else self._turns.join_known(self.peer.user, client_id)
        if flow is None:
            return False
        self._turns.leave(self._flow)
        self._flow = self.peer.flow = flow
        return self._turns.may_begin(flow)

    def _wait_for_turn(self) -> None:
        if not self._waits_for_turn:
            self._waits_for_turn = True
            self._turns.wait(self._flow, self._take_turn)

    def _take_turn(self) -> bool:
        """Begin what may begin; the others have gone first."""
        self._waits_for_turn = False
        if not self._transport.is_closing():
            if self._waits_to_be_read:
                self._waits_to_be_read = False
                self._turns.charge(self._flow, CONNECTION_NS)
            self._has_turn = True
            try:
                self._advance()
            finally:
                self._has_turn = False
        return True

    def _charge(self, began_ns: int) -> None:
        """Count what this client has had of the loop: time since then, and bytes."""
        all_bytes = self._received_bytes + self.outbox.sent_bytes
        cost_ns = self._turns.now_ns() - began_ns + (all_bytes - self._charged_bytes) * NS_PER_BYTE
        self._charged_bytes = all_bytes
        self._turns.charge(self._flow, cost_ns)
        former, self._former_flow = self._former_flow, None
        if former is not None:
            self._turns.charge_too(former, cost_ns)
            self._turns.leave(former)

    def _know_client(self, exchange: Exchange) -> None:
        """Take turns with the client of the first request from now on, whatever client ids the others name: who could
        be another client in each turn would be new in each.
        """
        flow, client = self._flow, exchange.client
        if exchange.is_login:
            return  # it may call itself what it likes, and stays among the newcomers of its address
        if flow.client[0] == client.user and (flow.is_of_peer or not exchange.is_between_nodes):
            return
        if self._former_flow is None:
            self._former_flow = flow
        else:
            self._turns.leave(flow)
        client_id = client.client_id if flow.is_part else flow.client[1]
        self._flow = self.peer.flow = self._turns.join(client.user, client_id, is_peer=exchange.is_between_nodes)

    def _leave_turns(self, began_ns: int) -> None:
        self._turns.charge(self._flow, self._turns.now_ns() - began_ns + CONNECTION_NS)
        self._turns.forget(self._flow, self._take_turn)
        self._turns.leave(self._flow)

    def _read_or_pause(self) -> None:
        inbox = self._inbox
        wants_pause = (
            self.mute is not None
            or inbox.is_starved
            or self._waits_for_turn
            or (not inbox.has_room and self._is_held_back())
        )
        if wants_pause != self.is_paused and not self._transport.is_closing():
            self.is_paused = wants_pause
            (self._transport.pause_reading if wants_pause else self._transport.resume_reading)()

    def _begin(self, frame: memoryview) -> None:
        exchange = self._dispatcher.begin(frame, self.peer, self._inbox.keep)
        self.doing = exchange.api.name
        self._know_client(exchange)
        self._mute_if_charged(exchange)
        if exchange.waiting is None and not self._exchanges:
            self._answer(exchange)
            return
        self._exchanges.append(exchange)
        if exchange.waiting is not None:
            if exchange.client.copied_bytes:
                exchange.counted_bytes = exchange.client.copied_bytes
                self._listener.limits.memory.promise(exchange.counted_bytes)
                exchange.client.on_request_forgotten = partial(self._give_back_copy, exchange)
            self._is_blocked = not exchange.api.pipelined
            if exchange.client.is_holding:
                self._is_blocked = True
                exchange.client.on_let_go = partial(self._let_go, exchange)
            exchange.waiting.add_done_callback(partial(self._on_done, exchange))

    def _on_done(self, exchange: Exchange, waited: "asyncio.Future[Any]") -> None:
        del waited  # it holds its error, whose traceback holds this frame
        if self._transport.is_closing():
            self._give_back_copy(exchange)
            exchange.forget()
            return
        began_ns = self._turns.now_ns()
        try:
            self._dispatcher.complete(exchange)
        except ProtocolViolation as violation:
            self._violated(violation)
            return
        except Exception:
            # An answer that cannot be written is a defect of ours; the answers behind it must not wait forever.
            self.abort()
            raise
        self._mute_if_charged(exchange)
        if exchange.waiting is not None:
            exchange.waiting.add_done_callback(partial(self._on_done, exchange))
            return
        self._give_back_copy(exchange)
        if exchange.written_bytes:
            self.outbox.promise(exchange.written_bytes, partial(self._dispatcher.answers.held, self.close))
            exchange.end_making()
        if not exchange.api.pipelined or exchange.client.is_holding:
            # A long answer that waits for one before it is not followed by another.
            self._is_blocked = exchange.written_bytes > OUTBOX_BYTES_MAX
        # Tasks hold the exchange, which holds them. Without cycles the garbage collector has nothing to do.
        exchange.client.on_request_forgotten = exchange.client.on_let_go = None
        while self._exchanges and self._exchanges[0].waiting is None:
            self._answer(self._exchanges.popleft())
        if not self._exchanges:
            self._is_blocked = False
        self._dispatcher.sent()
        self._charge(began_ns)
        if self._inbox.waiting_bytes or self.is_paused or self._has_ended or self.mute is not None:
            self._advance()

    def _give_back_copy(self, exchange: Exchange) -> None:
        """Give back the copy of a request that is not needed any more."""
        counted_bytes, exchange.counted_bytes = exchange.counted_bytes, 0
        if counted_bytes:
            self._listener.limits.memory.take_back(counted_bytes)

    def _let_go(self, exchange: Exchange) -> None:
        """Let the next requests begin: this one has done what had to come first, and has been charged for it."""
        if not self._transport.is_closing():
            self._mute_if_charged(exchange)
            self._is_blocked = False
            self._advance()

    def _answer(self, exchange: Exchange) -> None:
        if exchange.pieces is not None:
            self.outbox.send(exchange.pieces)
            if exchange.written_bytes:
                self.outbox.fulfil(exchange.written_bytes)
        if exchange.client.is_last:
            self.outbox.flush()
            self._listener.refused(self, exchange.client.is_last)
            self._transport.close()

    def _mute_if_charged(self, exchange: Exchange) -> None:
        """Take no more requests from a client that is over a quota; a shorter delay does not end a longer one."""
        held, exchange.client.held = exchange.client.held, None
        if held is None:
            self._reads_ahead = self.mute is None
            return
        self._reads_ahead = False
        throttle_time_ms, now_ms = exchange.client.throttle_time_ms, self._listener.clock.monotonic_ms()
        if now_ms + throttle_time_ms <= self.muted_until_ms:
            return
        self._end_mute(now_ms)
        held.begin(int(now_ms))
        self._held = held
        self.muted_until_ms = now_ms + throttle_time_ms
        self.mute = self._listener.timers.after(throttle_time_ms, self._unmute)

    def _end_mute(self, now_ms: float | None = None) -> None:
        if self.mute is not None:
            self.mute.cancel()
            self._held.end(int(self._listener.clock.monotonic_ms() if now_ms is None else now_ms))
            self.mute = None

    def _unmute(self) -> None:
        now_ms = self._listener.clock.monotonic_ms()
        rest_ms = self._held.rest_ms(int(now_ms))
        if rest_ms:
            self.muted_until_ms = now_ms + rest_ms
            self.mute = self._listener.timers.after(rest_ms, self._unmute)
            return
        self._end_mute()
        # Its client may have left meanwhile: however many did, and however many delays end at once, as many connections
        # are read and closed in a row as fit into a turn.
        self._waits_to_be_read = True
        self._wait_for_turn()
