"""Requests of producers of transaction version 1 over connections that these have given up."""

from pathlib import Path

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from tests.support.in_process import Client, InProcess
from tests.unit.coordinator.test_transaction_apis import (
    FORMER,
    NOTHING,
    Me,
    add,
    begun,
    described,
    end,
    play,
    produce,
    resting,
)

SWITCH = "kavka.transaction.connection.verification.enable"


async def over_two(inside: InProcess, former: Client) -> tuple[Client, Me]:
    """A producer ends a transaction over one connection, and is within the next one over a later one."""
    me = await begun(former)
    assert await add(former, me, 0) == [0]
    assert (await end(former, me, commits=True, version=FORMER))[0] == 0
    assert await resting(former) == "CompleteCommit"
    later = await inside.connect()
    assert await add(later, me, 0) == [0]
    assert await produce(later, me, version=11) == 0
    return later, me


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_a_late_end_of_the_transaction_before_is_refused(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, former: Client) -> None:
        later, me = await over_two(inside, former)
        assert (await end(former, me, commits=True, version=version))[0] == ErrorCode.NOT_COORDINATOR
        assert await former.is_closed()
        assert (await described(later)).transaction_state == "Ongoing"
        assert inside.broker.transactions.late_requests.refused == 1
        # A producer that had used it all the same asks again over another connection.
        again = await inside.connect()
        assert (await end(again, me, commits=True, version=version))[0] == 0

    play(tmp_path, scenario)


def test_late_partitions_and_offsets_begin_no_transaction(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, former: Client) -> None:
        other = await inside.connect()
        later, me = await over_two(inside, former)
        assert (await end(later, me, commits=True, version=FORMER))[0] == 0
        assert await resting(later) == "CompleteCommit"
        assert await add(former, me, 1) == [ErrorCode.NOT_COORDINATOR]
        assert await former.is_closed()
        request = AddOffsetsToTxnRequest("x", *me, "g")
        answer = await other.call(request, AddOffsetsToTxnResponse, 3)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        assert await other.is_closed()
        assert (await described(later)).transaction_state == "CompleteCommit"

    play(tmp_path, scenario)


def test_the_next_producer_of_an_id_may_have_connected_before(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, earlier: Client) -> None:
        later = await inside.connect()
        me = await begun(later)
        assert await add(later, me, 0) == [0]
        successor = await begun(earlier)
        assert await add(earlier, successor, 0) == [0]
        # The fenced one has the later connection, and is told what it is.
        assert (await end(later, me, commits=True, version=FORMER))[0] == ErrorCode.PRODUCER_FENCED
        assert (await end(earlier, successor, commits=True, version=FORMER))[0] == 0

    play(tmp_path, scenario)


def test_a_producer_of_version_2_needs_no_such_refusal(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, former: Client) -> None:
        later = await inside.connect()
        me = await begun(later)
        assert await produce(later, me) == 0
        assert (await end(former, me, commits=True))[0] == 0
        assert inside.broker.transactions.late_requests.refused == 0

    play(tmp_path, scenario)


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, former: Client) -> None:
        _, me = await over_two(inside, former)
        assert (await end(former, me, commits=True, version=FORMER))[0] == 0, "as with Apache Kafka"

    play(tmp_path, scenario, {**NOTHING, SWITCH: "false"})
