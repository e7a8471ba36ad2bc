"""Hosts, the links between them, and connections that behave like TCP's.

A connection is two pipes, each in order and without loss: what the network loses is sent again, so it shows as delay.
While a link is cut, or the other host has no power, what was sent waits in the pipe, and arrives when the link is back:
nobody is told of a cut. What a peer does learn:

| the other side's | a peer sees |
|---|---|
| process closes, or is killed | the end of the stream, or a reset that overtakes what was under way |
| process is paused | nothing; connections to it still open, since its system answers |
| host loses power | nothing, until the host is up again and answers with a reset, or the kernel asks (`KEEPALIVE`) |
| process does not listen | a refusal |

A pipe takes `window_bytes` before the sender's transport holds back; a reader gets what has arrived in pieces of any
size, of one message or several.
"""

import asyncio
import contextvars
import errno
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from kavka_broker.net import acceptor
from tests.sim.accepting import Door
from tests.sim.holds import ANSWERS, API_KEY_AT, Hold, Piece
from tests.sim.loop import NOBODY, PROCESS, Process, SimLoop

CONNECT_SECONDS_MAX = 127.0
FIRST_FREE_PORT = 40_000
END, RESET = "end", "reset"

Link = tuple[str, str]


@dataclass(slots=True)
class Weather:
    """How the links are, in milliseconds and shares of one."""

    delay_ms: tuple[float, float] = (0.05, 1.0)
    slow_share: float = 0.0  # of the pieces, which were lost at first and come late
    slow_ms: tuple[float, float] = (20.0, 400.0)
    split_share: float = 0.05  # of the reads, which get a part of what is there


