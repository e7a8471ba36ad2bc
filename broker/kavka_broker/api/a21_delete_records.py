"""DeleteRecords (21): move the start of a log forward.

- Offset -1 stands for the high watermark.
- An offset above the high watermark is OFFSET_OUT_OF_RANGE, and nothing moves; one below the start changes nothing.
- A topic whose cleanup.policy lacks `delete` is POLICY_VIOLATION: deleting a prefix would break compaction's promise.
- Records of internal topics stay: INVALID_TOPIC_EXCEPTION.
- A partition that is named more than once is trimmed once, to what is said last, as in Apache Kafka.
- Answered when every replica that is alive has moved, with the low watermark, the least start of their logs; after
  `timeout_ms` with REQUEST_TIMED_OUT.
Versions: flexible from 2.
"""

import asyncio
from collections.abc import Awaitable

from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from kavka_broker.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

HIGH_WATERMARK = -1
Waiting = tuple[DeleteRecordsPartitionResult, Partition, asyncio.Future[None], int]


@api(
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    versions=(0, 2),
    each=(Each("topics.partitions", "topics.partitions", per_turn=100),),
)
def delete_records(
    request: DeleteRecordsRequest, broker: Broker, client: Client
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    waiting: list[Waiting] = []
    answer = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name, [delete(name, wanted, broker, waiting) for wanted in partitions.values()])
            for name, partitions in partitions_of(request).items()
        ]
    )
    return when_moved(answer, waiting, request.timeout_ms) if waiting else answer


def partitions_of(request: DeleteRecordsRequest) -> dict[str, dict[int, DeleteRecordsPartition]]:
    """The requested partitions, by topic."""
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update(
            {partition.partition_index: partition for partition in topic.partitions}
        )
    return wanted


def delete(
    topic: str, wanted: DeleteRecordsPartition, broker: Broker, waiting: list[Waiting]
) -> DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = broker.partitions.leader(topic, wanted.partition_index)
        if "delete" not in partition.log.config.cleanup_policy:
            raise BrokerError(ErrorCode.POLICY_VIOLATION)
        offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= partition.high_watermark:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        moved = partition.trim(offset)
    except BrokerError as error:
        return DeleteRecordsPartitionResult(wanted.partition_index, -1, error.code)
    result = DeleteRecordsPartitionResult(wanted.partition_index, partition.low_watermark, 0)
    if moved is not None:
        waiting.append((result, partition, moved, offset))
    return result


async def when_moved(answer: DeleteRecordsResponse, waiting: list[Waiting], timeout_ms: int) -> DeleteRecordsResponse:
    """The answer once every replica that is alive has moved the start of its log."""
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    for result, partition, moved, offset in waiting:
        try:
            async with asyncio.timeout_at(deadline):
                await moved
        except TimeoutError:
            result.error_code, result.low_watermark = ErrorCode.REQUEST_TIMED_OUT, -1
        except BrokerError as error:
            result.error_code, result.low_watermark = error.code, -1
        else:
            # A replica that came back since then may not have moved its log start; nothing waited for it.
            result.low_watermark = max(offset, partition.low_watermark)
    return answer
