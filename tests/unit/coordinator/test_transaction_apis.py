"""The APIs of transactions over a real socket, as producers of each generation use them; also after a restart."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.events import Changed
from kavka_broker.core.transaction.state import TransactionState as State
from kavka_broker.core.transaction.state_counts import Census
from kavka_broker.core.transaction.timeouts import is_overdue
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kavka_broker.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kavka_broker.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TransactionState
from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from kavka_broker.protocol.messages.end_txn_response import EndTxnResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.list_transactions_request import ListTransactionsRequest
from kavka_broker.protocol.messages.list_transactions_response import ListTransactionsResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kavka_broker.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kavka_broker.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kavka_broker.protocol.records.record import build_batch
from tests.support.in_process import Client, InProcess, running
from tests.support.waiting import until
from tests.unit.coordinator.calls import find

Me = tuple[int, int]
Scenario = Callable[[InProcess, Client], Awaitable[None]]
NOTHING: Mapping[str, str] = {}
FORMER, PRESENT = 4, 5  # versions of EndTxn: transaction versions 1 and 2


def play(directory: Path, scenario: Scenario, settings: Mapping[str, str] = NOTHING) -> None:
    async def run() -> None:
        async with running(directory, settings) as inside:
            if inside.broker.metadata.topics.get("t") is None:
                await inside.create("t", 2)
            client = await inside.connect()
            await find(client, "x", key_type=1)
            await find(client, "g")
            await until(lambda: not inside.broker.transactions.is_loading)
            await scenario(inside, client)

    asyncio.run(run())


async def init(
    client: Client, *, version: int = 5, timeout_ms: int = 60_000, me: Me = (-1, -1), name: str = "x"
) -> tuple[int, Me]:
    request = InitProducerIdRequest(name, timeout_ms, *me)
    answer = await client.call(request, InitProducerIdResponse, version)
    return answer.error_code, (answer.producer_id, answer.producer_epoch)


async def begun(client: Client, *, timeout_ms: int = 60_000) -> Me:
    """A producer's id and epoch, once it has them."""
    while True:
        code, me = await init(client, timeout_ms=timeout_ms)
        if code != ErrorCode.CONCURRENT_TRANSACTIONS:
            assert code == 0, ErrorCode(code)
            return me


async def add(client: Client, me: Me, *indexes: int, topic: str = "t", version: int = 3) -> list[int]:
    topics = [AddPartitionsToTxnTopic(topic, list(indexes))]
    request = AddPartitionsToTxnRequest([], "x", *me, topics)
    answer = await client.call(request, AddPartitionsToTxnResponse, version)
    (answered,) = answer.results_by_topic_v3_and_below
    return [result.partition_error_code for result in answered.results_by_partition]


async def produce(client: Client, me: Me, sequence: int = 0, index: int = 0, version: int = 12) -> int:
    batch = build_batch(
        [(None, b"v")], timestamp_ms=1, producer_id=me[0], producer_epoch=me[1], base_sequence=sequence,
        transactional=True,
    )  # fmt: skip
    data = TopicProduceData("t", partition_data=[PartitionProduceData(index, batch)])
    answer = await client.call(ProduceRequest("x", -1, 9_000, [data]), ProduceResponse, version)
    return answer.responses[0].partition_responses[0].error_code


async def end(client: Client, me: Me, *, commits: bool, version: int = PRESENT) -> tuple[int, Me]:
    answer = await client.call(EndTxnRequest("x", *me, commits), EndTxnResponse, version)
    return answer.error_code, (answer.producer_id, answer.producer_epoch)


async def stage(client: Client, me: Me, offset: int, version: int = 5, **member: object) -> int:
    topics = [TxnOffsetCommitRequestTopic("t", partitions=[TxnOffsetCommitRequestPartition(0, offset)])]
    request = TxnOffsetCommitRequest("x", "g", *me, topics=topics, **member)  # type: ignore[arg-type]
    answer = await client.call(request, TxnOffsetCommitResponse, version)
    return answer.topics[0].partitions[0].error_code


