"""Which brokers live, as the active controller sees it: soft state that is gone with the controller's term.

A heartbeat prolongs its broker's session by `broker.session.timeout.ms`. When a session ends, the broker is fenced.
That alone would let a killed broker hold its partitions back for nine seconds, so the loss of the connection that
the heartbeats came by is a reason to look: where the system of the broker refuses a connection to its listener, the
process is gone and is fenced at once. Where somebody listens, or nothing comes back at all (a pause, a lost
network), the session decides as ever. A kill closes a process's sockets one after the other, so the listener may
answer for a moment longer than the connection: it is asked a few times.

A controller that becomes active gives every unfenced broker a whole session, and looks at each once: a node that was
controller and broker took its heartbeats with it.

None of this is needed for safety. To fence is a decision in the log like any other, and a broker that was fenced by
mistake comes back with its next heartbeat.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, TypeVar

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.heartbeats import Heartbeat, Standing, fence, heartbeat
from kavka_broker.core.metadata.decide.registrations import Presence
from kavka_broker.core.metadata.image.brokers import Registration
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.peers import Peers
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("controller")

R = TypeVar("R")

PROBE_MS_MAX: Final = 500
#: Pauses before each probe of a broker whose connection was lost.
LOOK_AFTER_MS: Final = (0, 20, 50, 100, 250, 500)
#: The pause after a refused decision to fence: too many others wait, or the lead is lost, which ends the retries.
FENCE_AGAIN_MS: Final = 100
NOTHING_SEEN: Final = -1
#: Refused node ids that are remembered, so that each refusal is logged once.
REFUSALS_MAX: Final = 1000


class Decider(Protocol):
    """The controller, as sessions use it."""

    node_id: int
    is_active: bool
    activated: list[Callable[[], None]]
    deactivated: list[Callable[[], None]]

    @property
    def metadata(self) -> Metadata: ...

    def submit(self, decide: Callable[[Metadata, int], Decision[R]]) -> Awaitable[R]: ...


class Connection(Protocol):
    """The connection that a heartbeat came by."""

    on_lost: list[Callable[[], None]]


@dataclass(slots=True, eq=False)
class Session:
    """One incarnation of one broker. `seen_offset` is the latest offset of its image."""

    broker_id: int
    epoch: int
    ends_ms: float
    is_fenced: bool = True
    seen_offset: int = NOTHING_SEEN
    handover_offset: int | None = None  # in controlled shutdown: from this offset on other brokers lead
    connection: Connection | None = None
    is_connected: bool = False
    on_lost: Callable[[], None] | None = None  # the callback registered with the connection
    timer: Timer | None = None


class Sessions:
    """Sessions by broker. `start` ties them to the controller's terms."""

    def __init__(
        self,
        controller: Decider,
        config: BrokerConfig,
        clock: Clock,
        timers: Timers,
        peers: Peers,
        look_after_ms: Sequence[int] = LOOK_AFTER_MS,
        fence_again_ms: int = FENCE_AGAIN_MS,
    ) -> None:
        self._controller = controller
        self._policy = policy_of(config)
        self._listener = config.listeners.inter_broker_name
        self._session_ms: int = config["broker.session.timeout.ms"]
        self._interval_ms: int = config["broker.heartbeat.interval.ms"]
        self._clock = clock
        self._timers = timers
        self._peers = peers
        self._look_after_ms = look_after_ms
        self._fence_again_ms = fence_again_ms
        self._sessions: dict[int, Session] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._refusals: dict[int, tuple[bytes, str]] = {}

    def start(self) -> None:
        """Begin sessions with each term of the controller, and stop at its end."""
        self._controller.activated.append(self._begin)
        self._controller.deactivated.append(self.stop)
        if self._controller.is_active:
            self._begin()

    def stop(self) -> None:
        """Drop all sessions: another controller decides now."""
        for session in self._sessions.values():
            _disarm(session)
        self._sessions.clear()
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def presence(self, broker: Registration | None) -> Presence:
        """Whether this incarnation was heard of within its session, and whether its connection still stands."""
        session = None if broker is None else self._sessions.get(broker.broker_id)
        if broker is None or session is None or session.epoch != broker.epoch:
            return Presence.SILENT
        return Presence.CONNECTED if session.is_connected else Presence.HEARD

    def refused(self, broker_id: int, incarnation_id: bytes, reason: str) -> bool:
        """Note a refused registration; returns whether it is new. The broker retries ten times a second."""
        if self._refusals.get(broker_id) == (incarnation_id, reason):
            return False
        if len(self._refusals) >= REFUSALS_MAX:
            self._refusals.clear()
        self._refusals[broker_id] = (incarnation_id, reason)
        return True

    async def heartbeat(self, command: Heartbeat, connection: Connection | None) -> Standing:
        """Prolong a session, and decide what the heartbeat asks for. Raises BrokerError: stale, or not active."""
        if not self._controller.is_active:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "only the active controller takes heartbeats")
        session = self._touch(command, connection)
        seen = session is not None and self._handover_seen(session)
        standing: Standing = await self._controller.submit(
            lambda metadata, _: heartbeat(metadata, command, self._policy, handover_seen=seen)
        )
        if session is None:
            return standing
        if standing.should_shut_down and session.handover_offset is not None and not self._handover_seen(session):
            # While the decision was committed a broker came back whose image is older.
            standing = replace(standing, should_shut_down=False)
        self._note_standing(session, command, standing)
        return standing

    # --- sessions -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.stop()
        for broker in self._controller.metadata.brokers.alive():
            self._open(broker)
            if broker.broker_id != self._controller.node_id:
                self._spawn(self._look_once(broker))

    def _open(self, broker: Registration) -> Session:
        ends_ms = self._clock.monotonic_ms() + self._session_ms
        session = Session(broker.broker_id, broker.epoch, ends_ms, broker.fenced)
        if (former := self._sessions.get(broker.broker_id)) is not None:
            _disarm(former)
        self._sessions[broker.broker_id] = session
        self._arm(session, self._session_ms)
        return session

    def _touch(self, command: Heartbeat, connection: Connection | None) -> Session | None:
        broker = self._controller.metadata.brokers.get(command.broker_id)
        if broker is None or broker.epoch != command.broker_epoch:
            return None
        session = self._sessions.get(command.broker_id)
        if session is None or session.epoch != broker.epoch:
            session = self._open(broker)
        session.ends_ms = self._clock.monotonic_ms() + self._session_ms
        session.seen_offset = max(session.seen_offset, command.metadata_offset)
        self._watch(session, connection)
        return session

    def _watch(self, session: Session, connection: Connection | None) -> None:
        """Watch the connection of the session's last heartbeat for its loss; a broker of this node has none."""
        if connection is not session.connection:
            _unwatch(session)
            session.connection = connection
            if connection is not None:
                session.on_lost = partial(self._lost, session, connection)
                connection.on_lost.append(session.on_lost)
        session.is_connected = True

    def _handover_seen(self, leaving: Session) -> bool:
        if leaving.handover_offset is None:
            return False
        return all(
            self._seen_by(broker.broker_id) >= leaving.handover_offset
            for broker in self._controller.metadata.brokers.alive()
            if broker.usable and broker.broker_id != leaving.broker_id
        )

    def _seen_by(self, broker_id: int) -> int:
        session = self._sessions.get(broker_id)
        return NOTHING_SEEN if session is None else session.seen_offset

    def _note_standing(self, session: Session, command: Heartbeat, standing: Standing) -> None:
        if session.is_fenced and not standing.is_fenced:
            log.info("broker.unfenced", broker=session.broker_id, epoch=session.epoch)
        session.is_fenced = standing.is_fenced
        if command.wants_shutdown and session.handover_offset is None:
            session.handover_offset = self._controller.metadata.offset
        if standing.is_fenced and standing.should_shut_down:
            log.info("broker.released", broker=session.broker_id, epoch=session.epoch)
            self._forget(session)

    def _forget(self, session: Session) -> None:
        _disarm(session)
        if self._sessions.get(session.broker_id) is session:
            del self._sessions[session.broker_id]

    # --- the end of a session -----------------------------------------------------------------------------------

    def _arm(self, session: Session, delay_ms: float) -> None:
        session.timer = self._timers.after(delay_ms, self._check, session)

    def _check(self, session: Session) -> None:
        late_ms = self._clock.monotonic_ms() - session.ends_ms
        if late_ms > self._interval_ms:
            # This process was stopped: heartbeats may wait unread in the sockets.
            late_ms = -self._interval_ms
            session.ends_ms = self._clock.monotonic_ms() + self._interval_ms
        if late_ms < 0:
            self._arm(session, -late_ms)
            return
        self._forget(session)
        self._spawn(self._fence(session.broker_id, session.epoch, f"no heartbeat in {self._session_ms} ms"))

    def _lost(self, session: Session, connection: Connection) -> None:
        session.is_connected = False
        if self._sessions.get(session.broker_id) is session and session.connection is connection:
            self._spawn(self._look(session, connection))

    async def _look(self, session: Session, connection: Connection) -> None:
        """Probe a broker's listener a few times, until it is fenced or a new connection is there."""
        for after_ms in self._look_after_ms:
            await asyncio.sleep(after_ms / 1000)
            broker = self._current(session.broker_id, session.epoch)
            if broker is None or session.connection is not connection or await self._look_once(broker):
                return

    async def _look_once(self, broker: Registration) -> bool:
        """Fence a broker whose listener refuses connections. Returns whether it was fenced."""
        endpoint = broker.endpoints.get(self._listener) or next(iter(broker.endpoints.values()), None)
        if endpoint is None or await self._peers.probe(endpoint.host, endpoint.port, PROBE_MS_MAX) is not False:
            return False
        reason = f"its connection was lost, and nobody listens at {endpoint.host}:{endpoint.port}"
        if (session := self._sessions.get(broker.broker_id)) is not None and session.epoch == broker.epoch:
            self._forget(session)
        await self._fence(broker.broker_id, broker.epoch, reason)
        return True

    def _current(self, broker_id: int, epoch: int) -> Registration | None:
        broker = self._controller.metadata.brokers.get(broker_id)
        return None if broker is None or broker.epoch != epoch or broker.fenced else broker

    async def _fence(self, broker_id: int, broker_epoch: int, reason: str) -> None:
        """Fence a broker without a session; retried until it is fenced, gone or has a session again."""
        while self._current(broker_id, broker_epoch) is not None and broker_id not in self._sessions:
            try:
                fenced = await self._controller.submit(
                    lambda metadata, _: fence(metadata, broker_id, broker_epoch, self._policy)
                )
            except BrokerError as error:
                problem = error.message or error.code.name
                log.warning("broker.not_fenced", broker=broker_id, epoch=broker_epoch, reason=problem)
                await asyncio.sleep(self._fence_again_ms / 1000)
            else:
                if fenced:
                    log.warning("broker.fenced", broker=broker_id, epoch=broker_epoch, reason=reason)
                return

    def _spawn(self, work: Awaitable[object]) -> None:
        async def run() -> None:
            await work

        task = asyncio.get_running_loop().create_task(run(), name="broker session")
        self._tasks[task] = None
        watch(task, forget=lambda ended: self._tasks.pop(ended, None))


def _unwatch(session: Session) -> None:
    if session.connection is not None and session.on_lost in session.connection.on_lost:
        session.connection.on_lost.remove(session.on_lost)
    session.on_lost = None


def _disarm(session: Session) -> None:
    _unwatch(session)
    if session.timer is not None:
        session.timer.cancel()
        session.timer = None
