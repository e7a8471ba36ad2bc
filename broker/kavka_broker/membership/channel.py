"""What this node asks of the active controller, wherever that is.

`ask` goes to the controller that leads: by a call where it is in this process, else over one connection that all
questions share. Where it does not answer, or does not lead any more, the question waits for the quorum to name another
and is asked again, until its time is over. A change of leader ends the connection to the former one at once, so that
nobody waits for a process that is stopped while another leads. A node that knows of no leader asks the other
controllers in turn: it may be the last to hear, because its disk is full and it cannot take note of an election.

A question may thus be served twice. Each that the node has itself is harmless twice, or numbered by an epoch. A request
of a client that is passed on may be told what it has done itself: that its topic is there already, or there no more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from kavka_broker.logs import get
from kavka_broker.peers import ApiRanges, Peer, Peers, Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message, says

log = get("membership")

R = TypeVar("R", bound=Message)

#: Pause before a request is sent again, if no news of a leader has come meanwhile.
RETRY_MS: Final = 50.0
RETRY_MS_MAX: Final = 1_000.0


class Leadership(Protocol):
    """The quorum, as far as the channel needs it."""

    leader_listeners: list[Callable[[], None]]

    def leader_endpoint(self) -> tuple[str, int] | None:
        """The address of the active controller; None while no leader is known."""
        ...


class ControllerChannel:
    """Sends node `node_id`'s requests to the controller. `local` serves them while `leads` says it is here."""

    def __init__(
        self,
        node_id: int,
        quorum: Leadership,
        peers: Peers,
        *,
        leads: Callable[[], bool],
        local: Callable[[Message], Awaitable[Message]],
        others: Callable[[], Sequence[tuple[str, int]]] = tuple,
    ) -> None:
        self._quorum = quorum
        self._peers = peers
        self._leads = leads
        self._local = local
        self._others = others
        self._turn = 0
        self._client_id = f"node-{node_id}"
        self.endpoint: tuple[str, int] | None = None
        self.peer: Peer | None = None
        self._changes: dict[asyncio.Event, None] = {}
        quorum.leader_listeners.append(self._leader_changed)

    @property
    def versions(self) -> ApiRanges | None:
        """Return what the active controller serves; None where it is this process, or was never connected to."""
        if self._leads() or self.peer is None or self._quorum.leader_endpoint() != self.endpoint:
            return None
        return self.peer.versions

    async def ask(self, request: Message, response: type[R], *, timeout_ms: float) -> R:
        """The active controller's answer. Raises Unreachable where no controller answered in time."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + timeout_ms / 1000
        changed = asyncio.Event()
        self._changes[changed] = None
        left_ms, retry_ms = timeout_ms, RETRY_MS
        try:
            while True:
                changed.clear()
                try:
                    answer = await self._ask_once(request, response, left_ms)
                    if not is_elsewhere(answer):
                        return answer
                    reason = "the controller that was asked does not lead"
                except Unreachable as problem:
                    reason = str(problem)
                self._turn += 1
                await _wait(changed, min(retry_ms, 1000 * (ends - loop.time())))
                retry_ms = min(2 * retry_ms, RETRY_MS_MAX)
                left_ms = 1000 * (ends - loop.time())
                if left_ms < RETRY_MS:  # too little for an answer, and a request that times out ends the connection
                    raise Unreachable(f"{request.NAME}: no controller has answered in {timeout_ms:.0f} ms: {reason}")
        finally:
            del self._changes[changed]

    def close(self) -> None:
        """Close the connection; requests under way fail as Unreachable."""
        self._let_go()

    async def _ask_once(self, request: Message, response: type[R], timeout_ms: float) -> R:
        if self._leads():
            return await self._ask_here(request, response, timeout_ms)
        endpoint = self._quorum.leader_endpoint()
        if endpoint is None:
            endpoint, timeout_ms = self._another(), min(timeout_ms, RETRY_MS_MAX)
        if self.peer is None or endpoint != self.endpoint:
            self._let_go()
            self.endpoint = endpoint
            self.peer = self._peers.to(*endpoint, client_id=self._client_id)
        # The peer keeps the time: after so long a silence the next request needs a new connection.
        return await self.peer.ask(request, response, timeout_ms=timeout_ms)

    def _another(self) -> tuple[str, int]:
        others = self._others()
        if not others:
            raise Unreachable("no controller is known to lead")
        return others[self._turn % len(others)]

    async def _ask_here(self, request: Message, response: type[R], timeout_ms: float) -> R:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                answer = await self._local(request)
        except TimeoutError:
            raise Unreachable("the controller of this node has not decided it") from None
        assert isinstance(answer, response), f"{request.NAME} was answered with {type(answer).__name__}"
        return answer

    def _leader_changed(self) -> None:
        endpoint = self._quorum.leader_endpoint()
        if endpoint is not None and endpoint != self.endpoint:
            self._let_go()
        for changed in list(self._changes):
            changed.set()

    def _let_go(self) -> None:
        peer, self.peer = self.peer, None
        if peer is not None:
            peer.close()


def is_elsewhere(answer: Message) -> bool:
    """Whether the answering node is not the active controller. Some answers say so only in their parts."""
    code = getattr(answer, "error_code", None)
    return says(answer, ErrorCode.NOT_CONTROLLER) if code is None else code == ErrorCode.NOT_CONTROLLER


async def _wait(changed: asyncio.Event, delay_ms: float) -> None:
    try:
        async with asyncio.timeout(delay_ms / 1000):
            await changed.wait()
    except TimeoutError:
        return
