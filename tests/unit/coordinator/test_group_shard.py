"""The shell around groups: writes that wait, writes that fail, time, and the end of a shard."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kavka_broker.coordinator.groups import classic_groups
from kavka_broker.core.consumer_group.settings import MEMBERS_BYTES_MAX
from kavka_broker.core.group.image import GroupBounds
from kavka_broker.core.group.join import Join
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.group.settings import LONG_NAMES_BYTES_MAX
from kavka_broker.core.group.state import MEMBER_BYTES, GroupState
from kavka_broker.core.group.sync import Sync
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.support.waiting import turns
from tests.unit.coordinator.fakes import DAY_MS, WEEK_MS, World, commit, expire, offset, play, state

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"


def join(
    world: World,
    member_id: str = "",
    name: str = "m",
    session_ms: int = 10_000,
    *,
    group_id: str = "g",
    metadata: bytes = SUBSCRIPTION,
    asks_for_id: bool = False,
    kind: str = "consumer",
) -> "asyncio.Future[Any]":
    token = world.token()
    command = Join(
        token=token,
        member_id=member_id,
        instance_id=None,
        client_id=name,
        client_host="/h",
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=30_000,
        protocol_type=kind,
        protocols=(("range", metadata),),
        new_member_id=name,
        needs_known_id=asks_for_id,
        can_skip_assignment=True,
    )
    world.shard.join(group_id, command)
    return token


def sync(world: World, member_id: str, generation: int = 1) -> "asyncio.Future[Any]":
    token = world.token()
    world.shard.sync("g", Sync(token, generation, member_id, None, None, None, {member_id: b"all"}))
    return token


MIB = 1024 * 1024
ROOM_MIB = MEMBERS_BYTES_MAX // MIB


def codes(joins: "list[asyncio.Future[Any]]") -> Counter[int]:
    return Counter(answer.result().error_code for answer in joins if answer.done())


# --- what members take ------------------------------------------------------------------------------------------------


def test_members_of_all_groups_together_take_a_bounded_number_of_bytes() -> None:
    """Whoever may join makes up names and subscriptions, which are kept until the session is over."""

    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        tokens = [join(world, group_id=f"g{number}", metadata=bytes(MIB)) for number in range(ROOM_MIB + 40)]
        world.advance(20)
        assert codes(tokens) == {ErrorCode.NONE: ROOM_MIB - 1, ErrorCode.GROUP_MAX_SIZE_REACHED: 41}
        assert len(world.shard.image.groups) == ROOM_MIB - 1, "who is refused leaves no group"
        small = join(world, group_id="small")
        world.advance(20)
        assert small.result().error_code == ErrorCode.NONE
        world.advance(11_000)  # the sessions are over
        assert world.shard.classics.room_bytes == MEMBERS_BYTES_MAX
        again = join(world, group_id="g1", metadata=bytes(MIB))
        world.advance(20)
        assert again.result().error_code == ErrorCode.NONE

    play(scenario)


def test_a_member_that_says_more_of_itself_finds_no_room_and_one_that_says_less_does() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        first = join(world, metadata=bytes(MIB // 2), session_ms=100_000)
        world.advance(20)
        assert first.result().error_code == ErrorCode.NONE
        assert sync(world, "m").result().error_code == ErrorCode.NONE
        others = [
            join(world, group_id=f"g{number}", metadata=bytes(MIB), session_ms=100_000) for number in range(ROOM_MIB)
        ]
        world.advance(20)
        assert codes(others)[ErrorCode.GROUP_MAX_SIZE_REACHED] == 1
        more = join(world, "m", metadata=bytes(2 * MIB), session_ms=100_000)
        assert more.result().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        less = join(world, "m", session_ms=100_000)
        world.advance(20)
        assert less.result().error_code == ErrorCode.NONE

    play(scenario)


def test_ids_that_nobody_joins_with_take_room_and_give_way() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        member = join(world, session_ms=100_000)
        world.advance(20)
        assert member.result().error_code == ErrorCode.NONE
        many = MEMBERS_BYTES_MAX // MEMBER_BYTES + 1_000
        tokens = [
            join(world, group_id=f"{number % 10}", name=f"m{number}", session_ms=1_000_000, asks_for_id=True)
            for number in range(many)
        ]
        assert codes(tokens) == {ErrorCode.MEMBER_ID_REQUIRED: many}, "later ones take the place of earlier ones"
        assert 0 <= world.shard.classics.room_bytes < 3 * MEMBER_BYTES
        tries = [join(world, "m", metadata=bytes(500_000), session_ms=100_000) for _ in range(2)]
        told = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: 1, ErrorCode.NONE: 1}
        assert codes(tries) == told, "so many give way at a time"
        more = tries[1]
        newcomer = join(world, group_id="new", name="new", session_ms=100_000)
        world.advance(20)
        assert (more.result().error_code, newcomer.result().error_code) == (ErrorCode.NONE, ErrorCode.NONE)

    play(scenario)


def test_a_member_that_takes_no_more_lets_no_id_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups of a log may take more than the bound of today."""

    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        member = join(world, session_ms=100_000)
        world.advance(20)
        assert (member.result().error_code, sync(world, "m").result().error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        join(world, group_id="other", name="waits", session_ms=100_000, asks_for_id=True)
        monkeypatch.setattr(classic_groups, "MEMBERS_BYTES_MAX", 0)
        assert world.shard.classics.room_bytes < 0
        again = join(world, "m", session_ms=100_000)
        world.advance(20)
        assert again.result().error_code == ErrorCode.NONE
        assert list(world.shard.image.groups["other"].pending) == ["waits"]

    play(scenario)


def test_assignments_take_room_too() -> None:
    """The record of a group may have as many bytes as a batch, and there may be very many groups."""

    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        world.partition.log.config = replace(world.partition.log.config, max_message_bytes=8 * MIB)
        told = Counter[int]()
        for number in range(ROOM_MIB // 4):
            answer = join(world, group_id=f"g{number}", name=f"m{number}", session_ms=100_000)
            world.advance(20)
            given: asyncio.Future[Any] = world.token()
            member_id = answer.result().member_id
            share = {member_id: bytes(4 * MIB)}
            world.shard.sync(f"g{number}", Sync(given, 1, member_id, None, None, None, share))
            told[given.result().error_code if given.done() else -1] += 1
        assert told == {ErrorCode.NONE: ROOM_MIB // 4 - 1, ErrorCode.COORDINATOR_NOT_AVAILABLE: 1}

    play(scenario)


def test_assignments_take_room_while_they_are_written() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        world.partition.log.config = replace(world.partition.log.config, max_message_bytes=8 * MIB)
        joins = [
            join(world, group_id=f"g{number}", name=f"m{number}", session_ms=100_000) for number in range(ROOM_MIB)
        ]
        world.advance(20)
        assert codes(joins) == {ErrorCode.NONE: ROOM_MIB}
        world.partition.holds = True
        given = [world.token() for _ in joins]
        for number, token in enumerate(given):
            share = {f"m{number}": bytes(4 * MIB)}
            world.shard.sync(f"g{number}", Sync(token, 1, f"m{number}", None, None, None, share))
        fit = ROOM_MIB // 4 - 1
        assert codes(given) == {ErrorCode.COORDINATOR_NOT_AVAILABLE: ROOM_MIB - fit}
        await world.partition.commit()
        await asyncio.gather(*given)
        assert codes(given)[ErrorCode.NONE] == fit
        assert 0 <= world.shard.classics.room_bytes < 4 * MIB

    play(scenario)


def test_groups_of_long_names_are_bounded_and_take_no_room_of_members() -> None:
    """A name is a client's words of up to 32,767 characters, and a group without members is kept for a while."""

    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        world.shard.image.bounds = GroupBounds(long_names_bytes_max=MIB)
        told = Counter[ErrorCode]()
        for number in range(40):
            name, member = f"{number:030000}", f"m{number}"
            try:
                answer = join(world, group_id=name, name=member)
            except BrokerError as refused:
                told[refused.code] += 1
                continue
            world.advance(20)
            told[ErrorCode(answer.result().error_code)] += 1
            world.shard.leave(name, [_departure(member)])
        fit = MIB // 30_000
        assert told == {ErrorCode.NONE: fit, ErrorCode.POLICY_VIOLATION: 40 - fit}
        assert world.shard.classics.room_bytes == MEMBERS_BYTES_MAX
        newcomer = join(world, group_id="n" * 249)
        world.advance(20)
        assert newcomer.result().error_code == ErrorCode.NONE
        world.shard.delete_group(f"{0:030000}")
        again = join(world, group_id=f"{1_000:030000}")
        world.advance(20)
        assert again.result().error_code == ErrorCode.NONE

    play(scenario)


def test_a_long_protocol_type_is_refused() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        long, short = join(world, kind="k" * 250), join(world, kind="k" * 249)
        world.advance(20)
        assert long.result().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert short.result().error_code == ErrorCode.NONE

    play(scenario)


# --- texts of offsets -------------------------------------------------------------------------------------------------


def with_metadata(world: World, group_id: str, characters: int, partition: int = 0) -> ErrorCode:
    """The error of a commit with metadata."""
    commits = [Commit("t", partition, 7, metadata="m" * characters)]
    (error,), _ = world.shard.commit(group_id, -1, "", None, commits, -1, 8)
    return error


def test_long_metadata_of_offsets_takes_a_bounded_number_of_bytes() -> None:
    async def scenario() -> None:
        world = World()
        world.shard.image.bounds = GroupBounds(long_metadata_bytes_max=MIB)
        told = Counter(with_metadata(world, f"g{number}", 4_096) for number in range(300))
        assert told == {ErrorCode.NONE: MIB // 4_096, ErrorCode.OFFSET_METADATA_TOO_LARGE: 300 - MIB // 4_096}
        assert with_metadata(world, "g0", 4_096) == ErrorCode.NONE, "what does not grow always fits"
        assert with_metadata(world, "g0", 128, partition=1) == ErrorCode.NONE, "Kafka Streams always has some"
        assert with_metadata(world, "another", 128) == ErrorCode.NONE
        assert with_metadata(world, "another", 129) == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert commit(world, "another", 8)[0] == [ErrorCode.NONE]
        world.shard.delete_group("g1")
        assert with_metadata(world, "another", 129) == ErrorCode.NONE

    play(scenario)


def test_metadata_takes_room_while_it_is_written() -> None:
    async def scenario() -> None:
        world = World()
        world.shard.image.bounds = GroupBounds(long_metadata_bytes_max=MIB)
        world.partition.holds = True
        told = Counter(with_metadata(world, f"g{number}", 4_096) for number in range(300))
        assert told[ErrorCode.NONE] == MIB // 4_096
        await world.partition.commit()
        await turns()
        assert world.shard.image.writing_metadata_bytes == 0
        assert world.shard.image.metadata_room_bytes == 0

    play(scenario)


def test_long_names_of_groups_with_offsets_take_a_bounded_number_of_bytes() -> None:
    async def scenario() -> None:
        world = World()
        told = Counter[ErrorCode]()
        for number in range(1_100):
            try:
                told.update(commit(world, f"{number:032000}", 8)[0])
            except BrokerError as refused:
                told[refused.code] += 1
        fit = LONG_NAMES_BYTES_MAX // 32_000
        assert told == {ErrorCode.NONE: fit, ErrorCode.POLICY_VIOLATION: 1_100 - fit}
        assert commit(world, "n" * 249, 8)[0] == [ErrorCode.NONE]
        assert commit(world, f"{0:032000}", 9)[0] == [ErrorCode.NONE], "a group that is there goes on"

    play(scenario)


def test_what_is_staged_and_deleted_gives_its_room_back() -> None:
    async def scenario() -> None:
        world = World()
        whole = world.shard.image.metadata_room_bytes
        staged = [Commit("t", index, 7, metadata="\u00e9" * 200) for index in range(3)]
        world.shard.staging.stage("g", (5, 0), staged)
        world.shard.staging.stage("g", (5, 0), staged[:1])
        assert world.shard.image.metadata_room_bytes == whole - 4 * 600
        world.shard.staging.end_transaction(5, None, commits=True)
        assert world.shard.image.metadata_room_bytes == whole - 4 * 600
        commit(world, "g", 8)
        assert world.shard.image.metadata_room_bytes == whole - 4 * 400
        world.shard.delete_group("g")
        assert world.shard.image.metadata_room_bytes == whole

    play(scenario)


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_an_offset_counts_when_it_is_committed_not_before() -> None:
    async def scenario() -> None:
        world = World()
        world.partition.holds = True
        errors, waiting = commit(world, "g", 7)
        assert errors == [ErrorCode.NONE]
        assert offset(world, "g") is None
        await world.partition.commit()
        assert await waiting == ErrorCode.NONE
        assert offset(world, "g") == 7

    play(scenario)


def test_a_commit_that_times_out_may_still_be_committed() -> None:
    async def scenario() -> None:
        world = World()
        world.partition.holds = True
        _, waiting = commit(world, "g", 7)
        world.advance(5_010)
        assert await waiting == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await world.partition.commit()
        assert offset(world, "g") == 7

    play(scenario)


def test_a_commit_is_refused_when_the_leadership_is_lost() -> None:
    async def scenario() -> None:
        world = World()
        world.partition.holds = True
        _, waiting = commit(world, "g", 7)
        await world.partition.commit(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert await waiting == ErrorCode.NOT_COORDINATOR
        assert offset(world, "g") is None

    play(scenario)


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_append_errors_are_mapped_for_members(refusal: ErrorCode, told: ErrorCode) -> None:
    async def scenario() -> None:
        world = World()
        world.partition.refuses = refusal
        with pytest.raises(BrokerError) as caught:
            commit(world, "g", 7)
        assert caught.value.code == told
        assert offset(world, "g") is None

    play(scenario)


def test_offsets_of_a_group_without_members_expire_by_their_commit() -> None:
    async def scenario() -> None:
        world = World()
        commit(world, "g", 7)
        world.clock.ms += DAY_MS
        commit(world, "g", 8, topic="u")
        world.clock.ms += WEEK_MS - DAY_MS
        assert expire(world) == 1
        assert (offset(world, "g"), offset(world, "g", "u")) == (None, 8)
        world.clock.ms += DAY_MS
        assert expire(world) == 2, "the offset and the group"
        assert state(world) is None
        assert expire(world) == 0

    play(scenario)


def test_the_retention_of_a_commit_applies() -> None:
    async def scenario() -> None:
        world = World()
        commit(world, "g", 7, retention_ms=1_000)
        world.clock.ms += 999
        assert expire(world) == 0
        world.clock.ms += 1
        assert expire(world) == 2

    play(scenario)


def test_offsets_of_a_running_group_are_kept_while_a_member_subscribes() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        join(world, session_ms=1_800_000)
        world.advance(10)
        sync(world, "m")
        commits = [Commit("t", 0, 7), Commit("u", 0, 8)]
        world.shard.commit("g", 1, "m", None, commits, -1, 9)
        world.clock.ms += WEEK_MS
        assert expire(world) == 1
        assert (offset(world, "g"), offset(world, "g", "u")) == (7, None)

        world.shard.leave("g", [_departure("m")])
        assert state(world) is GroupState.EMPTY
        world.clock.ms += WEEK_MS - 1
        assert expire(world) == 0, "the retention counts from when the last member left"
        world.clock.ms += 1
        assert expire(world) == 2

    play(scenario)


def test_an_uncommitted_offset_is_not_expired() -> None:
    async def scenario() -> None:
        world = World()
        commit(world, "g", 7)
        world.clock.ms += WEEK_MS
        world.partition.holds = True
        commit(world, "g", 8)
        assert expire(world) == 0
        with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
            world.shard.delete_group("g")
        await world.partition.commit()
        assert offset(world, "g") == 8

    play(scenario)


# --- groups -----------------------------------------------------------------------------------------------------------


def test_an_assignment_is_answered_once_it_is_committed() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        joined = join(world)
        world.advance(10)
        assert joined.result().generation_id == 1
        world.partition.holds = True
        synced = sync(world, "m")
        assert not synced.done()
        await world.partition.commit()
        await asyncio.sleep(0)
        assert synced.result().assignment == b"all"
        assert state(world) is GroupState.STABLE

    play(scenario)


def test_an_assignment_that_cannot_be_written() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        join(world)
        world.advance(10)
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        assert sync(world, "m").result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert state(world) is GroupState.PREPARING_REBALANCE

    play(scenario)


def test_an_answer_to_a_lost_connection_is_dropped() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        joined = join(world)
        joined.cancel()
        world.advance(10)
        assert state(world) is GroupState.COMPLETING_REBALANCE

    play(scenario)


def test_a_member_is_dropped_when_its_session_ends() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        join(world)
        world.advance(10)
        sync(world, "m")
        world.advance(9_000)
        assert world.shard.heartbeat("g", 1, "m", None) is ErrorCode.NONE
        world.advance(9_000)
        assert state(world) is GroupState.STABLE
        world.advance(1_010)
        assert state(world) is GroupState.EMPTY
        assert len(world.timers) == 0

    play(scenario)


def test_a_refused_join_leaves_no_group() -> None:
    async def scenario() -> None:
        world = World()
        assert join(world, session_ms=1).result().error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        assert join(world, member_id="stranger").result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert state(world) is None
        assert world.shard.heartbeat("g", 1, "m", None) is ErrorCode.UNKNOWN_MEMBER_ID
        assert sync(world, "m").result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert world.shard.leave("g", [_departure("m")]) == [ErrorCode.UNKNOWN_MEMBER_ID]

    play(scenario)


def test_a_deleted_group_can_begin_again_before_its_deletion_is_committed() -> None:
    async def scenario() -> None:
        world = World(initial_rebalance_delay_ms=0)
        commit(world, "g", 7)
        world.partition.holds = True
        waiting = world.shard.delete_group("g")
        joined = join(world)
        await world.partition.commit()
        assert waiting is not None
        assert await waiting == ErrorCode.NONE
        world.advance(10)
        assert joined.result().error_code == 0
        assert offset(world, "g") is None

    play(scenario)


def test_a_resigning_shard_answers_waiting_members() -> None:
    async def scenario() -> None:
        world = World()
        joined = join(world)
        list(world.shard.close())
        assert joined.result().error_code == ErrorCode.NOT_COORDINATOR
        assert len(world.timers) == 0

    play(scenario)


def test_a_closing_shard_appends_nothing() -> None:
    async def scenario() -> None:
        world = World()
        for group in "gh":
            commit(world, group, 7)
        next(world.shard.close())
        with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
            commit(world, "h", 8)

    play(scenario)


def _departure(member_id: str) -> Any:
    from kavka_broker.core.group.membership import Departure

    return Departure(member_id)


def test_groups_without_members_leave_nothing_in_memory() -> None:
    async def scenario() -> None:
        world = World()
        for number in range(3):
            command = Join(
                world.token(),
                "",
                None,
                "m",
                "/h",
                10_000,
                30_000,
                "consumer",
                (("range", b""),),
                f"m{number}",
                True,
                True,
            )
            world.shard.join(f"g{number}", command)
        assert len(world.shard.image.groups) == len(world.shard.classics.running) == 3
        world.advance(11_000)
        assert not world.shard.image.groups
        assert not world.shard.classics.running
        assert not len(world.timers)

    play(scenario)


def test_a_retention_beyond_the_largest_timestamp_is_accepted() -> None:
    async def scenario() -> None:
        world = World()
        errors, waiting = commit(world, "g", 7, retention_ms=2**63 - 1)
        assert (errors, waiting) == ([ErrorCode.NONE], None)
        assert offset(world, "g") == 7

    play(scenario)