async def fetched(client: Client, *, stable: bool = True) -> tuple[int, int]:
    groups = [OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t", partition_indexes=[0])])]
    answer = await client.call(OffsetFetchRequest(groups=groups, require_stable=stable), OffsetFetchResponse, 9)
    told = answer.groups[0].topics[0].partitions[0]
    return told.committed_offset, told.error_code


async def described(client: Client, name: str = "x") -> TransactionState:
    request = DescribeTransactionsRequest([name])
    return (await client.call(request, DescribeTransactionsResponse, 0)).transaction_states[0]


async def resting(client: Client) -> str:
    """The state of the transaction once it is complete."""
    while (state := (await described(client)).transaction_state).startswith("Prepare"):
        await asyncio.sleep(0)
    return state


def stable_offset(inside: InProcess, index: int = 0) -> tuple[int, int]:
    partition = inside.broker.partitions.leader("t", index)
    return partition.last_stable_offset, partition.high_watermark


@pytest.mark.parametrize("commits", [True, False])
def test_a_producer_of_version_2(tmp_path: Path, *, commits: bool) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        me = await begun(client)
        assert me[1] == 0
        assert await produce(client, me) == 0, "the leader adds the partition"
        assert stable_offset(inside) == (0, 1)
        assert (await described(client)).transaction_state == "Ongoing"
        code, following = await end(client, me, commits=commits)
        assert (code, following) == (0, (me[0], 1))
        assert await end(client, me, commits=commits) in ((0, following), (ErrorCode.CONCURRENT_TRANSACTIONS, (-1, -1)))
        assert await resting(client) == ("CompleteCommit" if commits else "CompleteAbort")
        assert stable_offset(inside) == (2, 2)
        assert await end(client, me, commits=commits) == (0, following)
        assert (await end(client, me, commits=not commits))[0] == ErrorCode.INVALID_TXN_STATE
        assert await produce(client, me, 1) == ErrorCode.INVALID_PRODUCER_EPOCH, "late, of the transaction before"
        assert await produce(client, following) == 0

    play(tmp_path, scenario)


def test_a_producer_of_version_1(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        me = await begun(client)
        assert await produce(client, me, version=11) == ErrorCode.TRANSACTION_ABORTABLE, "not added"
        assert await produce(client, me, version=10) == ErrorCode.INVALID_TXN_STATE
        assert await add(client, me, 0, 7) == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await add(client, me, 0, topic="__consumer_offsets") == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        assert await add(client, me, 0, 1) == [0, 0]
        assert await produce(client, me, version=11) == 0
        assert await end(client, me, commits=True, version=FORMER) == (0, (-1, -1))
        assert await resting(client) == "CompleteCommit"
        assert [stable_offset(inside, index) for index in range(2)] == [(2, 2), (1, 1)], "each has the marker"
        assert await add(client, me, 0) == [0], "the epoch is the same"
        assert (await end(client, me, commits=False, version=FORMER))[0] == 0

    play(tmp_path, scenario)


def test_the_next_transaction_waits_for_the_end_of_the_last(tmp_path: Path) -> None:
    """CONCURRENT_TRANSACTIONS would have each transaction of a busy producer cost its client a pause."""

    async def scenario(_: InProcess, client: Client) -> None:
        me = await begun(client)
        assert await add(client, me, 0, 1) == [0, 0]
        for _round in range(20):
            client.send(EndTxnRequest("x", *me, True), FORMER)
            client.send(AddPartitionsToTxnRequest([], "x", *me, [AddPartitionsToTxnTopic("t", [0, 1])]), 3)
            assert (await client.receive(EndTxnResponse, FORMER)).error_code == 0
            answer = await client.receive(AddPartitionsToTxnResponse, 3)
            results = answer.results_by_topic_v3_and_below[0].results_by_partition
            assert [result.partition_error_code for result in results] == [0, 0]
        client.send(EndTxnRequest("x", *me, True), FORMER)
        client.send(AddOffsetsToTxnRequest("x", *me, "g"), 3)
        assert (await client.receive(EndTxnResponse, FORMER)).error_code == 0
        assert (await client.receive(AddOffsetsToTxnResponse, 3)).error_code == 0

    play(tmp_path, scenario)


def test_the_next_producer_fences_the_last(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        first = await begun(client)
        assert await produce(client, first) == 0
        assert (await init(client))[0] == ErrorCode.CONCURRENT_TRANSACTIONS, "what the first has begun ends before"
        second = await begun(client)
        assert second == (first[0], 2)
        assert stable_offset(inside) == (2, 2)
        assert await produce(client, first, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await end(client, first, commits=True))[0] == ErrorCode.PRODUCER_FENCED
        assert (await end(client, first, commits=True, version=1))[0] == ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await init(client, me=first))[0] == ErrorCode.PRODUCER_FENCED
        assert (await init(client, me=first, version=3))[0] == ErrorCode.INVALID_PRODUCER_EPOCH

    play(tmp_path, scenario)


def test_what_producers_may_not_ask_for(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        for timeout_ms in (0, -1, 900_001):
            assert (await init(client, timeout_ms=timeout_ms))[0] == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert (await init(client, name=""))[0] == ErrorCode.INVALID_REQUEST
        assert (await init(client, me=(5, -1)))[0] == ErrorCode.INVALID_REQUEST
        assert await add(client, (1, 0), 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        assert (await end(client, (1, 0), commits=True))[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert (await described(client, "unknown")).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert (await described(client, "")).error_code == ErrorCode.INVALID_REQUEST

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("commits", [True, False])
def test_offsets_in_a_transaction(tmp_path: Path, version: int, *, commits: bool) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        me = await begun(client)
        if version < 5:
            assert await stage(client, me, 9, version) == ErrorCode.INVALID_TXN_STATE, "not added"
            added = await client.call(AddOffsetsToTxnRequest("x", *me, "g"), AddOffsetsToTxnResponse, 3)
            assert added.error_code == 0
        assert await stage(client, me, 9, version) == 0
        assert await fetched(client) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await fetched(client, stable=False) == (-1, 0)
        assert (await end(client, me, commits=commits, version=version))[0] == 0
        await resting(client)
        assert await fetched(client) == (9 if commits else -1, 0)

    play(tmp_path, scenario)


def test_offsets_of_the_first_group_of_all_can_be_added(tmp_path: Path) -> None:
    """Producers look for the group's coordinator behind this, and only that makes the topic otherwise."""

    async def run() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect()
            await find(client, "x", key_type=1)
            await until(lambda: not inside.broker.transactions.is_loading)
            me = await begun(client)
            added = await client.call(AddOffsetsToTxnRequest("x", *me, "g"), AddOffsetsToTxnResponse, 3)
            assert added.error_code == 0

    asyncio.run(run())


def test_a_member_that_is_not_in_the_group_stages_nothing(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        me = await begun(client)
        assert (
            await stage(client, me, 9, generation_id_or_member_epoch=3, member_id="m") == ErrorCode.ILLEGAL_GENERATION
        )
        assert await fetched(client) == (-1, 0)

    play(tmp_path, scenario)


def test_a_producer_names_topics_by_id_and_hears_of_missing_groups(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        me = await begun(client)
        topic = inside.broker.metadata.topics.get("t")
        assert topic is not None

        async def stage_by_id(topic_id: bytes, version: int = 6, index: int = 0, **member: object) -> int:
            topics = [TxnOffsetCommitRequestTopic("t", topic_id, [TxnOffsetCommitRequestPartition(index, 7)])]
            request = TxnOffsetCommitRequest("x", "g", *me, topics=topics, **member)  # type: ignore[arg-type]
            answer = await client.call(request, TxnOffsetCommitResponse, version)
            assert (answer.topics[0].name, answer.topics[0].topic_id) == ("", topic_id)
            return answer.topics[0].partitions[0].error_code

        assert await stage_by_id(bytes(16)) == ErrorCode.UNKNOWN_TOPIC_ID
        assert await stage_by_id(b"another topic id") == ErrorCode.UNKNOWN_TOPIC_ID
        assert await stage_by_id(topic.topic_id, index=99) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        member: dict[str, Any] = {"generation_id_or_member_epoch": 3, "member_id": "a"}
        assert await stage_by_id(topic.topic_id, **member) == ErrorCode.GROUP_ID_NOT_FOUND
        assert await stage(client, me, 7, **member) == ErrorCode.ILLEGAL_GENERATION
        assert await stage_by_id(topic.topic_id) == ErrorCode.NONE
        assert (await end(client, me, commits=True))[0] == ErrorCode.NONE
        await resting(client)
        assert await fetched(client) == (7, 0)

    play(tmp_path, scenario)


def test_a_group_without_a_name_stages_nothing(tmp_path: Path) -> None:
    """As in Apache Kafka: its offsets would be those of every client that names no group."""

    async def scenario(_: InProcess, client: Client) -> None:
        me = await begun(client)
        topics = [TxnOffsetCommitRequestTopic("t", partitions=[TxnOffsetCommitRequestPartition(0, 5)])]
        request = TxnOffsetCommitRequest("x", "", *me, topics=topics)
        answer = await client.call(request, TxnOffsetCommitResponse, 5)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID

    play(tmp_path, scenario)


def test_names_of_32_kilobytes_are_taken(tmp_path: Path) -> None:
    """The bound on short requests closed the connection of a producer with a long id, whose transaction stayed open."""

    async def scenario(_: InProcess, client: Client) -> None:
        name = "i" * 32_767
        added = AddOffsetsToTxnRequest(name, 1, 0, name)
        assert (
            await client.call(added, AddOffsetsToTxnResponse, 3)
        ).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        ended = EndTxnRequest(name, 1, 0, True)
        assert (await client.call(ended, EndTxnResponse, 5)).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING

    play(tmp_path, scenario)


def test_transactions_go_on_after_a_restart(tmp_path: Path) -> None:
    producers: list[Me] = []

    async def before(_: InProcess, client: Client) -> None:
        producers.append(await begun(client))
        assert await produce(client, producers[0]) == 0
        assert await stage(client, producers[0], 9) == 0

    async def after(inside: InProcess, client: Client) -> None:
        assert (await described(client)).transaction_state == "Ongoing"
        assert await fetched(client) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await produce(client, producers[0], 1) == 0
        assert (await end(client, producers[0], commits=True))[0] == 0
        assert await resting(client) == "CompleteCommit"
        assert await fetched(client) == (9, 0)
        assert stable_offset(inside) == (3, 3)

    play(tmp_path, before)
    play(tmp_path, after)


def test_a_transaction_that_takes_too_long_is_aborted(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        me = await begun(client, timeout_ms=1)
        assert await produce(client, me) == 0

        def is_over() -> bool:
            inside.broker.transactions._abort_overdue()
            return stable_offset(inside) == (2, 2)

        await until(is_over)
        assert await resting(client) == "CompleteAbort"
        assert (await end(client, me, commits=True))[0] == ErrorCode.INVALID_TXN_STATE
        assert await produce(client, me, 1) == ErrorCode.INVALID_PRODUCER_EPOCH

    play(tmp_path, scenario)


def told(inside: InProcess) -> list[tuple[str, Change]]:
    """What the audit trail is told of changes: by whom, and what."""
    assert inside.broker.audit is not None
    happenings = (tally.happening for tally in inside.broker.audit.take(0))
    return [(one.principal, one.change) for one in happenings if isinstance(one, Changed)]


def audited(directory: Path) -> Mapping[str, str]:
    key = directory / "audit.key"
    key.write_bytes(b"k" * 32)
    return {"kavka.audit.key.file": str(key), "kavka.audit.interval.ms": "600000"}


def test_aborts_of_a_coordinator_and_of_an_administrator_are_audited(tmp_path: Path) -> None:
    settings = {
        **audited(tmp_path), "transaction.abort.timed.out.transaction.cleanup.interval.ms": "10",
        "transaction.max.timeout.ms": "60000",
    }  # fmt: skip

    async def scenario(inside: InProcess, client: Client) -> None:
        me = await begun(client, timeout_ms=60_000)
        assert await produce(client, me) == 0
        told(inside)
        marker = WritableTxnMarker(*me, False, [WritableTxnMarkerTopic("t", [0])], -1)
        await client.call(WriteTxnMarkersRequest([marker]), WriteTxnMarkersResponse, 1)
        value = f"aborted: producer {me[0]}, epoch {me[1]}"
        by_hand = Change("ALTER", "topic", "t", "transaction in partition 0", value)
        assert told(inside) == [("User:ANONYMOUS", by_hand)]

        await begun(client, timeout_ms=1)
        fenced = Change("ALTER", "transactional_id", "x", "transaction", "aborted: fenced")
        assert told(inside) == [("User:ANONYMOUS", fenced)]

        _, me = await init(client, timeout_ms=1)
        await add(client, me, 0)
        await until(lambda: inside.broker.transactions.aborted["timeout"])
        overdue = Change("ALTER", "transactional_id", "x", "transaction", "aborted: timeout")
        assert told(inside) == [("Broker:1", overdue)]

    play(tmp_path, scenario, settings)


@pytest.mark.parametrize("is_on", [True, False])
def test_another_system_ends_transactions_where_that_is_on(tmp_path: Path, *, is_on: bool) -> None:
    """KIP-939: such a transaction is never overdue."""

    async def scenario(inside: InProcess, client: Client) -> None:
        request = InitProducerIdRequest("x", 60_000, enable2_pc=True)
        answer = await client.call(request, InitProducerIdResponse, 6)
        if not is_on:
            assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return
        assert answer.error_code == ErrorCode.NONE
        me = answer.producer_id, answer.producer_epoch
        assert await produce(client, me) == ErrorCode.NONE
        transaction = inside.broker.transactions.get("x")
        assert transaction is not None
        assert not is_overdue(transaction, 2**53)
        assert (await described(client)).transaction_timeout_ms == 2**31 - 1
        kept = InitProducerIdRequest("x", 60_000, enable2_pc=True, keep_prepared_txn=True)
        answer = await client.call(kept, InitProducerIdResponse, 6)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await end(client, me, commits=True))[0] == ErrorCode.NONE

    play(
        tmp_path,
        scenario,
        {"unstable.api.versions.enable": "true", "transaction.two.phase.commit.enable": str(is_on).lower()},
    )


def test_an_id_that_nobody_uses_is_forgotten(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        me = await begun(client)
        assert await produce(client, me) == 0
        code, me = await end(client, me, commits=True)
        assert code == 0
        await resting(client)

        def is_forgotten() -> bool:
            """Once the clock has gone on by a millisecond."""
            for shard in inside.broker.transactions.shards():
                list(shard.expire())
            return not any(shard.transactions for shard in inside.broker.transactions.shards())

        await until(is_forgotten)
        assert await produce(client, me) == ErrorCode.INVALID_PRODUCER_ID_MAPPING

    play(
        tmp_path,
        scenario,
        {
            "transactional.id.expiration.ms": "1",
        },
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_transactions_are_listed(tmp_path: Path, version: int) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        me = await begun(client)
        assert await produce(client, me) == 0

        async def listed(
            *states: str, producers: tuple[int, ...] = (), duration: int = -1
        ) -> tuple[list[str], list[str]]:
            request = ListTransactionsRequest(list(states), list(producers))
            if version:
                request.duration_filter = duration
            answer = await client.call(request, ListTransactionsResponse, version)
            found = [f"{one.transactional_id} {one.transaction_state}" for one in answer.transaction_states]
            return found, answer.unknown_state_filters

        assert await listed() == (["x Ongoing"], [])
        assert await listed("Ongoing", "Nonsense") == (["x Ongoing"], ["Nonsense"])
        assert await listed("CompleteAbort") == ([], [])
        assert await listed(producers=(me[0] + 1,)) == ([], [])
        if version:
            assert await listed(duration=10_000_000) == ([], [])

    play(tmp_path, scenario)


def test_the_coordinator_counts_its_ids_and_what_it_aborts_by_itself(tmp_path: Path) -> None:
    async def scenario(broker: InProcess, client: Client) -> None:
        transactions = broker.server.broker.as_broker.transactions
        me = await begun(client, timeout_ms=1)
        assert await add(client, me, 0) == [0]

        def census() -> Census:
            return Census.of(shard.census for shard in transactions.shards())

        await until(lambda: census().states.get(State.COMPLETE_ABORT) == 1)
        assert transactions.aborted["timeout"] == 1
        assert census().oldest_started_ms is None
        await begun(client)
        assert transactions.aborted == {"timeout": 1, "fenced": 0}

    play(tmp_path, scenario, {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20"})


def test_transactions_are_listed_by_a_pattern_of_the_whole_id(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        await begun(client)

        async def listed(pattern: str | None) -> ErrorCode | list[str]:
            request = ListTransactionsRequest(transactional_id_pattern=pattern)
            answer = await client.call(request, ListTransactionsResponse, 2)
            found = [state.transactional_id for state in answer.transaction_states]
            return ErrorCode(answer.error_code) if answer.error_code else found

        assert await listed(None) == await listed("") == await listed("x|y") == await listed(".*") == ["x"]
        assert await listed("x.") == await listed("y") == []
        assert await listed("(x") == await listed("(?=x)x") == ErrorCode.INVALID_REGULAR_EXPRESSION

    play(tmp_path, scenario)


def test_a_broker_adds_and_verifies_for_several_transactions(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        me = await begun(client)
        topics = [AddPartitionsToTxnTopic("t", [0])]

        async def asked(*, verifies: bool, version: int = 5) -> dict[str, int]:
            request = AddPartitionsToTxnRequest(
                [
                    AddPartitionsToTxnTransaction("x", *me, verifies, topics),
                    AddPartitionsToTxnTransaction("unknown", *me, verifies, topics),
                ]
            )
            answer = await client.call(request, AddPartitionsToTxnResponse, version)
            return {
                one.transactional_id: one.topic_results[0].results_by_partition[0].partition_error_code
                for one in answer.results_by_transaction
            }

        unknown = {"unknown": ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        assert await asked(verifies=True) == {"x": ErrorCode.TRANSACTION_ABORTABLE, **unknown}
        assert await asked(verifies=False) == {"x": 0, **unknown}
        assert await asked(verifies=True) == {"x": 0, **unknown}

    play(tmp_path, scenario)
