"""Markers on their way: what they say, when they are sent again, and when nobody sends them any more."""

from collections.abc import Sequence

import pytest

from kavka_broker.core.transaction.ending import End, end
from kavka_broker.core.transaction.state import Standing, Transaction, TransactionState
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.write_txn_markers_request import WritableTxnMarker
from kavka_broker.protocol.messages.write_txn_markers_response import WritableTxnMarkerResult
from tests.support.waiting import until
from tests.unit.coordinator.fakes import play
from tests.unit.coordinator.test_large_transactions import PRODUCER, Coordinator

COORDINATOR_EPOCH = 7


class Answering(Coordinator):
    """A coordinator whose markers are answered with these errors, one request after the other, and then with none."""

    def __init__(self, *codes: ErrorCode) -> None:
        super().__init__()
        self.partition.leader_epoch = COORDINATOR_EPOCH
        self.codes, self.sent = list(codes), list[WritableTxnMarker]()

    async def write(self, markers: Sequence[WritableTxnMarker]) -> list[WritableTxnMarkerResult]:
        self.sent += markers
        results = await super().write(markers)
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        for result in results:
            for topic in result.topics:
                for partition in topic.partitions:
                    partition.error_code = code
        return results

    async def commit(self, *places: tuple[str, int], version: int = 2) -> Transaction:
        """Decide a transaction that has written to these partitions."""
        ongoing = Standing(PRODUCER, 4, 60_000, TransactionState.ONGOING, frozenset(places), started_ms=1, updated_ms=1)
        transaction = self.shard.admit("x", ongoing)
        following = end(transaction, End(PRODUCER, 4, True, version), -1, 1)
        assert following is not None
        await self.shard.move(transaction, following)
        return transaction


@pytest.mark.parametrize(("version", "epoch"), [(0, 4), (2, 5)])
def test_a_marker_says_who_has_decided_and_by_which_rules(version: int, epoch: int) -> None:
    """The epoch of version 2 is the one that the decision has raised."""

    async def scenario() -> None:
        coordinator = Answering()
        transaction = await coordinator.commit(("t", 3), version=version)
        await until(lambda: transaction.standing.state is TransactionState.COMPLETE_COMMIT)
        (marker,) = coordinator.sent
        assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (PRODUCER, epoch, True)
        assert (marker.coordinator_epoch, marker.transaction_version) == (COORDINATOR_EPOCH, version)
        assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", [3])]

    play(scenario)


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_marker_that_may_not_be_written_is_sent_again(code: ErrorCode) -> None:
    async def scenario() -> None:
        coordinator = Answering(code, code)
        transaction = await coordinator.commit(("t", 3))
        await until(lambda: len(coordinator.sent) == 2)
        assert transaction.standing.state is TransactionState.PREPARE_COMMIT
        assert transaction.unmarked == {("t", 3)}
        await until(lambda: transaction.standing.state is TransactionState.COMPLETE_COMMIT)
        assert len(coordinator.sent) == 3

    play(scenario)


def test_a_marker_of_a_coordinator_that_is_not_in_charge_any_more_is_not_sent_again() -> None:
    """Nor is its transaction complete: another coordinator says so."""

    async def scenario() -> None:
        coordinator = Answering(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        transaction = await coordinator.commit(("t", 3))
        await until(lambda: len(coordinator.sent) == 1)
        await until(lambda: not coordinator.sender.tasks)
        assert transaction.standing.state is TransactionState.PREPARE_COMMIT
        assert not coordinator.sender.unknown_destinations

    play(scenario)


def test_a_shard_that_has_been_given_up_sends_no_marker() -> None:
    """KAFKA-16352: what is left in the queues is of the former epoch."""

    async def scenario() -> None:
        coordinator = Answering()
        transaction = await coordinator.commit(("t", 3))
        coordinator.shard.close()
        await until(lambda: not coordinator.sender.tasks)
        assert not coordinator.sent
        assert transaction.standing.state is TransactionState.PREPARE_COMMIT

    play(scenario)


def test_a_deleted_topic_has_nothing_left_to_mark() -> None:
    async def scenario() -> None:
        coordinator = Answering()
        transaction = await coordinator.commit(("gone", 0), ("t", 3))
        await until(lambda: transaction.standing.state is TransactionState.COMPLETE_COMMIT)
        (marker,) = coordinator.sent
        assert [topic.name for topic in marker.topics] == ["t"]

    play(scenario)
