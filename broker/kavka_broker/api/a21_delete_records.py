"""DeleteRecords (21): move the start of a log forward.

- Offset -1 stands for the high watermark.
- An offset above the high watermark is OFFSET_OUT_OF_RANGE, and nothing moves; one below the start changes nothing.
- A topic whose cleanup.policy lacks `delete` is POLICY_VIOLATION: deleting a prefix would break compaction's promise.
- Records of internal topics stay: INVALID_TOPIC_EXCEPTION.
- Answered with the new start of the log, the low watermark.
Versions: flexible from 2.
"""

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import api
from kavka_broker.core.metadata.topic_names import INTERNAL
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from kavka_broker.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1


@api(DeleteRecordsRequest, DeleteRecordsResponse, versions=(0, 2))
def delete_records(request: DeleteRecordsRequest, broker: Broker, client: Client) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(topic.name, [delete(topic.name, wanted, broker) for wanted in topic.partitions])
            for topic in request.topics
        ]
    )


def delete(topic: str, wanted: DeleteRecordsPartition, broker: Broker) -> DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = broker.replicas.leader(topic, wanted.partition_index)
        if "delete" not in partition.log.config.cleanup_policy:
            raise BrokerError(ErrorCode.POLICY_VIOLATION)
        offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= partition.high_watermark:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
        partition.log.advance_start(offset)
    except BrokerError as error:
        return DeleteRecordsPartitionResult(wanted.partition_index, -1, error.code)
    return DeleteRecordsPartitionResult(wanted.partition_index, partition.log.log_start_offset, 0)
