"""A broker joins its cluster, stays in it, and leaves it.

    register        a new incarnation; the controller gives it an epoch, and it is fenced
    catch up        until its image holds that registration
    unfenced        by a heartbeat that says so; from here on it may lead and stand in in-sync sets
    (heartbeats)    each `broker.heartbeat.interval.ms`, and at once when there is something to say
    step aside      heartbeats that want to be fenced, while the disk takes nothing and others can lead
    be outdated     aside, with a metadata log that has no room to note it: clients are sent away (`outdated_image`)
    leave           heartbeats that want to shut down, until the controller has moved away what this broker leads

A broker that the controller has fenced meanwhile (it was paused, or cut off) comes back the same way from the third
step. A second process with the same id is refused for as long as the first one's session lasts; where that goes on
longer, there really are two, and this one gives up.

One that serves may find another incarnation in its place: the network has delivered the registration of its own former
process after all. Or none: somebody has unregistered it, who took it for one that is gone. It hears STALE_BROKER_EPOCH,
sees that in its image (and there that it leads nothing any more), and registers again, as one whose logs nobody is to
count on: the controller has said so of them already. To be rid of a broker, one stops it first. (Apache Kafka's is
fenced in both cases until somebody starts it again.)
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from kavka_broker.core.config.listeners import Listener
from kavka_broker.core.metadata.image.brokers import Registration
from kavka_broker.core.metadata.image.features import CORDONED_SINCE
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.membership.metadata_feed import MetadataFeed
from kavka_broker.membership.outdated_image import OutdatedImage
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kavka_broker.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kavka_broker.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from kavka_broker.protocol.messages.broker_registration_request import Listener as RequestListener
from kavka_broker.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import BrokerRegistrationChangeRecord

log = get("membership")

RETRY_MS: Final = 100
#: The interval of heartbeats in controlled shutdown: the broker asks more often whether it may stop.
LEAVING_MS: Final = 50
#: The longest wait of a stopping broker for a quorum that does not answer: the others may have stopped already.
SILENCE_MS_MAX: Final = 3_000
#: Errors against which a retry cannot help.
FINAL: Final = frozenset(
    {
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)
#: Errors for a broker whose registration was replaced or removed.
REPLACED: Final = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)


class CannotJoin(Exception):
    """The controller does not take this broker; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """A broker as it introduces itself."""

    node_id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: tuple[Listener, ...]
    directories: tuple[bytes, ...]
    features: Mapping[str, tuple[int, int]]
    rack: str | None = None
    previous_epoch: int = -1  # where the last stop was a clean one

    def request(self) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                RequestListener(listener.name, listener.host or "localhost", listener.port, listener.protocol_id)
                for listener in self.listeners
            ],
            features=[Feature(name, low, high) for name, (low, high) in sorted(self.features.items())],
            rack=self.rack,
            log_dirs=list(self.directories),
            previous_broker_epoch=self.previous_epoch,
        )


@dataclass(frozen=True, slots=True)
class Times:
    """The intervals and timeouts of a broker's membership."""

    heartbeat_ms: int = 2_000
    session_ms: int = 9_000
    registration_ms: int = 60_000
    silence_ms_max: int = SILENCE_MS_MAX  # of the controller, for a broker that leaves