class Network:
    """The links between hosts, who listens where, and every connection."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.weather = Weather()
        self.pipes: dict[Pipe, None] = {}
        self._listeners: dict[tuple[str, int], Server] = {}
        self._cut: dict[Link, None] = {}
        self.holds: dict[str, Hold] = {}  # by host
        self._dark: dict[str, None] = {}  # hosts without power
        self._addresses: dict[str, str] = {}
        # Who is told of requests that arrive, by the bytes of their key; and of a connection that has ended.
        self.on_request: dict[bytes, Callable[[Process, Process], None]] = {}
        self.on_end: Callable[[Process, Process], None] = lambda source, target: None
        self.on_taking: Callable[[Door], None] = lambda door: None  # told of a broker that takes a connection now,
        self.on_waiting: Callable[[Door], None] = lambda door: None  # and of one that lets those who have come wait
        self.doors: dict[tuple[str, int], Door] = {}  # the last that a process has had there
        self._next_port = FIRST_FREE_PORT

    # --- faults -------------------------------------------------------------------------------------------------

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from `source` to `target` any more; the other way is another link."""
        self._cut[source, target] = None

    def heal(self, source: str, target: str) -> None:
        self._cut.pop((source, target), None)
        self._wake()

    @property
    def has_cuts(self) -> bool:
        """Whether anything is held back between any two."""
        return bool(self._cut or self._dark or self.holds)

    def heal_all(self) -> None:
        self._cut.clear()
        self.holds.clear()
        for pipe in self.pipes:
            pipe.is_held = False
        self._wake()

    def hold(self, host: str, api_key: int, peer: str = "", *, but_to_port: int = 0, only_to_port: int = 0) -> Hold:
        """Of each connection of this host that asks such a request nothing arrives from there on; with `peer` only of
        those to it, and of none to one port, or only of those to one.
        """
        self.holds[host] = Hold(api_key, peer, but_to_port, only_to_port)
        return self.holds[host]

    def hold_answers(self, host: str, peer: str) -> Hold:
        """What this host answers `peer` does not arrive, from now on."""
        self.holds[host] = Hold(ANSWERS, peer)
        return self.holds[host]

    def hold_no_more(self, host: str) -> None:
        """Connections that are made from now on are as others; those that are held still are."""
        self.holds.pop(host, None)

    def release(self, hold: Hold) -> None:
        """What was held arrives, whatever has become of who has sent it."""
        for pipe in hold.pipes:
            pipe.is_held = False
            pipe.arm()

    def reset_senders(self, hold: Hold) -> None:
        """The senders of what is held learn that their connections are gone, and the receivers do not."""
        for pipe in hold.pipes:
            pipe.target.out.push(RESET, urgent=True)

    def release_requests(self, hold: Hold) -> None:
        """As `release`, but the end of the connection is lost: the receiver learns of it when it answers."""
        for pipe in hold.pipes:
            pipe.forget_end()
        self.release(hold)

    def power_off(self, host: str) -> None:
        """Cut the power: its connections are gone, and their peers are not told."""
        self._dark[host] = None

    def power_on(self, host: str) -> None:
        self._dark.pop(host, None)
        self._wake()

    def reset(self, hold: Hold) -> None:
        """What was held is lost, and both sides learn that their connections are gone."""
        for pipe in hold.pipes:
            pipe.drop()
            pipe.is_held = False
            for end in (pipe.source, pipe.target):
                if end.is_open:
                    end.out.push(RESET, urgent=True)
        hold.pipes.clear()

    def reset_one(self) -> bool:
        """A router on the way forgets a connection; whether there was one."""
        live = [pipe for pipe in self.pipes if pipe.source.is_open and pipe.target.is_open]
        if not live:
            return False
        pipe = self.loop.random.choice(live)
        for end in (pipe.source, pipe.target):
            end.out.push(RESET, urgent=True)
        return True

    def is_dark(self, host: str) -> bool:
        return host in self._dark

    def carries(self, source: str, target: str) -> bool:
        return source == target or (
            (source, target) not in self._cut and source not in self._dark and target not in self._dark
        )

    def keep_alive(self, end: "Transport") -> None:
        """Let the kernel of a side that has taken a connection find out that its peer's host has lost its power."""
        idle_seconds = acceptor.KEEPALIVE.get("TCP_KEEPIDLE")
        if end.is_accepting and idle_seconds is not None:
            self.loop.call_later(idle_seconds, self._ask_peer, end, acceptor.KEEPALIVE["TCP_KEEPCNT"], context=NOBODY)

    def _ask_peer(self, end: "Transport", left: int) -> None:
        """Ask the peer's host, which answers with a reset; where none answers so often the connection ends."""
        ours, theirs = end.process.host, end.out.target.process.host
        if not end.is_open:
            return
        if self.carries(ours, theirs) and self.carries(theirs, ours):
            self.loop.call_soon(end.ended, RESET, context=end.context)
        elif left:
            seconds = acceptor.KEEPALIVE["TCP_KEEPINTVL"]
            self.loop.call_later(seconds, self._ask_peer, end, left - 1, context=NOBODY)
        else:
            self.loop.call_soon(end.times_out, context=end.context)

    def _wake(self) -> None:
        for pipe in list(self.pipes):
            pipe.arm()

    def address_of(self, host: str) -> str:
        """What a peer sees of it."""
        return self._addresses.setdefault(host, f"10.0.0.{len(self._addresses) + 1}")

    def has_lost_peer(self, process: str, address: str) -> bool:
        """Whether a connection of this process from there has no other end any more, of which it has not heard."""
        return any(
            pipe.target.process.name == process
            and pipe.target.is_open
            and not pipe.source.is_open
            and self.address_of(pipe.source.process.host) == address
            for pipe in self.pipes
        )

    # --- opening ------------------------------------------------------------------------------------------------

    def listen(self, factory: Callable[[], Any], host: str | None, port: int, *, start_serving: bool) -> "Server":
        process = PROCESS.get()
        assert process is not None, "only processes listen"
        if not port:
            port, self._next_port = self._next_port, self._next_port + 1
        if (process.host, port) in self._listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        server = Server(self, factory, process, (process.host, port), is_serving=start_serving)
        self._listeners[process.host, port] = server
        process.on_death[server.close] = None
        return server

    def forget(self, address: tuple[str, int], server: "Server") -> None:
        if self._listeners.get(address) is server:
            del self._listeners[address]

    async def connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple["Transport", Any]:
        process = PROCESS.get()
        assert process is not None, "only processes connect"
        await self._handshake(process.host, host)
        server = self._listeners.get((host, port))
        if server is None or not server.is_serving:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port} refuses")
        near = Transport(self, process, contextvars.copy_context(), (self.address_of(host), port))
        far = Transport(
            self, server.process, server.process.context(), (self.address_of(process.host), self._next_port)
        )
        self._next_port += 1
        window_bytes = self.loop.random.choice((4_096, 65_536, 1_048_576))
        near.out, far.out = Pipe(self, near, far, window_bytes), Pipe(self, far, near, window_bytes)
        if server.door is None:
            self.loop.call_soon(far.begin, server.factory, context=far.context)
        else:
            server.door.arrived(far)
        protocol = near.begin(factory)
        return near, protocol

    async def _handshake(self, source: str, target: str) -> None:
        """There and back once; where the link is cut, again and ever more seldom."""
        retry_seconds, started = 1.0, self.loop.time()
        while True:
            await asyncio.sleep(self.delay() * 2)
            if self.carries(source, target) and self.carries(target, source):
                return
            if self.loop.time() - started > CONNECT_SECONDS_MAX:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            await asyncio.sleep(retry_seconds)
            retry_seconds *= 2

    def delay(self) -> float:
        """Seconds on the way."""
        weather, random = self.weather, self.loop.random
        delay_ms = random.uniform(*weather.delay_ms)
        if weather.slow_share and random.random() < weather.slow_share:
            delay_ms += random.uniform(*weather.slow_ms)
        return delay_ms / 1000


