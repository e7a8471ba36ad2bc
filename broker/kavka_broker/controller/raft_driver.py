"""Runs what the quorum's rules ask for, strictly in order.

    happen(event)    the event is given to the rules once all effects of earlier ones are done, often at once
    serve(...)       the same for a request; its answer leaves after the effects before it

Most effects are done where they stand: an append to the page cache, a request put on its way. Two wait for the disk, in
a thread, and everything behind them waits as well: a vote that is promised, and a snapshot that replaces the log. The
sync of the log is not among them. It runs beside everything else; what is appended meanwhile shares the next one.

A full disk is not a broken disk: what finds no room is tried again, and everything behind it waits. Any other effect
that cannot be done leaves log and rules in disagreement: the process stops, and the next start reads what is there.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from errno import ENOSPC
from typing import Any, Final, Protocol, TypeVar

from kavka_broker.controller.log_sync import LogSync
from kavka_broker.controller.metadata_batches import control_batch
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.write_retries import Notes, WriteRetries
from kavka_broker.core.raft.effects import (
    AdoptSnapshot,
    Append,
    AppendFetched,
    Committed,
    Effect,
    Flush,
    Followed,
    Later,
    Led,
    Note,
    Persist,
    Respond,
    SaveChunk,
    Send,
    Truncate,
)
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.node import RaftNode
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kavka_broker.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kavka_broker.protocol.messages.vote_response import VoteResponse

log = get("raft")

R = TypeVar("R", bound=Message)
Event = Callable[[int], list[Effect]]
Handle = Callable[[Any, int], tuple[Message | Later, list[Effect]]]

RESPONSES: Final = {
    kind.API_KEY: kind
    for kind in (
        AddRaftVoterResponse,
        ApiVersionsResponse,
        BeginQuorumEpochResponse,
        EndQuorumEpochResponse,
        FetchResponse,
        FetchSnapshotResponse,
        RemoveRaftVoterResponse,
        UpdateRaftVoterResponse,
        VoteResponse,
    )
}
#: Requests of peers that may wait for the disk or for records. Further ones are refused, and retried.
WAITING_MAX: Final = 10_000
#: Voters change their address rarely; beyond this number the oldest connection is closed.
CONNECTIONS_MAX: Final = 100
#: A timer that fires later than this shows that the loop was not running.
STALL_MS: Final = 500


class Host(Protocol):
    """The owner of the runner; its methods are called at changes of leadership and at commits."""

    def committed(self, high_watermark: int) -> None: ...

    def led(self, epoch: int, start_offset: int) -> None: ...

    def followed(self, leader_id: int, epoch: int) -> None: ...

    def fetched(self, response: FetchResponse) -> None:
        """Note a leader's answer before the rules handle it."""

    async def adopt(self, snapshot: SnapshotId) -> list[Effect]:
        """Replace log and image by a downloaded snapshot; returns the effects that the rules ask for then."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that leaves after the effects of its request."""

    future: "asyncio.Future[Any]"
    response: Message | Later