class Lifecycle:
    """The membership of one broker. `register`, then `unfence`, and at the end `leave`."""

    def __init__(
        self, introduction: Introduction, times: Times, channel: ControllerChannel, image: MetadataFeed, clock: Clock
    ) -> None:
        self.broker_epoch = -1
        self.offline_directories: list[bytes] = []
        self.cordoned_directories: list[bytes] = []
        self.outdated = OutdatedImage()
        self.may_come_back: Callable[[], bool] = _always
        self._introduction = introduction
        self._times = times
        self._channel = channel
        self._metadata = image.metadata
        self._clock = clock
        self._changed = asyncio.Event()  # news for the controller
        self._replayed = asyncio.Event()  # the image has replayed records
        self._may_stop = asyncio.Event()
        self._wants_fence = True
        self._wants_shut_down = False
        self._is_aside = self._is_aside_known = False
        self._was_fenced = True
        self._answered_ms = clock.monotonic_ms()
        self._beating: asyncio.Task[None] | None = None
        image.subscribers.append(self._on_replayed)

    @property
    def registration(self) -> Registration | None:
        """The registration of this broker in its own image; None until it is replayed."""
        found = self._metadata.brokers.get(self._introduction.node_id)
        return found if found is not None and found.epoch == self.broker_epoch else None

    @property
    def is_unfenced(self) -> bool:
        """Whether this broker's image shows this incarnation unfenced."""
        registration = self.registration
        return registration is not None and not registration.fenced

    @property
    def silent_ms(self) -> float:
        """The time since a controller last took a heartbeat of this broker."""
        return self._clock.monotonic_ms() - self._answered_ms

    def tell(self) -> None:
        """Send the next heartbeat now: the controller should know of a change."""
        self._changed.set()

    async def register(self) -> int:
        """Register; return the broker epoch. Raises CannotJoin."""
        start_ms = self._clock.monotonic_ms()
        told = ""
        while True:
            refusal, reason = await self._try_to_register(self._introduction)
            if refusal is ErrorCode.NONE:
                break
            waited_ms = self._clock.monotonic_ms() - start_ms
            self._check(refusal, reason, waited_ms)
            if reason != told:
                told = reason
                log.warning("registration.refused", reason=reason, tries="again")
            await asyncio.sleep(RETRY_MS / 1000)
        log.info("registration.accepted", node=self._introduction.node_id, epoch=self.broker_epoch)
        self._beating = watch(asyncio.create_task(self._beat_for_ever(), name="heartbeats"))
        await self._until(lambda: self.registration is not None)
        return self.broker_epoch

    async def unfence(self) -> None:
        """Tell the controller that this broker is ready; returns when its own image shows it unfenced."""
        self._wants_fence = False
        self.tell()
        await self._until(lambda: self.is_unfenced)

    async def unfenced_within(self, time_ms: float) -> None:
        """Wait until this broker's image shows it unfenced, up to the given time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(time_ms / 1000):
                await self._until(lambda: self.is_unfenced)

    def step_aside(self, reason: str) -> None:
        """Hand over leaderships and leave the in-sync sets until `may_come_back`. The process goes on."""
        if self._is_aside or self._wants_fence or self._wants_shut_down:
            return
        log.warning("broker.withdrawn", reason=reason)
        self._is_aside = True
        self.tell()

    async def leave(self, time_ms: float) -> bool:
        """Ask the controller to move the leaders off this broker. Returns whether it did in time; heartbeats end."""
        if self._beating is None:
            return False
        self._wants_shut_down = True
        self._answered_ms = self._clock.monotonic_ms()
        self.tell()
        try:
            async with asyncio.timeout(time_ms / 1000):
                await self._may_stop.wait()
                return True
        except TimeoutError:
            log.warning("broker.not_released", reason=f"the controller has not moved what is led here in {time_ms} ms")
            return False
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop sending heartbeats."""
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None

    # --- registration -------------------------------------------------------------------------------------------

    async def _try_to_register(self, introduction: Introduction) -> tuple[ErrorCode, str]:
        try:
            answer = await self._channel.ask(
                introduction.request(), BrokerRegistrationResponse, timeout_ms=self._times.session_ms
            )
        except Unreachable as problem:
            return ErrorCode.REQUEST_TIMED_OUT, str(problem)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self.broker_epoch = answer.broker_epoch
            self._answered_ms = self._clock.monotonic_ms()
        return code, code.name

    def _check(self, refusal: ErrorCode, reason: str, waited_ms: float) -> None:
        node_id = self._introduction.node_id
        if refusal in FINAL:
            raise CannotJoin(f"the controller refuses to register broker {node_id}: {reason}")
        if refusal is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            # The id is free once the controller has noticed that the session of a stopped broker has ended.
            if waited_ms > self._times.session_ms + 2 * self._times.heartbeat_ms:
                raise CannotJoin(f"another broker runs with node.id={node_id}; give each its own, or stop the other")
        elif waited_ms > self._times.registration_ms:
            seconds = self._times.registration_ms // 1000
            raise CannotJoin(f"not registered in {seconds} s (initial.broker.registration.timeout.ms): {reason}")

    async def _register_again(self) -> None:
        """Register again after losing the registration, once a heartbeat: a live successor keeps it."""
        node_id = self._introduction.node_id
        found = self._metadata.brokers.get(node_id)
        by = "nobody: it was unregistered" if found is None else found.epoch
        log.warning("registration.replaced", node=node_id, epoch=self.broker_epoch, by=by)
        online = tuple(
            directory for directory in self._introduction.directories if directory not in self.offline_directories
        )
        refusal, reason = await self._try_to_register(
            replace(self._introduction, directories=online, previous_epoch=-1)
        )
        if refusal is ErrorCode.NONE:
            log.info("registration.accepted", node=node_id, epoch=self.broker_epoch)
            self.tell()
        else:
            log.warning("registration.refused", reason=reason, tries="again")

    @property
    def _is_replaced(self) -> bool:
        """Whether this broker's image has had this incarnation, and now has another or none."""
        found = self._metadata.brokers.get(self._introduction.node_id)
        if found is None:
            return self._metadata.offset >= self.broker_epoch
        return found.epoch > self.broker_epoch

    # --- heartbeats ---------------------------------------------------------------------------------------------

    async def _beat_for_ever(self) -> None:
        while True:
            self._changed.clear()
            self._come_back()
            delay_ms = self._times.heartbeat_ms if await self._beat_or_tell() else RETRY_MS
            if self._wants_shut_down:
                delay_ms = LEAVING_MS
            try:
                async with asyncio.timeout(delay_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _come_back(self) -> None:
        """Come back once the controller knows that this broker is aside, and nothing keeps it there."""
        if self._is_aside_known and self.may_come_back():
            log.info("broker.returned")
            self._is_aside = self._is_aside_known = False

    async def _beat_or_tell(self) -> bool:
        """Send a heartbeat; returns whether a controller has answered. A bug must not end the heartbeats: the
        controller would fence this broker, and nothing here would notice.
        """
        try:
            return await self._beat()
        except AssertionError:
            raise
        except Exception as error:
            log.exception("heartbeat.failed", error)  # noqa: TRY401
            return False

    async def _beat(self) -> bool:
        request = BrokerHeartbeatRequest(
            broker_id=self._introduction.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata.offset,
            want_fence=self._wants_fence or self._is_aside,
            want_shut_down=self._wants_shut_down,
            offline_log_dirs=list(self.offline_directories),
            cordoned_log_dirs=self._cordoned,
        )
        time_ms = self._times.silence_ms_max if self._wants_shut_down else self._times.session_ms / 2
        try:
            answer = await self._channel.ask(request, BrokerHeartbeatResponse, timeout_ms=time_ms)
        except Unreachable as problem:
            log.warning("heartbeat.unanswered", reason=str(problem))
            self._give_up_if_leaving()
            return False
        if answer.error_code != ErrorCode.NONE:
            log.warning("heartbeat.refused", reason=ErrorCode(answer.error_code).name)
            await self._after_refusal(ErrorCode(answer.error_code))
            return True
        self._answered_ms = self._clock.monotonic_ms()
        self._is_aside_known = self._is_aside and request.want_fence
        self.outdated.told(is_fenced=answer.is_fenced, is_unfenced=self.is_unfenced)
        if answer.should_shut_down and self._wants_shut_down:
            self._may_stop.set()
        return True

    @property
    def _cordoned(self) -> list[bytes] | None:
        """The cordoned directories, once this broker knows what was altered; None where no record could keep them."""
        knows = self._metadata.features.metadata_version >= CORDONED_SINCE and self.registration is not None
        return list(self.cordoned_directories) if knows else None

    async def _after_refusal(self, code: ErrorCode) -> None:
        self._give_up_if_leaving()
        if code in REPLACED and not self._wants_shut_down and self._is_replaced:
            await self._register_again()

    def _give_up_if_leaving(self) -> None:
        if self._wants_shut_down and self._clock.monotonic_ms() - self._answered_ms >= self._times.silence_ms_max:
            log.warning("broker.not_released", reason="no controller answers; the others may be gone already")
            self._may_stop.set()

    # --- this broker's image -------------------------------------------------------------------------------------

    def _on_replayed(self, records: Sequence[Message]) -> None:
        self._replayed.set()
        self.outdated.replayed(is_unfenced=self.is_unfenced)
        # Others may wait until this broker has seen the change: a stopping broker, or this one to be unfenced.
        if BrokerRegistrationChangeRecord in {type(record) for record in records} or self._fenced_by_others():
            self.tell()

    def _fenced_by_others(self) -> bool:
        """Whether this broker's image has just changed from unfenced to fenced."""
        was_fenced, self._was_fenced = self._was_fenced, not self.is_unfenced
        return self._was_fenced and not was_fenced

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._replayed.clear()
            await self._replayed.wait()


def _always() -> bool:
    return True
