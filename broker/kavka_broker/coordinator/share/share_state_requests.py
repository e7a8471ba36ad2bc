"""Requests to the share coordinator of this broker, each with its answer: from other brokers, and from this one."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.coordinator.share.share_coordinator import ShareCoordinator
from kavka_broker.core.share.packed_batches import PackedBatches
from kavka_broker.core.share.share_states import UNSET, SharePartitionKey, ShareState, WrittenState
from kavka_broker.core.share.state_batches import StateBatch, check_batches
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import delete_share_group_state_response as deleted
from kavka_broker.protocol.messages import initialize_share_group_state_response as initialized
from kavka_broker.protocol.messages import read_share_group_state_response as states
from kavka_broker.protocol.messages import read_share_group_state_summary_response as summaries
from kavka_broker.protocol.messages import write_share_group_state_response as written
from kavka_broker.protocol.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from kavka_broker.protocol.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from kavka_broker.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
from kavka_broker.protocol.messages.read_share_group_state_summary_request import (
    ReadShareGroupStateSummaryRequest,
)
from kavka_broker.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest

BATCHES_PER_TURN_MAX: Final = 500
WRITTEN_PER_TURN_MAX: Final = 250
"""Batches that one record of the log has, and that are written in one turn: a few milliseconds."""


class Answers(NamedTuple):
    """The classes of an answer: of the whole, of a topic and of a partition."""

    whole: Any
    topic: Any
    partition: Any


ANSWERS: dict[type[Message], Answers] = {
    InitializeShareGroupStateRequest: Answers(
        initialized.InitializeShareGroupStateResponse, initialized.InitializeStateResult, initialized.PartitionResult
    ),
    ReadShareGroupStateRequest: Answers(
        states.ReadShareGroupStateResponse, states.ReadStateResult, states.PartitionResult
    ),
    WriteShareGroupStateRequest: Answers(
        written.WriteShareGroupStateResponse, written.WriteStateResult, written.PartitionResult
    ),
    DeleteShareGroupStateRequest: Answers(
        deleted.DeleteShareGroupStateResponse, deleted.DeleteStateResult, deleted.PartitionResult
    ),
    ReadShareGroupStateSummaryRequest: Answers(
        summaries.ReadShareGroupStateSummaryResponse, summaries.ReadStateSummaryResult, summaries.PartitionResult
    ),
}


async def serve(request: Message, coordinator: ShareCoordinator, slices: Slices) -> Any:
    """Return the answer of this broker's share coordinator, when what it tells is on every in-sync replica."""
    asked: Any = request
    answers = ANSWERS[type(request)]
    waiting: list[tuple[Any, Waiting]] = []
    results, pace = list[Any](), Pace(slices)
    for topic in asked.topics:
        results.append(answers.topic(topic.topic_id, []))
        for partition in topic.partitions:
            result = await _begin(asked, topic.topic_id, partition, coordinator, waiting, pace)
            results[-1].partitions.append(result)
    for result, committed in waiting:
        error = await committed
        if error is not ErrorCode.NONE:
            result.error_code = error
    if isinstance(request, ReadShareGroupStateRequest):
        await _unpack([result for topic in results for result in topic.partitions], slices)
    return answers.whole(results)


async def _unpack(results: Sequence[states.PartitionResult], slices: Slices) -> None:
    """Put the batches of states into their results, some a turn."""
    for result in results:
        packed: Any = result.state_batches
        if isinstance(packed, PackedBatches):
            result.state_batches = [
                states.StateBatch(*batch)
                async for some in slices.in_turns(packed, BATCHES_PER_TURN_MAX)
                for batch in some
            ]


class Pace:
    """Counts the batches that are written in one turn of the loop."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._batches = 0

    async def take(self, batches: int) -> None:
        """Wait for another turn where there would be too many in this one."""
        self._batches += batches
        if self._batches > WRITTEN_PER_TURN_MAX:
            self._batches = batches
            await self._slices.turn()


async def _begin(
    request: Any,
    topic_id: bytes,
    asked: Any,
    coordinator: ShareCoordinator,
    waiting: list[tuple[Any, Waiting]],
    pace: Pace,
) -> Any:
    result_class = ANSWERS[type(request)].partition
    key = SharePartitionKey(request.group_id, bytes(topic_id), asked.partition)
    try:
        if isinstance(request, WriteShareGroupStateRequest):
            result, committed = result_class(asked.partition), await _write(key, asked, coordinator, pace)
        else:
            result, committed = _act(request, key, asked, coordinator, result_class)
    except BrokerError as error:
        return result_class(asked.partition, error.code, error.message or None)
    if committed is not None:
        waiting.append((result, committed))
    return result


def _act(
    request: Message, key: SharePartitionKey, asked: Any, coordinator: ShareCoordinator, result_class: Any
) -> tuple[Any, Waiting | None]:
    match request:
        case InitializeShareGroupStateRequest():
            return result_class(asked.partition), coordinator.initialize(key, asked.state_epoch, asked.start_offset)
        case DeleteShareGroupStateRequest():
            return result_class(asked.partition), coordinator.delete(key)
        case ReadShareGroupStateRequest():
            state, committed = coordinator.read(key, asked.leader_epoch)
            return _state_of(asked.partition, state), committed
        case _:
            summary, committed = coordinator.summarize(key)
            return _summary_of(asked.partition, summary), committed


async def _write(key: SharePartitionKey, asked: Any, coordinator: ShareCoordinator, pace: Pace) -> Waiting | None:
    """Write a state down, of very many batches some a turn: each part by itself is true. Raises BrokerError."""
    batches = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in asked.state_batches
    ]
    if len(batches) > WRITTEN_PER_TURN_MAX:
        check_batches(batches)  # before the first part of them
    while len(batches) > WRITTEN_PER_TURN_MAX:  # the start moves with the last of them
        some, batches = batches[:WRITTEN_PER_TURN_MAX], batches[WRITTEN_PER_TURN_MAX:]
        await pace.take(len(some))
        coordinator.write(key, WrittenState(asked.state_epoch, asked.leader_epoch, UNSET, UNSET, some))
    await pace.take(len(batches))
    complete = asked.delivery_complete_count
    return coordinator.write(
        key, WrittenState(asked.state_epoch, asked.leader_epoch, asked.start_offset, complete, batches)
    )


def _state_of(partition: int, state: ShareState) -> states.PartitionResult:
    packed: Any = state.batches  # unpacked at the end: a state may have very many
    return states.PartitionResult(partition, 0, None, state.state_epoch, state.start_offset, packed)


def _summary_of(partition: int, state: ShareState | None) -> summaries.PartitionResult:
    if state is None:
        return summaries.PartitionResult(partition, start_offset=UNSET, delivery_complete_count=UNSET)
    return summaries.PartitionResult(
        partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )
