"""ShareFetch and ShareAcknowledge: members of a share group, in the protocol of clients."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.coordinator.share import share_fetches, share_state_client
from kavka_broker.coordinator.share.share_leader import ShareLeader
from kavka_broker.coordinator.share.share_state_client import InitialState
from kavka_broker.coordinator.share.share_state_requests import serve
from kavka_broker.core.metadata.decide.features import Direction, UpdateFeature, update_features
from kavka_broker.core.share.sessions import SessionKey
from kavka_broker.loop.slices import Slices, at_once
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import initialize_share_group_state_request as beginnings
from kavka_broker.protocol.messages import read_share_group_state_summary_request as summaries
from kavka_broker.protocol.messages import share_acknowledge_request as said
from kavka_broker.protocol.messages import share_fetch_request as asked
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.initialize_share_group_state_response import InitializeShareGroupStateResponse
from kavka_broker.protocol.messages.read_share_group_state_summary_response import (
    ReadShareGroupStateSummaryResponse,
)
from kavka_broker.protocol.messages.share_acknowledge_response import ShareAcknowledgeResponse
from kavka_broker.protocol.messages.share_fetch_response import PartitionData, ShareFetchResponse
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.control import ControlType
from kavka_broker.protocol.records.record import read_records
from kavka_broker.protocol.uuids import to_text
from kavka_broker.request import share_acknowledgements
from kavka_broker.runtime.share_figures import share_samples
from tests.support.in_process import Client, InProcess, batch, running
from tests.support.waiting import until
from tests.unit.api.transactions import end, write

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
Acquired = list[tuple[int, int, int]]


class Member:
    """A member of the group g with a connection of its own."""

    def __init__(self, client: Client, topic_id: bytes, name: str = "member") -> None:
        self.client = client
        self.topic_id = topic_id
        self.name = name
        self.epoch = 0

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch - 1

    def request(self, *acks: tuple[int, int, int], wait_ms: int = 0, **options: Any) -> asked.ShareFetchRequest:
        batches = [asked.AcknowledgementBatch(first, last, [kind]) for first, last, kind in acks]
        topics = [asked.FetchTopic(self.topic_id, [asked.FetchPartition(0, 0, batches)])]
        if self.epoch and not acks:
            topics = []
        request = asked.ShareFetchRequest(
            "g", self.name, self.next_epoch(), wait_ms, 1, 1 << 20, 500, 500, topics=topics
        )
        for name, value in options.items():
            setattr(request, name, value)
        return request

    async def fetch(self, *acks: tuple[int, int, int], wait_ms: int = 10_000, **options: Any) -> ShareFetchResponse:
        request = self.request(*acks, wait_ms=wait_ms, **options)
        return await self.client.call(request, ShareFetchResponse, 2)

    async def acquire(self, *acks: tuple[int, int, int], wait_ms: int = 10_000, **options: Any) -> Acquired:
        """What is acquired; each record of it is in the answer."""
        answer = await self.fetch(*acks, wait_ms=wait_ms, **options)
        assert answer.error_code == 0, answer.error_message
        data = data_of(answer)
        if data is None:
            return []
        assert (data.error_code, data.acknowledge_error_code) == (0, 0), (
            data.error_message,
            data.acknowledge_error_message,
        )
        acquired = [(part.first_offset, part.last_offset, part.delivery_count) for part in data.acquired_records]
        assert {one for first, last, _ in acquired for one in range(first, last + 1)} <= set(offsets_of(data))
        return acquired

    async def acknowledge(self, first: int, last: int, *kinds: int, **options: Any) -> int:
        batches = [said.AcknowledgementBatch(first, last, list(kinds))]
        topics = [said.AcknowledgeTopic(self.topic_id, [said.AcknowledgePartition(0, batches)])]
        request = said.ShareAcknowledgeRequest("g", self.name, self.next_epoch(), topics=topics)
        for name, value in options.items():
            setattr(request, name, value)
        answer = await self.client.call(request, ShareAcknowledgeResponse, 2)
        return answer.error_code or answer.responses[0].partitions[0].error_code

    async def leave(self) -> int:
        request = said.ShareAcknowledgeRequest("g", self.name, -1, topics=[])
        return (await self.client.call(request, ShareAcknowledgeResponse, 2)).error_code


def data_of(answer: ShareFetchResponse) -> PartitionData | None:
    return answer.responses[0].partitions[0] if answer.responses else None


def offsets_of(data: PartitionData) -> list[int]:
    assert isinstance(data.records, bytes | memoryview), data.records
    return [record.offset for _, one in split_batches(data.records) for record in read_records(one)]


Scenario = Callable[[InProcess, Member], Awaitable[None]]


def play(directory: Path, scenario: Scenario, settings: Mapping[str, str] | None = None) -> None:
    """Play with a topic t of three batches of three records, and a group that begins at its start."""

    async def whole() -> None:
        async with running(directory, settings) as inside:
            topic_id = await inside.create("t")
            produce(inside, 3)
            await initialize(inside, topic_id)
            await scenario(inside, Member(await inside.connect(), topic_id))

    asyncio.run(whole())


def produce(inside: InProcess, batches: int) -> None:
    for _ in range(batches):
        inside.broker.partitions.leader("t", 0).append(memoryview(bytearray(batch(b"a", b"b", b"c"))))


async def initialize(inside: InProcess, topic_id: bytes, start_offset: int = 0, index: int = 0) -> None:
    client = await inside.connect()
    key = f"g:{to_text(topic_id)}:{index}"
    await client.call(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), FindCoordinatorResponse, 6)
    data = beginnings.InitializeStateData(topic_id, [beginnings.PartitionData(index, 1, start_offset)])
    request = beginnings.InitializeShareGroupStateRequest("g", [data])
    while True:
        answer = await client.call(request, InitializeShareGroupStateResponse, 0)
        if answer.results[0].partitions[0].error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
        await inside.heard()
    assert answer.results[0].partitions[0].error_code == 0


async def summary(inside: InProcess, topic_id: bytes) -> tuple[int, int]:
    """The start offset at the coordinator, and the number of records behind it that are done."""
    data = summaries.ReadStateSummaryData(topic_id, [summaries.PartitionData(0, -1)])
    request = summaries.ReadShareGroupStateSummaryRequest("g", [data])
    answer = await (await inside.connect()).call(request, ReadShareGroupStateSummaryResponse, 1)
    told = answer.results[0].partitions[0]
    return told.start_offset, told.delivery_complete_count


def test_records_are_acquired_and_accepted(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        assert await member.acquire() == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        assert await member.acknowledge(0, 4, ACCEPT) == 0
        assert await summary(inside, member.topic_id) == (5, 0)
        assert await member.acknowledge(6, 8, ACCEPT, RELEASE, REJECT) == 0
        assert await summary(inside, member.topic_id) == (5, 2)
        assert await member.acquire((5, 5, ACCEPT)) == [(7, 7, 2)]
        assert await member.acquire((7, 7, ACCEPT), wait_ms=0) == []
        assert await summary(inside, member.topic_id) == (9, 0)
        counts = inside.broker.as_broker.sharing.fetches.counts.total.by_event
        assert counts == {
            "acquired": 10, "redelivered": 1, "accepted": 8, "released": 1, "archived": 1, "expired": 0
        }  # fmt: skip

    play(tmp_path, scenario)


def test_members_have_different_records(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        other = Member(await inside.connect(), member.topic_id, "other")
        assert await member.acquire(max_records=3) == [(0, 2, 1)]
        assert await other.acquire(max_records=4, share_acquire_mode=1) == [(3, 5, 1), (6, 6, 1)]
        assert await other.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
        assert await member.acquire() == [(7, 8, 1)]
        assert await other.leave() == 0
        assert await member.acquire() == [(3, 5, 2), (6, 6, 2)]

    play(tmp_path, scenario)


def test_a_lost_connection_releases_what_it_held(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        other = Member(await inside.connect(), member.topic_id, "other")
        assert await other.acquire() == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        waiting = asyncio.ensure_future(member.acquire(wait_ms=60_000))
        await until(lambda: len(inside.broker.as_broker.sharing.fetches.sessions.by_key) == 2)
        other.client.close()
        assert await waiting == [(0, 2, 2), (3, 5, 2), (6, 8, 2)]

    play(tmp_path, scenario)


def test_a_member_waits_for_records(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        assert await member.acquire() == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        waiting = asyncio.ensure_future(member.acquire((0, 8, ACCEPT), wait_ms=60_000))
        await until(lambda: bool(inside.broker.partitions.leader("t", 0).waiters.fetches))
        produce(inside, 1)
        assert await waiting == [(9, 11, 1)]

    play(tmp_path, scenario)


def test_a_lock_that_ends_gives_records_to_others(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        other = Member(await inside.connect(), member.topic_id, "other")
        assert await member.acquire(max_records=3) == [(0, 2, 1)]
        await member.acquire()
        assert await other.acquire(wait_ms=60_000, max_records=3) == [(0, 2, 2)]
        assert await member.acknowledge(0, 2, ACCEPT) == ErrorCode.INVALID_RECORD_STATE

    settings = {"group.share.min.record.lock.duration.ms": "1000", "group.share.record.lock.duration.ms": "1000"}
    play(tmp_path, scenario, settings)


def test_sessions_have_epochs(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        del inside
        member.epoch = 3
        assert (await member.fetch(wait_ms=0)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        member.epoch = 0
        assert (await member.fetch((0, 0, ACCEPT), wait_ms=0)).error_code == ErrorCode.INVALID_REQUEST
        member.epoch = 0
        await member.acquire()
        member.epoch = 5
        assert (await member.fetch(wait_ms=0)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        member.epoch = 0
        assert await member.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert await member.acknowledge(0, 0, ACCEPT) == 0
        member.epoch = 0
        assert await member.acquire() == [(1, 2, 2), (3, 5, 2), (6, 8, 2)], (
            "a session that begins again has lost its records"
        )
        assert await member.leave() == 0
        assert await member.leave() == ErrorCode.SHARE_SESSION_NOT_FOUND

    play(tmp_path, scenario)


def test_sessions_have_a_bound(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await member.acquire()
        other = Member(await inside.connect(), member.topic_id, "other")
        assert (await other.fetch(wait_ms=0)).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED

    play(tmp_path, scenario, {"group.share.max.share.sessions": "1", "group.share.max.size": "1"})


def test_a_group_may_forbid_to_renew_locks(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await configure(inside, "share.renew.acknowledge.enable", "false")
        await member.acquire()
        assert await member.acknowledge(0, 8, RENEW, is_renew_ack=True) == ErrorCode.INVALID_RECORD_STATE
        assert await member.acknowledge(0, 8, RENEW) == ErrorCode.INVALID_REQUEST, "the request has to say so"
        assert await member.acknowledge(0, 8, ACCEPT) == 0

    play(tmp_path, scenario)


def test_locks_are_renewed(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        del inside
        await member.acquire()
        assert await member.acknowledge(0, 8, RENEW, is_renew_ack=True) == 0
        assert await member.acknowledge(0, 8, RENEW) == ErrorCode.INVALID_REQUEST
        limits = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "wait_ms": 0}
        assert await member.acquire((0, 8, RENEW), is_renew_ack=True, **limits) == []
        assert (await member.fetch((0, 8, RENEW), is_renew_ack=True)).error_code == ErrorCode.INVALID_REQUEST

    play(tmp_path, scenario)


def test_a_group_that_is_moved_begins_there(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await member.acquire()
        assert await member.leave() == 0
        await until(lambda: not list(inside.broker.as_broker.sharing.fetches.share_partitions))
        await initialize(inside, member.topic_id, 6)
        member.epoch = 0
        assert await member.acquire() == [(6, 8, 1)]

    play(tmp_path, scenario)


def test_without_share_version_nothing_is_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            off = UpdateFeature("share.version", 0, Direction.SAFE_DOWNGRADE)
            await inside.broker.active.submit(lambda metadata, _: update_features(metadata, [off]))
            member = Member(await inside.connect(), bytes(16))
            assert (await member.fetch()).error_code == ErrorCode.UNSUPPORTED_VERSION
            request = said.ShareAcknowledgeRequest("g", "member", 1)
            answer = await member.client.call(request, ShareAcknowledgeResponse, 2)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "options",
    [{"group_id": None}, {"member_id": None}, {"member_id": ""}, {"member_id": "x" * 37}, {"share_acquire_mode": 2}],
)
def test_what_names_no_member_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        del inside
        assert (await member.fetch(**options)).error_code == ErrorCode.INVALID_REQUEST

    play(tmp_path, scenario)


def test_an_answer_has_a_bounded_number_of_errors_and_the_next_has_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session may name 200,000 partitions that are not there, and ask with 68 bytes."""
    monkeypatch.setattr(share_fetches, "REFUSED_MAX", 3)

    async def scenario(inside: InProcess, member: Member) -> None:
        unknown = asked.FetchTopic(bytes(15) + b"x", [asked.FetchPartition(index) for index in range(5)])
        real = asked.FetchTopic(member.topic_id, [asked.FetchPartition(0)])
        first = await member.fetch(topics=[unknown, real])
        assert [part.partition_index for part in first.responses[0].partitions] == [0, 1, 2]
        second = await member.fetch()
        errors = {part.partition_index: part.error_code for topic in second.responses for part in topic.partitions}
        assert {3, 4} <= errors.keys(), "those that have not been looked at come first"
        fetches = inside.broker.as_broker.sharing.fetches
        await until(lambda: any(leader.window is not None for leader in fetches.share_partitions))
        answers = [second, await member.fetch()]
        parts = [part for answer in answers for topic in answer.responses for part in topic.partitions]
        assert any(part.acquired_records for part in parts)

    play(tmp_path, scenario)


