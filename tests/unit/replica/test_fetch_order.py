"""Two fetches are under way to one leader, and their answers come in another order."""

import asyncio

from kavka_broker.protocol.messages.fetch_response import PartitionData
from tests.unit.replica.leaders import Bench, answer, named, opened, play, records


def test_an_answer_that_came_before_the_one_in_front_of_it_is_taken_behind_that() -> None:
    async def scenario(bench: Bench) -> None:
        _, waiting = await opened(bench, 0)
        newcomer = bench.partition(5)
        bench.fetchers.follow(newcomer)
        _, reply = await bench.leaders[1].next()
        reply.set_result(answer(PartitionData(5, 0, 0, records=records(0))))
        for _ in range(3):
            await asyncio.sleep(0)
        waiting.set_result(answer())
        request, _ = await bench.leaders[1].next()
        assert (set(named(request)), newcomer.log.log_end_offset) == ({5}, 1)

    play(scenario)