class Server:
    """What `create_server` answers."""

    def __init__(
        self, network: Network, factory: Callable[[], Any], process: Process, address: tuple[str, int], is_serving: bool
    ) -> None:
        self.factory = factory
        self.process = process
        self.is_serving = is_serving
        self.sockets = [Socket(address)]
        self.door: Door | None = None  # where connections wait to be taken; else they are made at once
        self._network = network
        self._address = address

    async def start_serving(self) -> None:
        self.is_serving = True

    def close(self) -> None:
        self._network.forget(self._address, self)
        if self.door is not None and self.process.is_alive:
            self.door.close()

    async def wait_closed(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class Socket:
    """The name of a listening socket."""

    address: tuple[str, int]

    def getsockname(self) -> tuple[str, int]:
        return self.address


@dataclass(slots=True, eq=False)
class Pipe:
    """One direction of a connection."""

    network: Network
    source: "Transport"
    target: "Transport"
    window_bytes: int
    waiting_bytes: int = 0
    _pieces: deque[tuple[float, Piece]] = field(default_factory=deque)
    _is_armed: bool = False
    is_held: bool = False

    def __post_init__(self) -> None:
        self.network.pipes[self] = None

    def push(self, piece: Piece, *, urgent: bool = False) -> None:
        """Send; what is `urgent` overtakes and replaces what is under way."""
        if self.network.holds:
            self._may_be_held(piece)
        if urgent and not self.is_held:
            self._pieces.clear()
        at = self.network.loop.after(self.network.delay())
        if self._pieces:
            at = max(at, self._pieces[-1][0])
        self._pieces.append((at, piece))
        if isinstance(piece, bytes):
            self.waiting_bytes += len(piece)
        self.arm()

    def _may_be_held(self, piece: Piece) -> None:
        hold = self.network.holds.get(self.source.process.host)
        if hold is not None and not self.is_held and hold.takes(self, piece):
            self.is_held = True
            hold.pipes.append(self)

    def forget_end(self) -> None:
        """Of what is under way, only bytes arrive."""
        self._pieces = deque(piece for piece in self._pieces if isinstance(piece[1], bytes))

    def drop(self) -> None:
        """What is under way never arrives."""
        self._pieces.clear()

    def arm(self) -> None:
        """Deliver the first piece when it is there, unless something holds it back."""
        if self._is_armed or self.is_held or not self._pieces or self.target.is_reading_paused:
            return
        if self.network.carries(self.source.process.host, self.target.process.host):
            self._is_armed = True
            loop = self.network.loop
            loop.call_at(max(loop.time(), self._pieces[0][0]), self._arrive, context=NOBODY)

    def _arrive(self) -> None:
        self._is_armed = False
        if (
            self.is_held
            or not self._pieces
            or not self.network.carries(self.source.process.host, self.target.process.host)
        ):
            return
        piece = self._pieces.popleft()[1]
        if isinstance(piece, bytes):
            piece += self._behind()
        if not self.target.is_open:
            self._answer_with_reset(piece)
            return
        self._is_armed = True  # until it is read: the next piece waits behind it
        self.network.loop.call_soon(self._read, piece, context=self.target.context)

    def _behind(self) -> bytes:
        """What has arrived together with the first piece."""
        now, pieces, behind = self.network.loop.time(), self._pieces, b""
        while pieces and isinstance(piece := pieces[0][1], bytes) and pieces[0][0] <= now:
            pieces.popleft()
            behind += piece
        return behind

    def _answer_with_reset(self, piece: Piece) -> None:
        """The system answers with a reset, since no process is there."""
        self._pieces.clear()
        if isinstance(piece, bytes) and self.source.is_open:
            self.target.out.push(RESET, urgent=True)

    def _read(self, piece: Piece) -> None:
        self._is_armed = False
        if not self.target.is_open:
            self._answer_with_reset(piece)
            return
        if isinstance(piece, str):
            self.target.ended(piece)
            return
        if self.target.is_reading_paused:
            self._pieces.appendleft((0.0, piece))
            return
        if (tell := self.network.on_request.get(piece[API_KEY_AT])) is not None:
            tell(self.source.process, self.target.process)
        taken = self.target.received(piece)
        self.waiting_bytes -= taken
        if taken < len(piece):
            self._pieces.appendleft((0.0, piece[taken:]))
        self.network.loop.trace(self.source.process.host, self.target.process.name, taken, crc32(piece[:taken]))
        self.source.drained()
        self.arm()


class Transport(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: Network, process: Process, context: contextvars.Context, peer: tuple[str, int]) -> None:
        super().__init__({"peername": peer, "sockname": (process.host, 0)})
        self.network = network
        self.process = process
        self.context = context
        self.out: Pipe
        self.is_open = True
        self.is_reading_paused = False
        self.is_accepting = peer[1] >= FIRST_FREE_PORT  # the side that answers
        self._is_closing = False
        self._is_writing_paused = False
        self._high_bytes = 65_536
        self._protocol: Any = None
        process.on_death[self.turn_away] = None

    def begin(self, factory: Callable[[], Any]) -> Any:
        """The connection stands, for this side."""
        self._protocol = factory()
        self._protocol.connection_made(self)
        return self._protocol

    # --- what the other side does -------------------------------------------------------------------------------

    def received(self, data: bytes) -> int:
        """Read once; how many bytes that took."""
        random, weather = self.network.loop.random, self.network.weather
        if len(data) > 1 and random.random() < weather.split_share:
            data = data[: random.randint(1, len(data) - 1)]
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            self._protocol.data_received(data)
            return len(data)
        room = memoryview(self._protocol.get_buffer(len(data)))
        assert room, "get_buffer() gave no room"
        taken = min(len(room), len(data))
        room[:taken] = data[:taken]
        self._protocol.buffer_updated(taken)
        return taken

    def ended(self, how: str) -> None:
        """The other side is gone."""
        if how == RESET:
            self._lost(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
        elif not self._protocol.eof_received():
            self.close()

    def times_out(self) -> None:
        """The other side answers nothing any more."""
        self._lost(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))

    def drained(self) -> None:
        """The other side has read something."""
        if self._is_writing_paused and self.is_open and not self.get_write_buffer_size():
            self._is_writing_paused = False
            self.network.loop.call_soon(self._resume_writing, context=self.context)

    def _resume_writing(self) -> None:
        if self.is_open:
            self._protocol.resume_writing()

    # --- what this side does ------------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self._is_closing or not self.is_open or not len(data):
            return
        self.out.push(bytes(data))
        if self.get_write_buffer_size() > self._high_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(bytes(piece) for piece in list_of_data))

    def get_write_buffer_size(self) -> int:
        return max(0, self.out.waiting_bytes - self.out.window_bytes)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = 65_536 if high is None else high

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False
        self._incoming().arm()

    def is_reading(self) -> bool:
        return not self.is_reading_paused

    def is_closing(self) -> bool:
        return self._is_closing or not self.is_open

    def can_write_eof(self) -> bool:
        return False

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def close(self) -> None:
        if self.is_closing():
            return
        self._is_closing = True
        self.out.push(END)
        self.network.loop.call_soon(self._lost, None, context=self.context)

    def abort(self) -> None:
        if self.is_open and not self._is_closing:
            self._is_closing = True
            self.out.push(RESET, urgent=self.network.loop.random.random() < 0.5)
            self.network.loop.call_soon(self._lost, None, context=self.context)

    def _lost(self, error: Exception | None) -> None:
        if not self.is_open:
            return
        self._forget()
        self.process.on_death.pop(self.turn_away, None)
        self._protocol.connection_lost(error)

    def _forget(self) -> None:
        self.is_open = False
        self._is_closing = True
        self.network.on_end(self.process, self.out.target.process)
        for pipe in (self.out, self._incoming()):
            if not pipe.source.is_open and not pipe.target.is_open:
                self.network.pipes.pop(pipe, None)

    def turn_away(self) -> None:
        """Its system closes what it had open. A host without power does not, and loses what it had not sent yet."""
        self._forget()
        if self.network.is_dark(self.process.host):
            self.out.drop()
            self.network.keep_alive(self.out.target)
        else:
            self.out.push(RESET, urgent=self.network.loop.random.random() < 0.5)

    def _incoming(self) -> Pipe:
        return self.out.target.out
