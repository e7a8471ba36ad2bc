"""When the answer to a produce request is given, and what it says of each partition."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kavka_broker.replica.writing.acknowledgement import Acknowledgement, Share
from kavka_broker.runtime.clock import SystemClock

MINUTE_MS = 60_000


def play(scenario: Callable[[Timers], Awaitable[None]]) -> None:
    async def run() -> None:
        timers = Timers(SystemClock(), asyncio.get_running_loop())
        await scenario(timers)
        timers.close()

    asyncio.run(run())


def shares(count: int, *, waits_for_others: bool = True) -> list[Share]:
    return [
        Share(PartitionProduceResponse(index, 0, 7), lambda response: None, waits_for_others=waits_for_others)
        for index in range(count)
    ]


def asked(waiting: list[Share], timers: Timers, acks: int = -1, timeout_ms: int = MINUTE_MS) -> Acknowledgement:
    answer = ProduceResponse([TopicProduceResponse("t", partition_responses=[share.response for share in waiting])])
    return Acknowledgement(ProduceRequest(None, acks, timeout_ms), answer, [*waiting], timers)


def codes(whole: Acknowledgement) -> list[int]:
    answer = whole.future.result()
    assert answer is not None
    return [part.error_code for part in answer.responses[0].partition_responses]


def test_the_last_share_gives_the_answer_and_a_failed_share_delays_no_others() -> None:
    async def scenario(timers: Timers) -> None:
        waiting = shares(3)
        whole = asked(waiting, timers)
        waiting[1].set_exception(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        waiting[2].set_result(None)
        assert not whole.future.done()
        waiting[0].set_result(None)
        assert codes(whole) == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]
        assert waiting[1].response.base_offset == -1
        assert len(timers) == 0

    play(scenario)


def test_a_share_answered_during_the_appends_is_not_waited_for() -> None:
    async def scenario(timers: Timers) -> None:
        waiting = shares(1)
        waiting[0].set_result(None)
        assert codes(asked(waiting, timers)) == [0]

    play(scenario)


def test_followers_have_a_timeout_and_the_local_disk_has_none() -> None:
    async def scenario(timers: Timers) -> None:
        waiting, own = shares(2), shares(1, waits_for_others=False)
        late, unbounded = asked(waiting, timers, timeout_ms=1), asked(own, timers, timeout_ms=1)
        waiting[0].set_result(None)
        await asyncio.wait_for(late.future, 60)
        assert codes(late) == [0, ErrorCode.REQUEST_TIMED_OUT]
        assert waiting[1].done()  # so that waiting lists forget the share
        assert not unbounded.future.done()

    play(scenario)


def test_acks_0_is_never_answered_and_its_failure_closes_the_connection() -> None:
    async def scenario(timers: Timers) -> None:
        good, bad = shares(1, waits_for_others=False), shares(1, waits_for_others=False)
        whole, failed = asked(good, timers, acks=0), asked(bad, timers, acks=0)
        good[0].set_result(None)
        bad[0].set_exception(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))
        assert whole.future.result() is None
        with pytest.raises(ProtocolViolation, match="KAFKA_STORAGE_ERROR"):
            failed.future.result()

    play(scenario)


def test_a_lost_connection_waits_for_no_share() -> None:
    async def scenario(timers: Timers) -> None:
        waiting = shares(2)
        whole = asked(waiting, timers)
        whole.future.cancel()
        assert all(share.done() for share in waiting)
        waiting[0].set_result(None)
        waiting[1].set_result(None)

    play(scenario)
