"""DeleteRecords: what the answer says once every replica that is alive has moved."""

import asyncio
from types import SimpleNamespace
from typing import Any

from kavka_broker.api.a21_delete_records import when_moved
from kavka_broker.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def test_a_returning_replica_does_not_lower_the_low_watermark() -> None:
    """The replica was not waited for, and moves its log start with its first fetches."""

    async def answered() -> DeleteRecordsPartitionResult:
        result = DeleteRecordsPartitionResult(0, 3, 0)
        partition: Any = SimpleNamespace(low_watermark=3)
        moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        moved.set_result(None)
        answer = DeleteRecordsResponse(topics=[DeleteRecordsTopicResult("t", [result])])
        await when_moved(answer, [(result, partition, moved, 5)], 1_000)
        return result

    result = asyncio.run(answered())
    assert (result.error_code, result.low_watermark) == (0, 5)
