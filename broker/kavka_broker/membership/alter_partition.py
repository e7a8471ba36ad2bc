"""Takes the in-sync sets that leaders here propose to the controller (AlterPartition).

One request is under way at a time; what is proposed meanwhile shares the next one. A broker that leads a thousand
partitions of a follower that has died thus asks once or twice, and not a thousand times.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from kavka_broker.core.partition.isr_proposal import IsrAnswer, IsrChange
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kavka_broker.protocol.messages.alter_partition_response import AlterPartitionResponse

ALTER_MS_MAX: Final = 10_000
#: Proposals in one request; the others wait for the next. The controller decides a request in one turn of its loop.
CHANGES_MAX: Final = 1_000

Waiting = tuple[Sequence[IsrChange], "asyncio.Future[Sequence[IsrAnswer]]"]


class AlterPartitionSender:
    """`AlterIsr` of broker `node_id`."""

    def __init__(self, channel: ControllerChannel, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._channel = channel
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._waiting: list[Waiting] = []
        self._sending: asyncio.Task[None] | None = None

    async def __call__(self, changes: Sequence[IsrChange]) -> Sequence[IsrAnswer]:
        """Return an answer to each proposal. Raises BrokerError where the request failed as a whole."""
        loop = asyncio.get_running_loop()
        answers: asyncio.Future[Sequence[IsrAnswer]] = loop.create_future()
        self._waiting.append((changes, answers))
        if self._sending is None:
            self._sending = loop.create_task(self._send_all(), name="alter partitions")
        return await answers

    def close(self) -> None:
        """Send no more requests."""
        if self._sending is not None:
            self._sending.cancel()
        _give_up(self._waiting)

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = self._next_batch()
                try:
                    answers = await self._send([change for changes, _ in batch for change in changes])
                except Exception as error:  # noqa: BLE001 - the waiting proposals raise it: nothing is swallowed
                    _fail(batch, error)
                except asyncio.CancelledError:
                    _give_up(batch)
                    raise
                else:
                    _answer(batch, answers)
        finally:
            self._sending = None

    def _next_batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        count = 0
        while self._waiting and (not batch or count + len(self._waiting[0][0]) <= CHANGES_MAX):
            count += len(self._waiting[0][0])
            batch.append(self._waiting.pop(0))
        return batch

    async def _send(self, changes: Sequence[IsrChange]) -> dict[tuple[bytes, int], IsrAnswer]:
        request = AlterPartitionRequest(self._node_id, self._broker_epoch(), topics_of(changes))
        try:
            answer = await self._channel.ask(request, AlterPartitionResponse, timeout_ms=ALTER_MS_MAX)
        except Unreachable as problem:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, str(problem)) from problem
        if answer.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode(answer.error_code))
        return {
            (topic.topic_id, partition.partition_index): IsrAnswer(
                ErrorCode(partition.error_code),
                partition.leader_id,
                partition.leader_epoch,
                tuple(partition.isr),
                partition.partition_epoch,
            )
            for topic in answer.topics
            for partition in topic.partitions
        }


def topics_of(changes: Sequence[IsrChange]) -> list[TopicData]:
    """The proposals by topic. A partition's last proposal stands: an earlier one was made from the same state."""
    topics: dict[bytes, dict[int, PartitionData]] = {}
    for change in changes:
        topics.setdefault(change.topic_id, {})[change.partition] = PartitionData(
            partition_index=change.partition,
            leader_epoch=change.leader_epoch,
            new_isr_with_epochs=[BrokerState(member.broker_id, member.broker_epoch) for member in change.isr],
            leader_recovery_state=change.recovery_state,
            partition_epoch=change.partition_epoch,
        )
    return [TopicData(topic_id, list(partitions.values())) for topic_id, partitions in topics.items()]


def _answer(batch: Sequence[Waiting], answers: dict[tuple[bytes, int], IsrAnswer]) -> None:
    unanswered = IsrAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
    for changes, waiting in batch:
        if not waiting.done():
            waiting.set_result([answers.get((change.topic_id, change.partition), unanswered) for change in changes])


def _give_up(batch: Sequence[Waiting]) -> None:
    for _, waiting in batch:
        waiting.cancel()


def _fail(batch: Sequence[Waiting], error: Exception) -> None:
    for _, waiting in batch:
        if not waiting.done():
            waiting.set_exception(error)
