"""A broker joins, stays and leaves, against a controller that the test plays. In simulated time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kavka_broker.core.config.listeners import Listener
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.membership.lifecycle import CannotJoin, Introduction, Lifecycle, Times
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kavka_broker.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kavka_broker.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kavka_broker.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import BrokerRegistrationChangeRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from tests.sim.loop import SimLoop
from tests.sim.node import SimClock
from tests.support.waiting import pass_seconds, play_simulated, until
from tests.unit.membership.fakes import FakePeers, FakeQuorum

EPOCH = 42
SECONDS_MAX = 1_000  # simulated
INTRODUCTION = Introduction(
    node_id=7,
    cluster_id="c",
    incarnation_id=b"i" * 16,
    listeners=(Listener("PLAINTEXT", "", 9092),),
    directories=(b"d" * 16, b"e" * 16),
    features={"metadata.version": (7, 29)},
    rack="r1",
    previous_epoch=17,
)


class Controller:
    """Registers, then unfences a broker that wants it, as the real one would. An epoch is the offset of its record."""

    def __init__(self, quorum: FakeQuorum) -> None:
        self.quorum = quorum
        self.registrations: list[BrokerRegistrationRequest] = []
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.refusals: list[ErrorCode] = []
        self.lets_go = True
        self.says_fenced = False  # though no record of it has come
        self.failures: list[Exception] = []  # of the next heartbeats

    async def answer(self, request: Message) -> Message:
        if isinstance(request, BrokerRegistrationRequest):
            self.registrations.append(request)
            if self.refusals:
                return BrokerRegistrationResponse(error_code=self.refusals.pop(0))
            self.quorum.metadata.move_to(max(EPOCH - 1, self.quorum.metadata.offset))
            return BrokerRegistrationResponse(broker_epoch=self.register(request.incarnation_id))
        assert isinstance(request, BrokerHeartbeatRequest)
        self.heartbeats.append(request)
        if self.failures:
            raise self.failures.pop(0)
        registration = self.quorum.metadata.brokers.get(7)
        if registration is None or registration.epoch != request.broker_epoch:
            return BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        if registration.fenced and not request.want_fence and request.current_metadata_offset >= EPOCH:
            self.change(fenced=-1)
        return BrokerHeartbeatResponse(
            is_caught_up=True,
            is_fenced=registration.fenced or self.says_fenced,
            should_shut_down=request.want_shut_down and self.lets_go,
        )

    def register(self, incarnation_id: bytes) -> int:
        epoch = self.quorum.metadata.next_offset
        self.quorum.commit(RegisterBrokerRecord(7, incarnation_id=incarnation_id, broker_epoch=epoch, fenced=True))
        return epoch

    def change(self, fenced: int) -> None:
        registration = self.quorum.metadata.brokers.get(7)
        assert registration is not None
        self.quorum.commit(BrokerRegistrationChangeRecord(7, registration.epoch, fenced=fenced))


def play(scenario: Callable[[Lifecycle, Controller], Awaitable[None]], times: Times | None = None) -> None:
    async def run(loop: SimLoop) -> None:
        quorum = FakeQuorum()
        controller = Controller(quorum)
        peers = FakePeers({("one", 1): controller.answer})
        channel = ControllerChannel(7, quorum, peers, leads=lambda: False, local=controller.answer)
        broker = Lifecycle(INTRODUCTION, times or Times(), channel, quorum, SimClock(loop))
        async with asyncio.timeout(SECONDS_MAX):
            await scenario(broker, controller)
        broker.stop()

    play_simulated(run)


def test_a_broker_introduces_itself_and_is_unfenced_when_it_says_so() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        assert await broker.register() == EPOCH
        (request,) = controller.registrations
        assert (request.broker_id, request.rack, request.previous_broker_epoch) == (7, "r1", 17)
        assert request.listeners[0].host == "localhost"
        assert not broker.is_unfenced
        assert all(heartbeat.want_fence for heartbeat in controller.heartbeats)
        await broker.unfence()
        assert broker.is_unfenced

    play(scenario)


def test_a_broker_that_has_no_room_to_note_that_it_is_fenced_is_outdated_until_it_has() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        broker.outdated.has_room = lambda: False
        controller.says_fenced = True
        broker.tell()
        await until(lambda: broker.outdated.is_known)
        controller.change(fenced=1)
        assert not broker.outdated.is_known, "the image has it so now"

    play(scenario)


def test_a_broker_that_has_room_is_about_to_note_that_it_is_fenced() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        controller.says_fenced = True
        before = len(controller.heartbeats)
        broker.tell()
        await until(lambda: len(controller.heartbeats) > before)
        assert not broker.outdated.is_known

    play(scenario)


def test_a_duplicate_is_tried_again_while_the_former_session_may_last() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        controller.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 2
        assert await broker.register() == EPOCH
        assert len(controller.registrations) == 3

    play(scenario)


def test_two_brokers_with_one_id() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        controller.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 1000
        with pytest.raises(CannotJoin, match=r"another broker runs with node\.id=7"):
            await broker.register()

    play(scenario, Times(heartbeat_ms=20, session_ms=100))


@pytest.mark.parametrize("code", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REGISTRATION])
def test_what_asking_again_cannot_help(code: ErrorCode) -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        controller.refusals = [code]
        with pytest.raises(CannotJoin, match=code.name):
            await broker.register()

    play(scenario)


def test_other_refusals_end_with_the_registration_time() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        controller.refusals = [ErrorCode.UNKNOWN_SERVER_ERROR] * 1000
        with pytest.raises(CannotJoin, match=r"initial\.broker\.registration\.timeout\.ms"):
            await broker.register()

    play(scenario, Times(registration_ms=150))


def test_a_broker_that_was_fenced_comes_back_without_waiting_for_its_next_heartbeat() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        controller.change(fenced=1)
        assert not broker.is_unfenced
        await broker.unfence()

    play(scenario, Times(heartbeat_ms=60_000))


@pytest.mark.parametrize("failure", [Unreachable("lost"), ValueError("a defect")])
def test_a_heartbeat_that_failed_is_repeated_before_the_session_is_over(failure: Exception) -> None:
    """The channel has tried for half of the session: what is left of it is no time to wait in."""

    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        controller.failures = [failure] * 4  # for longer than the channel tries
        await broker.unfence()
        assert broker.is_unfenced

    play(scenario, Times(heartbeat_ms=60_000, session_ms=300))


def test_a_broker_leaves_when_it_is_let_go() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        controller.lets_go = False
        leaving = asyncio.create_task(broker.leave(10_000))
        await until(lambda: any(heartbeat.want_shut_down for heartbeat in controller.heartbeats))
        assert not leaving.done()
        controller.lets_go = True
        assert await leaving
        count = len(controller.heartbeats)
        await pass_seconds(600)
        assert len(controller.heartbeats) == count

    play(scenario, Times(heartbeat_ms=60_000))


def test_a_broker_that_is_not_let_go_leaves_after_its_time() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        controller.lets_go = False
        assert not await broker.leave(100)

    play(scenario)


def test_a_quorum_that_is_gone_does_not_hold_the_last_broker() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        controller.quorum.elect(None)
        assert await broker.leave(60_000)

    play(scenario, Times(silence_ms_max=100))


def test_a_broker_that_cannot_write_steps_aside_until_it_can() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        room = False
        broker.may_come_back = lambda: room
        await broker.register()
        await broker.unfence()
        broker.step_aside("no room")
        count = len(controller.heartbeats)
        await until(lambda: len(controller.heartbeats) >= count + 3)
        assert all(heartbeat.want_fence for heartbeat in controller.heartbeats[count:])
        room = True
        await until(lambda: not controller.heartbeats[-1].want_fence)
        assert not any(heartbeat.want_shut_down for heartbeat in controller.heartbeats)

    play(scenario, Times(heartbeat_ms=10))


def test_a_broker_that_steps_aside_is_heard_before_it_comes_back() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        controller.failures = [Unreachable("nobody is there")]
        count = len(controller.heartbeats)
        broker.step_aside("the disk refuses everything")
        broker.tell()
        await until(lambda: len(controller.heartbeats) >= count + 3)
        assert [heartbeat.want_fence for heartbeat in controller.heartbeats[count : count + 3]] == [True, True, False]

    play(scenario, Times(heartbeat_ms=10))


def test_a_broker_that_was_replaced_by_a_late_registration_of_its_former_process_takes_its_place_back() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        late = controller.register(b"former process!!")
        assert not broker.is_unfenced
        await broker.unfence()
        assert broker.broker_epoch > late
        first, again = controller.registrations
        assert again.incarnation_id == first.incarnation_id
        assert (first.previous_broker_epoch, again.previous_broker_epoch) == (17, -1), "its logs were given up"

    play(scenario, Times(heartbeat_ms=60_000))


def test_a_broker_names_only_the_directories_that_are_left_when_it_registers_again() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        broker.offline_directories.append(b"d" * 16)
        controller.register(b"former process!!")
        await broker.unfence()
        assert controller.registrations[-1].log_dirs == [b"e" * 16]

    play(scenario, Times(heartbeat_ms=60_000))


def test_a_place_that_another_process_holds_is_asked_for_once_a_heartbeat() -> None:
    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        controller.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 3
        controller.register(b"somebody else!!!")
        await broker.unfence()
        assert broker.is_unfenced
        assert len(controller.registrations) == 1 + 3 + 1

    play(scenario, Times(heartbeat_ms=20))


def test_a_broker_that_was_unregistered_registers_again() -> None:
    """Somebody took it for one that is gone, just as it came back."""

    async def scenario(broker: Lifecycle, controller: Controller) -> None:
        await broker.register()
        await broker.unfence()
        former = broker.broker_epoch
        controller.quorum.commit(UnregisterBrokerRecord(7, former))
        assert not broker.is_unfenced
        async with asyncio.timeout(60):
            await broker.unfence()
        assert broker.broker_epoch > former
        first, again = controller.registrations
        assert again.incarnation_id == first.incarnation_id
        assert (first.previous_broker_epoch, again.previous_broker_epoch) == (17, -1), "its logs were given up"

    play(scenario, Times(heartbeat_ms=10))
