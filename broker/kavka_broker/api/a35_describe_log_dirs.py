"""DescribeLogDirs (35): what is in the log directories of this broker.

- Every directory is named, also where no asked topic is in it; an offline one with KAFKA_STORAGE_ERROR.
- A replica: its size, how far its log is behind the high watermark; a copy that is being moved: how far behind its log.
- The volume's size and what is left of it (KIP-827); -1 where that is not known.
- Topics None: all.
Versions: flexible from 2.
"""

import asyncio

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api, listing
from kavka_broker.storage.log_directory import LogDirectory

Wanted = dict[str, frozenset[int]] | None

PARTITION_COST = 3  # of a slice


@api(DescribeLogDirsRequest, DescribeLogDirsResponse, versions=(1, 5))
@listing
def describe_log_dirs(
    request: DescribeLogDirsRequest, broker: Broker, client: Client
) -> DescribeLogDirsResponse | asyncio.Task[DescribeLogDirsResponse]:
    del client
    wanted: Wanted = None
    if request.topics is not None:
        wanted = {topic.topic: frozenset(topic.partitions) for topic in request.topics}
    return broker.slices.run(describe_all(wanted, broker))


def describe_all(wanted: Wanted, broker: Broker) -> Work[DescribeLogDirsResponse]:
    answer, cost = DescribeLogDirsResponse(), Cost()
    for directory in broker.replicas.log_directories:
        answer.results.append((yield from describe(directory, wanted, broker, cost)))
    return answer


def describe(directory: LogDirectory, wanted: Wanted, broker: Broker, cost: Cost) -> Work[DescribeLogDirsResult]:
    if not directory.is_online:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, directory.path)
    total_bytes, usable_bytes = directory.space()
    own = broker.metadata.brokers.get(broker.node_id)
    return DescribeLogDirsResult(
        ErrorCode.NONE,
        directory.path,
        (yield from topics_in(directory, wanted, broker, cost)),
        total_bytes,
        usable_bytes,
        own is not None and directory.directory_id in own.cordoned_directories,
    )


def topics_in(directory: LogDirectory, wanted: Wanted, broker: Broker, cost: Cost) -> Work[list[DescribeLogDirsTopic]]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in list(broker.partitions):
        if cost.add(PARTITION_COST):
            yield
        if wanted is not None and partition.index not in wanted.get(partition.topic, ()):
            continue
        found = describe_replica(partition, directory, broker)
        if found is not None:
            topics.setdefault(partition.topic, []).append(found)
    return [DescribeLogDirsTopic(name, partitions) for name, partitions in topics.items()]


def describe_replica(partition: Partition, directory: LogDirectory, broker: Broker) -> DescribeLogDirsPartition | None:
    """The replica in this directory, or its future copy; None if neither is."""
    log = partition.log
    if broker.replicas.reports.directory_of(partition) is directory:
        lag = max(0, partition.high_watermark - log.log_end_offset)
        return DescribeLogDirsPartition(partition.index, log.size_bytes, lag)
    move = broker.replicas.moves.get(partition.topic, partition.index)
    if move is not None and move.directory is directory:
        return DescribeLogDirsPartition(partition.index, move.size_bytes, move.lag, is_future_key=True)
    return None