def test_what_is_said_of_partitions_that_are_not_there_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task for each of 30,000 partitions of one request took 50 MB, and to await them all 39 ms of the loop."""
    begun: list[Any] = []
    begin = share_acknowledgements._begin

    async def count(*details: Any, **options: Any) -> Any:
        begun.append(details)
        return await begin(*details, **options)

    monkeypatch.setattr(share_acknowledgements, "_begin", count)

    async def scenario(inside: InProcess, member: Member) -> None:
        assert await member.acquire() == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        accepted = [said.AcknowledgementBatch(0, 2, [ACCEPT])]
        unknown = said.AcknowledgeTopic(
            bytes(15) + b"x", [said.AcknowledgePartition(index, accepted) for index in range(120)]
        )
        real = said.AcknowledgeTopic(member.topic_id, [said.AcknowledgePartition(0, accepted)])
        request = said.ShareAcknowledgeRequest("g", member.name, member.next_epoch(), topics=[unknown, real])
        answer = await member.client.call(request, ShareAcknowledgeResponse, 2)
        codes = [part.error_code for topic in answer.responses for part in topic.partitions]
        assert sorted(codes) == [0, *[ErrorCode.UNKNOWN_TOPIC_ID] * 120]
        assert len(begun) == 1

    play(tmp_path, scenario)


def test_a_session_serves_one_request_at_a_time(tmp_path: Path) -> None:
    """Otherwise each connection of one member has an answer about all partitions of the session."""

    async def scenario(inside: InProcess, member: Member) -> None:
        assert await member.acquire() == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        waiting = asyncio.ensure_future(member.fetch(wait_ms=60_000))
        session = inside.broker.as_broker.sharing.fetches.sessions.by_key[SessionKey("g", member.name)]
        await until(lambda: session.is_busy)
        other = Member(await inside.connect(), member.topic_id)
        other.name, other.epoch = member.name, member.epoch
        busy = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert (await other.fetch(wait_ms=0)).error_code == busy
        other.epoch = member.epoch
        assert await other.acknowledge(0, 2, 1) == busy
        produce(inside, 1)
        assert (await waiting).error_code == 0
        assert await member.acknowledge(0, 2, 1) == 0

    play(tmp_path, scenario)


def test_what_does_not_exist_is_said(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        stranger = Member(await inside.connect(), bytes(15) + b"\x07", "stranger")
        data = data_of(await stranger.fetch(wait_ms=60_000))
        assert data is not None
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        other = await inside.create("u")
        uninitialized = Member(await inside.connect(), other, "uninitialized")
        data = None
        while data is None:  # a fetch whose wait ends while the state is asked for again has nothing to say
            data = data_of(await uninitialized.fetch(wait_ms=500))
        assert data.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    play(tmp_path, scenario)


def test_an_error_waits_for_a_share_partition_that_is_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        states, is_free = inside.broker.as_broker.sharing.states, asyncio.Event()
        read, asks = states.read, 0

        async def held(*place: Any) -> Any:
            nonlocal asks
            asks += 1
            await is_free.wait()
            return await read(*place)

        monkeypatch.setattr(states, "read", held)
        unknown = bytes(15) + b"\x07"
        topics = [asked.FetchTopic(topic, [asked.FetchPartition(0, 0, [])]) for topic in (unknown, member.topic_id)]
        waiting = asyncio.ensure_future(member.fetch(wait_ms=60_000, topics=topics))
        await until(lambda: asks)
        for _ in range(20):
            await inside.heard()
        assert not waiting.done(), "its client would ask again at once"
        is_free.set()
        parts = [topic.partitions[0] for topic in (await waiting).responses]
        assert {part.error_code for part in parts} == {0, ErrorCode.UNKNOWN_TOPIC_ID}
        assert sum(len(part.acquired_records) for part in parts) == 3

    play(tmp_path, scenario)


def test_acknowledged_records_stay_acknowledged_after_a_restart(tmp_path: Path) -> None:
    async def before(inside: InProcess, member: Member) -> None:
        assert await member.acquire() == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        assert await member.acknowledge(1, 4, ACCEPT, ACCEPT, REJECT, RELEASE) == 0
        topics.append(member.topic_id)

    topics: list[bytes] = []
    play(tmp_path, before)

    async def after() -> None:
        async with running(tmp_path) as inside:
            member = Member(await inside.connect(), topics[0])
            assert await member.acquire() == [(0, 0, 2), (4, 5, 2), (6, 8, 2)], "its connection ended"

    asyncio.run(after())


def test_committed_records_alone_are_delivered(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await isolate(inside)
        partition = inside.broker.partitions.leader("t", 0)
        assert await member.acquire() == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        write(partition, producer=7)  # 9 and 10
        write(partition, producer=8)  # 11 and 12
        assert await member.acquire((0, 8, ACCEPT), wait_ms=0) == []
        end(partition, 7, ControlType.ABORT)
        assert await member.acquire(wait_ms=0) == [], "11 is not decided, and 9 not before the last stable offset"
        waiting = asyncio.ensure_future(member.acquire(wait_ms=60_000))
        await until(lambda: bool(partition.waiters.stable_fetches))
        end(partition, 8, ControlType.COMMIT)
        assert await waiting == [(11, 12, 1), (13, 13, 1), (14, 14, 1)], "markers too, and not what is aborted"
        assert await member.acquire((11, 12, ACCEPT), (13, 14, GAP), wait_ms=0) == []
        assert await summary(inside, member.topic_id) == (15, 0), "aborted records are left behind"

    play(tmp_path, scenario)


def test_the_oldest_record_that_waits_has_an_age(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        partition, sharing = inside.broker.partitions.leader("t", 0), inside.broker.as_broker.sharing
        partition.append(memoryview(bytearray(batch(b"d", timestamp_ms=70_000))))

        def oldest_seconds(now_ms: int) -> list[float]:
            name = "kavka_share_group_oldest_record_seconds"
            found = at_once(share_samples(sharing, now_ms))
            return [age for sample, labels, age in found if (sample, labels) == (name, ("g", "t"))]

        assert oldest_seconds(90_000) == [], "no member has come yet"
        await member.acquire()
        assert await member.acknowledge(0, 8, ACCEPT) == 0
        assert oldest_seconds(90_000) == [20]
        assert oldest_seconds(91_500) == [21.5], "a member has it, and is not done with it"
        assert await member.acknowledge(9, 9, ACCEPT) == 0
        assert oldest_seconds(92_000) == [0]

    play(tmp_path, scenario)


async def isolate(inside: InProcess) -> None:
    await configure(inside, "share.isolation.level", "read_committed")


async def configure(inside: InProcess, key: str, value: str) -> None:
    client = await inside.connect()
    config = AlterableConfig(key, 0, value)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(32, "g", [config])])
    answer = await client.call(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == 0


def test_records_that_the_log_has_lost_are_left_behind(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        partition = inside.broker.partitions.leader("t", 0)
        assert await member.acquire(max_records=3) == [(0, 2, 1)]
        partition.trim(5)
        assert await member.acquire() == [(5, 5, 1), (6, 8, 1)]
        assert await member.acknowledge(0, 2, RELEASE) == 0, "they were given out before"
        await until_summary(inside, member.topic_id, (5, 0))
        assert await member.acquire((5, 8, ACCEPT), wait_ms=0) == []

    play(tmp_path, scenario)


async def until_summary(inside: InProcess, topic_id: bytes, wanted: tuple[int, int]) -> None:
    async with asyncio.timeout(60):
        while await summary(inside, topic_id) != wanted:
            pass


def test_many_ranges_are_written_in_parts(tmp_path: Path) -> None:
    async def before(inside: InProcess, member: Member) -> None:
        records = memoryview(bytearray(batch(*[b"x"] * 1200)))
        inside.broker.partitions.leader("t", 0).append(records)
        assert await member.acquire(max_records=2000) == [(0, 2, 1), (3, 5, 1), (6, 8, 1), (9, 1208, 1)]
        assert await member.acknowledge(0, 1208, *[ACCEPT, REJECT, RELEASE] * 403) == 0
        assert await summary(inside, member.topic_id) == (2, 804)
        topics.append(member.topic_id)

    topics: list[bytes] = []
    play(tmp_path, before)

    async def after() -> None:
        async with running(tmp_path) as inside:
            member = Member(await inside.connect(), topics[0])
            found = await member.acquire(max_records=2000)
            assert found == [(offset, offset, 2) for offset in range(2, 1209, 3)]

    asyncio.run(after())


def test_a_member_is_told_that_the_leader_is_elsewhere(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await member.acquire()
        partition = inside.broker.partitions.leader("t", 0)
        partition.apply(partition.state._replace(leader=2, leader_epoch=partition.leader_epoch + 1))
        data = data_of(await member.fetch())
        assert data is not None
        assert (data.error_code, data.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
        data = data_of(await member.fetch((0, 8, ACCEPT)))
        assert data is not None
        assert data.acknowledge_error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await member.acknowledge(0, 8, ACCEPT) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    play(tmp_path, scenario)


def test_room_in_a_full_window_wakes_those_that_wait(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        produce(inside, 40)
        other = Member(await inside.connect(), member.topic_id, "other")
        acquired = await member.acquire(max_records=2000)
        assert acquired[-1] == (99, 99, 1), "as many as may be in flight"
        waiting = asyncio.ensure_future(other.acquire(wait_ms=60_000))
        await until(lambda: bool(inside.broker.partitions.leader("t", 0).waiters.fetches))
        assert await member.acknowledge(0, 49, ACCEPT) == 0
        assert (await waiting)[0] == (100, 101, 1)

    limits = "group.share.partition.max.record.locks", "group.share.min.partition.max.record.locks"
    play(tmp_path, scenario, dict.fromkeys(limits, "100"))


def test_a_fetch_whose_session_has_ended_keeps_no_share_partition(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        fetches = inside.broker.as_broker.sharing.fetches
        await member.acquire()
        assert await member.acknowledge(0, 8, ACCEPT) == 0
        same = Member(await inside.connect(), member.topic_id)
        waiting = asyncio.ensure_future(member.fetch(wait_ms=60_000))
        await until(lambda: bool(inside.broker.partitions.leader("t", 0).waiters.fetches))
        assert await same.leave() == 0
        await waiting
        await until(lambda: not list(fetches.share_partitions))
        await initialize(inside, member.topic_id, 0)
        assert await Member(await inside.connect(), member.topic_id, "new").acquire() == [
            (0, 2, 1),
            (3, 5, 1),
            (6, 8, 1),
        ]

    play(tmp_path, scenario)


def test_records_that_come_back_from_before_the_log_start_hold_nobody_up(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await member.acquire()
        inside.broker.partitions.leader("t", 0).trim(4)
        other = Member(await inside.connect(), member.topic_id, "other")
        assert await other.acquire(wait_ms=0) == []
        assert await member.leave() == 0
        assert await other.acquire() == [(4, 5, 2), (6, 8, 2)]

    play(tmp_path, scenario)


def test_states_are_asked_for_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        del member
        sizes: list[int] = []

        async def counted(request: Any, coordinator: Any, slices: Slices) -> Any:
            sizes.append(sum(len(topic.partitions) for topic in request.topics))
            return await serve(request, coordinator, slices)

        monkeypatch.setattr(share_state_client, "serve", counted)
        topic_id = await inside.create("wide", 300)
        places = {(topic_id, index): InitialState(1, 0) for index in range(300)}
        found = await inside.broker.as_broker.sharing.states.initialize("g2", places)
        assert set(found.values()) == {ErrorCode.NONE}
        assert sum(sizes) == 300
        assert max(sizes) <= share_state_client.PER_TURN_MAX

    play(tmp_path, scenario)


def test_a_share_partition_that_cannot_be_read_is_read_less_and_less_often() -> None:
    pauses = [share_fetches.LOAD_AGAIN_MS]
    for _ in range(8):
        pauses.append(share_fetches.pause_after(pauses[-1], ErrorCode.INVALID_REQUEST))
    assert pauses[:4] == [200, 400, 800, 1600]
    assert pauses[-1] == 10_000
    assert share_fetches.pause_after(800, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) == 1000, "a failover is soon over"


def test_a_member_does_not_wait_behind_aborted_transactions(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await isolate(inside)
        partition = inside.broker.partitions.leader("t", 0)
        for number in range(1_400):  # batches, of which no look sees more than 1,000
            write(partition, producer=7, sequence=2 * number)
        end(partition, 7, ControlType.ABORT)
        assert await member.acquire(max_records=9) == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]
        produce(inside, 1)
        assert await member.acquire((0, 8, ACCEPT), wait_ms=60_000) == [(2809, 2809, 1), (2810, 2812, 1)]
        await until_summary(inside, member.topic_id, (2809, 0))

    play(tmp_path, scenario)


def test_what_no_member_gets_is_left_behind_at_the_coordinator_too(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        await isolate(inside)
        partition = inside.broker.partitions.leader("t", 0)
        await member.acquire()
        assert await member.acknowledge(0, 8, ACCEPT) == 0
        write(partition, producer=7)
        end(partition, 7, ControlType.ABORT)
        assert await member.acquire() == [(11, 11, 1)], "the marker"
        await until_summary(inside, member.topic_id, (11, 0))

    play(tmp_path, scenario)


def test_one_connection_ends_many_sessions_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(inside: InProcess, member: Member) -> None:
        released: list[str] = []
        release = ShareLeader.release

        def counted(leader: ShareLeader, name: str) -> None:
            released.append(name)
            release(leader, name)

        monkeypatch.setattr(ShareLeader, "release", counted)
        crowd = await inside.connect()
        assert await member.acquire(max_records=1, share_acquire_mode=1) == [(0, 0, 1)]
        for number in range(50):
            await Member(crowd, member.topic_id, f"m{number}").acquire(max_records=1, share_acquire_mode=1, wait_ms=0)
        fetches = inside.broker.as_broker.sharing.fetches
        assert len(fetches.sessions.by_key) == 51
        crowd.close()
        (leader,) = fetches.share_partitions
        await until(lambda: len(released) == 8)
        await until(lambda: leader.window is not None and all(run.pending is None for run in leader.window.runs))
        assert len(fetches.sessions.by_key) == 1
        assert await member.acquire() == [(1, 2, 2), (3, 5, 2), (6, 8, 2)]
        assert released == [f"m{number}" for number in range(8)], "the others held nothing"

    play(tmp_path, scenario)


def test_what_a_fetch_brings_is_taken_before_it_acquires(tmp_path: Path) -> None:
    """A member whose lock has ended does not accept by accident what the same request gives it again."""

    async def scenario(inside: InProcess, member: Member) -> None:
        await member.acquire()
        (leader,) = inside.broker.as_broker.sharing.fetches.share_partitions
        assert leader.window is not None
        leader.window.expire(float("inf"), leader.limits)
        data = data_of(await member.fetch((0, 8, ACCEPT)))
        assert data is not None
        assert data.acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE
        assert [part.delivery_count for part in data.acquired_records] == [2, 2, 2]

    play(tmp_path, scenario)


@pytest.mark.parametrize("is_reopened", [True, False])
def test_a_session_that_ends_within_its_fetch_leaves_no_record_behind(tmp_path: Path, is_reopened: bool) -> None:
    """Another connection of the member opens the session again, or this one is lost, between two slices of a fetch."""
    count = 20

    async def whole() -> None:
        async with running(tmp_path) as inside:
            topic_id = await inside.create("t", count)
            await initialize_all(inside, topic_id, count)
            fetches, key = inside.broker.as_broker.sharing.fetches, SessionKey("g", "m")
            places = [(topic_id, index) for index in range(count)]
            session = fetches.open(key, places, None)
            wanted = share_fetches.ShareFetch(session, 10_000, False, 1, 1 << 20, 0)
            await until_served(fetches, wanted, count)
            for index in range(count):
                inside.broker.partitions.leader("t", index).append(memoryview(bytearray(batch(b"a", b"b"))))
            work = fetches._read(wanted, is_last=True)
            while len(session.acquired_from) < count // 2:
                next(work)
            if is_reopened:
                fetches.open(key, places[:1], None)
            else:
                fetches.leave(session)
            at_once(work)
            await until(lambda: not fetches._left)
            leaders = list(fetches._leaders.values())
            await until(lambda: all(leader.is_idle for leader in leaders))

    asyncio.run(whole())


async def initialize_all(inside: InProcess, topic_id: bytes, count: int) -> None:
    """Begin the states of so many partitions for the group g."""
    for index in range(count):
        await initialize(inside, topic_id, index=index)


async def until_served(fetches: share_fetches.ShareFetches, wanted: share_fetches.ShareFetch, count: int) -> None:
    """Wait until the broker has read the states of so many share partitions."""
    at_once(fetches._read(wanted, is_last=False))
    await until(lambda: sum(leader.window is not None for leader in fetches.share_partitions) == count)