class RaftDriver:
    """Carries out the effects of one `RaftNode`."""

    def __init__(
        self,
        node: RaftNode,
        metadata_log: MetadataLog,
        host: Host,
        ports: Ports,
        *,
        timers: Timers,
        request_timeout_ms: int,
        client_id: str,
    ) -> None:
        self.node = node
        self.is_failed = False
        self._notes = Notes(lambda: self.now_ms)
        self.retries = WriteRetries(self._notes)
        self.syncs = LogSync(
            metadata_log, ports.run_blocking, lambda: self.happen(node.flushed), self.fail, lambda: self.is_failed
        )
        self._log = metadata_log
        self._host = host
        self._peers = ports.peers
        self.clock = ports.clock
        self._timers = timers
        self._run_blocking = ports.run_blocking
        self._crash = ports.crash
        self._request_timeout_ms = request_timeout_ms
        self._client_id = client_id
        self._events: deque[Event] = deque()
        self._effects: deque[Effect | Reply] = deque()
        self._is_proceeding = False
        self.blocked: asyncio.Task[None] | None = None
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._later: dict[int, asyncio.Future[Any]] = {}
        self._unanswered: dict[asyncio.Future[Any], None] = {}
        self._connections: dict[tuple[str, int, bool], Peer] = {}
        self.sends: dict[asyncio.Task[None], None] = {}
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._fires_ms = 0
        self._last_ms = 0
        self._stood_still_ms = 0

    # --- in -----------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The time of the rules. It never goes back, and does not advance while this process is stopped.

        A process that was stopped or busy for seconds has read no messages, though peers may have sent some. It reads
        what arrived meanwhile before it takes a peer for lost. No rule's safety depends on time.
        """
        now_ms = int(self.clock.monotonic_ms()) - self._stood_still_ms
        if self._timer is not None and now_ms > self._fires_ms + STALL_MS:
            log.warning("raft.stalled", for_ms=now_ms - self._last_ms)
            self._stood_still_ms += now_ms - self._last_ms
            now_ms = self._last_ms
        self._last_ms = now_ms
        return now_ms

    def happen(self, event: Event) -> None:
        """Give an event to the rules, and carry out the effects."""
        if self.is_failed:
            return
        self._events.append(event)
        self._idle.clear()
        if self.blocked is None and not self._is_proceeding:
            self._proceed()

    def serve(self, handle: Handle, request: Message) -> Any:
        """The answer to a peer's request, or a future of it. Raises BrokerError."""
        if self.is_failed or len(self._unanswered) >= WAITING_MAX:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "this controller is shutting down or overrun")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def event(now_ms: int) -> list[Any]:
            response, effects = handle(request, now_ms)
            # A request that has to wait may be answered by these effects, so it is registered before them.
            reply = Reply(future, response)
            return [reply, *effects] if isinstance(response, Later) else [*effects, reply]

        self._unanswered[future] = None
        self.happen(event)
        if not future.done():
            future.add_done_callback(self._answered)
            return future
        self._answered(future)
        return future.result()

    def _answered(self, future: "asyncio.Future[Any]") -> None:
        self._unanswered.pop(future, None)

    @property
    def is_busy(self) -> bool:
        """Whether an effect waits for the disk, and later events behind it."""
        return not self._idle.is_set()

    async def until_idle(self) -> None:
        """Wait until no effect waits for the disk."""
        await self._idle.wait()

    async def sent(self, timeout_ms: float) -> None:
        """Wait until all requests sent to peers are answered, at most `timeout_ms`."""
        ends = self.clock.monotonic_ms() + timeout_ms
        while self.sends and (left_ms := ends - self.clock.monotonic_ms()) > 0:
            # A finished task leaves `sends` only in a turn of the loop. To await it alone would take no turn, so all
            # are gathered.
            try:
                async with asyncio.timeout(left_ms / 1000):
                    await asyncio.gather(*map(asyncio.shield, self.sends), return_exceptions=True)
            except TimeoutError:
                return

    async def stop(self) -> None:
        """Finish the writes that have begun, and drop all other work."""
        self.is_failed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in [*self.sends]:
            task.cancel()
        if self.blocked is not None:
            await asyncio.gather(self.blocked, return_exceptions=True)
        await self.syncs.ended()
        for connection in self._connections.values():
            connection.close()
        self._give_up_waiting()

    # --- effects ------------------------------------------------------------------------------------------------

    def _proceed(self) -> None:
        """Run effects, and then events, until an effect has to wait for the disk."""
        self._is_proceeding = True
        try:
            while not self.is_failed:
                if self._effects:
                    waiting = self._perform(self._effects.popleft())
                    if waiting is not None:
                        self.blocked = asyncio.get_running_loop().create_task(self._wait(waiting), name="raft disk")
                        return
                elif self._events:
                    self._effects.extend(self._events.popleft()(self.now_ms))
                else:
                    self._arm()
                    self._idle.set()
                    return
        except Exception as error:  # noqa: BLE001 - any error must stop the process
            self.fail(error)
        finally:
            self._is_proceeding = False

    async def _wait(self, waiting: Coroutine[Any, Any, list[Effect]]) -> None:
        try:
            effects = await waiting
        except Exception as error:  # noqa: BLE001 - any error must stop the process
            self.fail(error)
            return
        self.blocked = None
        self._effects.extendleft(reversed(effects))
        self._proceed()

    def _perform(self, effect: Effect | Reply) -> Coroutine[Any, Any, list[Effect]] | None:
        """Carry out an effect. Returns a coroutine if it has to be awaited before the next effect."""
        match effect:
            case Persist():
                return self._persist(effect)
            case AdoptSnapshot(snapshot):
                return self._host.adopt(snapshot)
            case Committed(high_watermark):
                self._host.committed(high_watermark)
            case Led(epoch, start_offset):
                self._host.led(epoch, start_offset)
            case Followed(leader_id, epoch):
                self._host.followed(leader_id, epoch)
            case Reply():
                self._reply(effect)
            case Send() | Respond() | Flush() | Note():
                self._tell(effect)
            case _:
                return self._write_or_wait(effect)
        return None

    def _tell(self, effect: Send | Respond | Flush | Note) -> None:
        match effect:
            case Send():
                task = asyncio.get_running_loop().create_task(self._ask(effect), name=f"raft {effect.request.NAME}")
                self.sends[task] = None
                task.add_done_callback(lambda done: self.sends.pop(done, None))
            case Respond(later, response):
                self._resolve(self._later.pop(later.number), response)
            case Flush():
                self.syncs.want()
            case Note():
                self._notes.log(effect)

    def _write(self, effect: Effect) -> None:
        now_ms = self.clock.now_ms()
        match effect:
            case Append(records, epoch):
                offset = self._log.end_offset
                batch = control_batch(records, base_offset=offset, leader_epoch=epoch, now_ms=now_ms)
                self._log.append(batch, now_ms)
            case AppendFetched(records, end_offset):
                self._log.append_new(records, now_ms)
                assert self._log.end_offset == end_offset, f"appended to {self._log.end_offset}, not to {end_offset}"
            case Truncate(offset):
                self._log.truncate(offset)
            case SaveChunk(snapshot, position, records):
                self._log.files.save_piece(snapshot, position, records)
            case _:
                raise InvariantViolation(f"{effect} is no effect that is known here")

    def _write_or_wait(self, effect: Effect) -> Coroutine[Any, Any, list[Effect]] | None:
        try:
            self._write(effect)
        except (BrokerError, OSError) as problem:
            if not self._may_try_again(problem):
                raise

            async def again() -> None:
                self._write(effect)

            return self.retries.write(again, self._may_try_again, problem)
        return None

    def _may_try_again(self, problem: BrokerError | OSError) -> bool:
        """Whether to retry: a failed write has changed nothing; after a failed sync the disk's contents are unknown."""
        if self._log.is_failed or self.is_failed:
            return False
        return isinstance(problem, OSError) or problem.code is ErrorCode.KAFKA_STORAGE_ERROR

    def _persist(self, effect: Persist) -> Coroutine[Any, Any, list[Effect]]:
        """Write and sync the vote, again while the disk is full: the former file stays until the new one is whole."""

        def is_full(problem: BrokerError | OSError) -> bool:
            return isinstance(problem, OSError) and problem.errno == ENOSPC and not self.is_failed

        return self.retries.write(
            lambda: self._run_blocking(lambda: self._log.promises.save_state(effect.state)), is_full
        )

    # --- answers ------------------------------------------------------------------------------------------------

    def _reply(self, reply: Reply) -> None:
        if isinstance(reply.response, Later):
            self._later[reply.response.number] = reply.future
        else:
            self._resolve(reply.future, reply.response)

    def _resolve(self, future: "asyncio.Future[Any]", response: Message) -> None:
        if not future.done():
            future.set_result(response)

    def _give_up_waiting(self) -> None:
        for future in self._unanswered:
            if not future.done():
                future.set_exception(BrokerError(ErrorCode.NOT_CONTROLLER, "this controller is shutting down"))
                future.exception()  # marks it as seen: the waiting task may have ended
        self._unanswered.clear()
        self._later.clear()
        self._effects.clear()
        self._events.clear()
        self._idle.set()
        self.syncs.give_up()

    # --- peers --------------------------------------------------------------------------------------------------

    async def _ask(self, send: Send) -> None:
        """Ask a peer, and give its answer to the rules, or that it is lost: a broken connection, not a silent one."""
        request = send.request
        response: Message | None = None
        is_lost = False
        started_ms = self.clock.monotonic_ms()
        try:
            assert request.API_KEY is not None
            response = await self._connection(send).ask(
                request, RESPONSES[request.API_KEY], timeout_ms=self._request_timeout_ms
            )
        except Unreachable as problem:
            is_lost = self.clock.monotonic_ms() - started_ms < self._request_timeout_ms
            log.debug("raft.peer.not_reached", node=send.peer.node_id, request=request.NAME, reason=str(problem))
        except AssertionError as error:  # a bug here, not the peer's failure
            self.fail(error)
            return
        except Exception as error:  # noqa: BLE001 - without an answer the rules would wait forever
            log.error("raft.request.failed", node=send.peer.node_id, request=request.NAME, reason=repr(error))

        def event(now_ms: int) -> list[Effect]:
            if isinstance(response, FetchResponse):
                self._host.fetched(response)
            return self.node.answered(send, response, now_ms)

        def lost(now_ms: int) -> list[Effect]:
            return self.node.leader_lost(now_ms) if send.peer.node_id == self.node.leader_id else []

        self.happen(event)
        if is_lost and isinstance(request, FetchRequest | FetchSnapshotRequest):
            self.happen(lost)

    def _connection(self, send: Send) -> Peer:
        """The connection for a request. Fetches wait at the leader, so they have their own: votes must not."""
        host, port = send.peer.host, send.peer.port
        key = (host, port, isinstance(send.request, FetchRequest | FetchSnapshotRequest))
        connection = self._connections.get(key)
        if connection is None:
            if len(self._connections) >= CONNECTIONS_MAX:
                self._connections.pop(next(iter(self._connections))).close()
            connection = self._connections[key] = self._peers.to(host, port, client_id=self._client_id)
        return connection

    # --- time and failure ---------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Set the timer to the rules' next deadline."""
        deadline_ms = self.node.deadline_ms
        if self._timer is not None and self._timer.is_waiting:
            if self._timer_ms == deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._fires_ms = max(deadline_ms, self._last_ms)
        self._timer = self._timers.after(max(deadline_ms - self._last_ms, 0), self.happen, self.node.tick)

    def fail(self, error: Exception) -> None:
        """Stop the process: the disk's contents are unknown, or log, image and rules disagree."""
        if self.is_failed:
            return  # it is stopping already
        self.is_failed = True
        self._give_up_waiting()
        self._crash(error)
