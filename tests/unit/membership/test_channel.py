"""What a node asks of the active controller reaches the one that leads."""

import asyncio
from collections.abc import Callable

import pytest

from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.peers import ApiRanges, Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kavka_broker.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kavka_broker.protocol.messages.create_topics_request import CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from tests.support.waiting import for_ever
from tests.unit.membership.fakes import Answer, FakePeers, FakeQuorum, refuse

TIME_MS = 60_000.0
OF_ONE, OF_TWO = {19: (2, 7)}, {19: (2, 8)}


def says(start: int, error: ErrorCode = ErrorCode.NONE) -> Answer:
    async def answer(_: Message) -> Message:
        return AllocateProducerIdsResponse(error_code=error, producer_id_start=start)

    return answer


def channel(quorum: FakeQuorum, peers: FakePeers, leads: Callable[[], bool] = lambda: False) -> ControllerChannel:
    return ControllerChannel(1, quorum, peers, leads=leads, local=says(0))


async def ask(asked: ControllerChannel, timeout_ms: float = TIME_MS) -> int:
    request = AllocateProducerIdsRequest()
    return (await asked.ask(request, AllocateProducerIdsResponse, timeout_ms=timeout_ms)).producer_id_start


def test_a_controller_in_this_process_is_asked_without_a_connection() -> None:
    peers = FakePeers({})
    assert asyncio.run(ask(channel(FakeQuorum(), peers, leads=lambda: True))) == 0
    assert not peers.opened


def test_one_connection_serves_all_questions() -> None:
    async def scenario() -> None:
        peers = FakePeers({("one", 1): says(1)})
        asked = channel(FakeQuorum(), peers)
        assert await asyncio.gather(*(ask(asked) for _ in range(5))) == [1] * 5
        assert len(peers.opened) == 1
        asked.close()
        assert peers.opened[0].is_closed

    asyncio.run(scenario())


def test_the_one_that_leads_is_found_after_one_that_does_not() -> None:
    async def scenario() -> None:
        quorum = FakeQuorum()

        async def resigned(request: Message) -> Message:
            quorum.elect(("two", 2))
            return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)

        peers = FakePeers({("one", 1): resigned, ("two", 2): says(2)})
        assert await ask(channel(quorum, peers)) == 2

    asyncio.run(scenario())


def test_a_new_leader_takes_over_what_waits_for_a_silent_one() -> None:
    async def scenario() -> None:
        quorum = FakeQuorum()
        lost = asyncio.Event()

        async def silent(_: Message) -> Message:
            await lost.wait()
            raise Unreachable("given up")

        peers = FakePeers({("one", 1): silent, ("two", 2): says(2)})
        waiting = asyncio.create_task(ask(channel(quorum, peers)))
        await asyncio.sleep(0)
        quorum.elect(("two", 2))
        assert peers.opened[0].is_closed
        lost.set()
        assert await waiting == 2

    asyncio.run(scenario())


def test_no_leader_is_known_until_one_is_elected() -> None:
    async def scenario() -> None:
        quorum = FakeQuorum()
        quorum.elect(None)
        waiting = asyncio.create_task(ask(channel(quorum, FakePeers({("one", 1): says(1)}))))
        await asyncio.sleep(0)
        quorum.elect(("one", 1))
        assert await waiting == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("node", "words"),
    [(refuse, "refused"), (says(1, ErrorCode.NOT_CONTROLLER), "does not lead")],
)
def test_a_request_without_an_answer_in_time_is_unreachable(node: Answer, words: str) -> None:
    with pytest.raises(Unreachable, match=f"AllocateProducerIdsRequest: no controller.*{words}"):
        asyncio.run(ask(channel(FakeQuorum(), FakePeers({("one", 1): node})), timeout_ms=120))


async def silent(_: Message) -> Message:
    await for_ever()
    raise AssertionError


def test_a_connection_that_gives_no_answer_in_time_is_not_used_again() -> None:
    """Half of it may be gone: the peer has to hear that the time is over, since it ends the connection for that."""

    async def scenario() -> None:
        peers = FakePeers({("one", 1): silent})
        with pytest.raises(Unreachable, match="no answer"):
            await ask(channel(FakeQuorum(), peers), timeout_ms=80)
        assert peers.opened[0].silences == 1

    asyncio.run(scenario())


def test_a_controller_in_this_process_may_not_decide_in_time() -> None:
    asked = ControllerChannel(1, FakeQuorum(), FakePeers({}), leads=lambda: True, local=silent)
    with pytest.raises(Unreachable, match="has not decided"):
        asyncio.run(ask(asked, timeout_ms=80))


def test_an_answer_may_say_only_in_its_parts_that_another_leads() -> None:
    async def scenario() -> None:
        codes = iter([ErrorCode.NOT_CONTROLLER, ErrorCode.TOPIC_ALREADY_EXISTS])

        async def answer(_: Message) -> Message:
            return CreateTopicsResponse(topics=[CreatableTopicResult("t", error_code=next(codes))])

        asked = channel(FakeQuorum(), FakePeers({("one", 1): answer}))
        (topic,) = (await asked.ask(CreateTopicsRequest(), CreateTopicsResponse, timeout_ms=TIME_MS)).topics
        assert topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS

    asyncio.run(scenario())


def test_another_error_is_the_callers() -> None:
    async def scenario() -> int:
        peers = FakePeers({("one", 1): says(1, ErrorCode.STALE_BROKER_EPOCH)})
        request = AllocateProducerIdsRequest()
        answer = await channel(FakeQuorum(), peers).ask(request, AllocateProducerIdsResponse, timeout_ms=TIME_MS)
        return answer.error_code

    assert asyncio.run(scenario()) == ErrorCode.STALE_BROKER_EPOCH


def test_a_node_that_knows_of_no_leader_asks_the_others_in_turn() -> None:
    """Its disk may be full, and keeps it from taking note of who leads now."""

    async def scenario() -> int:
        quorum = FakeQuorum()
        quorum.elect(None)
        peers = FakePeers({("one", 1): says(1, ErrorCode.NOT_CONTROLLER), ("two", 2): says(2)})
        others = [("one", 1), ("two", 2)]
        asked = ControllerChannel(1, quorum, peers, leads=lambda: False, local=says(0), others=lambda: others)
        return await ask(asked)

    assert asyncio.run(scenario()) == 2


def test_versions_are_those_of_the_controller_that_leads() -> None:
    async def scenario() -> list[ApiRanges | None]:
        quorum, peers, is_here = FakeQuorum(), FakePeers({("one", 1): says(1), ("two", 2): says(2)}), False
        asked = channel(quorum, peers, leads=lambda: is_here)
        found = [asked.versions]  # it has asked nothing yet
        await ask(asked)
        peers.opened[0].versions = OF_ONE
        found.append(asked.versions)
        is_here = True
        found.append(asked.versions)  # the controller is in its own process
        is_here = False
        quorum.elect(None)
        found.append(asked.versions)
        quorum.elect(("two", 2))
        found.append(asked.versions)
        await ask(asked)
        peers.opened[1].versions = OF_TWO
        return [*found, asked.versions]

    assert asyncio.run(scenario()) == [None, OF_ONE, None, None, None, OF_TWO]
