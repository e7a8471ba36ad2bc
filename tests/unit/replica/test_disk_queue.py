"""Large batches wait for the disk under the name of their client, so that clients take turns."""

import asyncio
from types import SimpleNamespace
from typing import Any

from kavka_broker.loop.slices import LoopTime, Slices
from kavka_broker.loop.turns import Turns
from kavka_broker.replica.writing.disk_queue import DiskQueue


def test_a_batch_waits_as_its_client_though_the_loop_s_time_was_set_later() -> None:
    async def scenario() -> None:
        disk: Any = SimpleNamespace(is_strained=True, strain_lasts=False)
        slices = Slices()
        queue = DiskQueue(slices)
        turns = Turns()
        slices.time = LoopTime(lambda: 0, turns)
        payer: Any = SimpleNamespace(loop_ns=0, flow=turns.join("user", "client"), queue_name=("user", ""))
        slices.time.payer = payer
        waiting = asyncio.ensure_future(queue.wait(disk, 100_000))
        await asyncio.sleep(0)
        assert queue.waiting.find("user", "") is not None
        disk.is_strained = False
        await waiting

    asyncio.run(scenario())
