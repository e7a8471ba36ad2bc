"""Overrides for a while, and limits that are only observed: which limits hold at a moment."""

import asyncio

import pytest

from kavka_broker.core.metadata.decide.quotas import Alteration, alter
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.quotas import Quotas
from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity, Prefix
from kavka_broker.core.quota.entity_limits import (
    OWN_CLIENT_KEYS,
    PREFIX,
    TIME_MS_MAX,
    budgets,
    in_force,
    next_change_ms,
    observed,
    share_key,
)
from kavka_broker.core.quota.resolve import resolve
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.quotas.updates import QuotaTerms
from tests.sim.loop import SimLoop
from tests.sim.node import SimClock
from tests.support.waiting import pass_seconds, play_simulated

ALICE, BOB, CAROL = Entity("alice"), Entity("bob"), Entity("carol")
FROM, UNTIL = "kavka_override_from_ms", "kavka_override_until_ms"
PRODUCE = "producer_byte_rate"
OVERRIDE = f"kavka_override_{PRODUCE}"
Limits = dict[str, dict[Entity | IpEntity, float]]

OVERRIDDEN: Limits = {
    PRODUCE: {ALICE: 10.0, BOB: 20.0},
    OVERRIDE: {ALICE: 99.0, CAROL: 7.0},
    FROM: {ALICE: 1000.0},
    UNTIL: {ALICE: 2000.0, CAROL: 3000.0},
}


@pytest.mark.parametrize(
    ("now_ms", "limits"),
    [
        (0, {ALICE: 10.0, BOB: 20.0, CAROL: 7.0}),
        (999, {ALICE: 10.0, BOB: 20.0, CAROL: 7.0}),
        (1000, {ALICE: 99.0, BOB: 20.0, CAROL: 7.0}),
        (1999, {ALICE: 99.0, BOB: 20.0, CAROL: 7.0}),
        (2000, {ALICE: 10.0, BOB: 20.0, CAROL: 7.0}),
        (3000, {ALICE: 10.0, BOB: 20.0}),
    ],
)
def test_an_override_holds_from_its_beginning_until_its_end(now_ms: int, limits: dict[Entity, float]) -> None:
    assert in_force(OVERRIDDEN, now_ms, 1) == {PRODUCE: limits}


def test_the_next_change_is_the_next_beginning_or_end() -> None:
    assert [next_change_ms(OVERRIDDEN, now_ms) for now_ms in (0, 1000, 2000, 3000)] == [1000, 2000, 3000, None]


def test_an_override_without_an_end_does_not_hold() -> None:
    assert in_force({PRODUCE: {ALICE: 10.0}, OVERRIDE: {ALICE: 99.0}}, 0, 1) == {PRODUCE: {ALICE: 10.0}}


def test_observed_limits_are_apart_from_those_in_force() -> None:
    limits: Limits = {PRODUCE: {ALICE: 10.0}, f"kavka_observed_{PRODUCE}": {BOB: 5.0}}
    assert in_force(limits, 0, 1) == {PRODUCE: {ALICE: 10.0}}
    assert observed(limits) == {PRODUCE: {BOB: 5.0}}


def altered(quotas: Quotas, name: str | None, limits: dict[str, float | None], kind: str = "user") -> None:
    for record in alter(quotas, Alteration([(kind, name)], list(limits.items()))).records:
        assert isinstance(record, ClientQuotaRecord)
        quotas.replay(record)


def test_keys_of_ours_are_set_and_removed_like_any_other() -> None:
    quotas = Quotas()
    altered(quotas, "alice", dict.fromkeys(OWN_CLIENT_KEYS - {PREFIX}, 5.0))
    assert quotas.of(ALICE) == dict.fromkeys(OWN_CLIENT_KEYS - {PREFIX}, 5.0)
    altered(quotas, "alice", dict.fromkeys(OWN_CLIENT_KEYS))
    assert quotas == Quotas()
    altered(quotas, None, {"kavka_override_connection_creation_rate": 5.0, UNTIL: 1.0}, "ip")
    assert quotas.of(IpEntity(DEFAULT)) == {"kavka_override_connection_creation_rate": 5.0, UNTIL: 1.0}


@pytest.mark.parametrize(
    ("kind", "key", "limit"),
    [
        ("user", "kavka_override_producer_byte_rate", 0.5),
        ("user", "kavka_override_producer_byte_rate", 0.0),
        ("user", "kavka_override_producer_byte_rate", float("nan")),
        ("user", UNTIL, 1.5),
        ("user", UNTIL, TIME_MS_MAX * 2.0),
        ("user", "kavka_override_connection_creation_rate", 5.0),
        ("user", "kavka_observed_connection_creation_rate", 5.0),
        ("ip", "kavka_observed_request_percentage", 5.0),
        ("user", "kavka_nothing", 5.0),
        ("user", "kavka_prefix", 1.0),
        ("client-id", "kavka_prefix", 2.0),
        ("ip", "kavka_override_producer_byte_rate", 5.0),
        ("ip", "kavka_share_1_producer_byte_rate", 5.0),
        ("user", "kavka_share_1_producer_byte_rate", 0.5),
        ("user", "kavka_share_1_request_percentage", 5.0),
        ("user", "kavka_share_x_producer_byte_rate", 5.0),
        ("user", "kavka_share__producer_byte_rate", 5.0),
    ],
)
def test_what_makes_no_sense_is_refused(kind: str, key: str, limit: float) -> None:
    with pytest.raises(BrokerError):
        alter(Quotas(), Alteration([(kind, None if kind == "ip" else "alice")], [(key, limit)]))


def test_a_prefix_is_for_all_client_ids_that_begin_so_and_they_share_it() -> None:
    quotas = ClientQuotas()
    etl, longer, exact = Entity(None, "etl-"), Entity(None, "etl-big-"), Entity(None, "etl-own")
    limits: Limits = {PRODUCE: {etl: 1000.0, longer: 3000.0, exact: 5000.0}, PREFIX: {etl: 1.0, longer: 1.0}}
    quotas.update(in_force(limits, 0, 1))
    assert quotas.produce("alice", "etl-a", 6000, 0) == 0
    assert quotas.produce("bob", "etl-b", 6000, 0) == 2000
    assert quotas.produce("bob", "etl-big-1", 31_000, 0) == 333, "the longest prefix wins"
    assert quotas.produce("bob", "etl-own", 50_000, 0) == 0, "a whole name wins over a prefix"
    assert quotas.produce("bob", "other", 10**9, 0) == 0
    quotas.update(in_force({PRODUCE: {etl: 1000.0}}, 0, 1))
    assert quotas.produce("alice", "etl-a", 10**9, 0) == 0, "without its mark it is a name"


def test_a_prefix_keeps_the_level_of_a_name() -> None:
    limits = {Entity("alice", DEFAULT): 1.0, Entity("alice", Prefix.of("etl-")): 2.0, Entity(None, Prefix.of("")): 3.0}
    lengths = (4, 0)
    winner = resolve(limits, "alice", "etl-x", lengths)
    assert winner is not None
    assert (winner.level, winner.limit) == (1, 2.0)
    assert [entity.client_id for entity in winner.shadows] == [DEFAULT, Prefix.of("")]
    other = resolve(limits, "bob", "x", lengths)
    assert other is not None
    assert (other.level, str(other.entity)) == (7, 'client id that begins with ""')


def test_a_name_with_a_star_is_no_prefix() -> None:
    name, prefix = Entity(None, "etl-*"), Entity(None, Prefix.of("etl-"))
    assert name != prefix
    assert {name: 1.0, prefix: 2.0} == {prefix: 2.0, name: 1.0}
    assert resolve({name: 1.0}, "alice", "etl-1", (4,)) is None
    effective = resolve({name: 1.0, prefix: 2.0}, "alice", "etl-*", (4,))
    assert effective is not None
    assert (effective.limit, effective.shadows) == (1.0, (prefix,))


BUDGET = f"kavka_cluster_{PRODUCE}"


def test_each_broker_has_its_share_of_a_budget() -> None:
    limits: Limits = {PRODUCE: {ALICE: 30.0, BOB: 7.0}, BUDGET: {ALICE: 90.0}}
    assert in_force(limits, 0, 1) == {PRODUCE: {ALICE: 30.0, BOB: 7.0}}, "not divided yet"
    limits |= {share_key(1, PRODUCE): {ALICE: 60.0}, share_key(2, PRODUCE): {ALICE: 20.0}}
    held = [in_force(limits, 0, node_id)[PRODUCE][ALICE] for node_id in (1, 2, 3)]
    assert held == [60.0, 20.0, 10.0], "a broker that was not counted has the rest"
    limits |= {share_key(4, PRODUCE): {ALICE: 10.0}}
    assert in_force(limits, 0, 3)[PRODUCE] == {ALICE: 1.0, BOB: 7.0}


def divided(quotas: ClientQuotas, first: float, now_ms: int, *, broker: int = 1) -> None:
    """Give a broker its part of 1000 a second, of which the first one has so much."""
    limits: Limits = {BUDGET: {ALICE: 1000.0}, share_key(1, PRODUCE): {ALICE: first}}
    limits[share_key(2, PRODUCE)] = {ALICE: 1000.0 - first}
    quotas.update(in_force(limits, 0, broker), budgets=budgets(limits), now_ms=now_ms)


def test_a_part_begins_with_a_quarter_of_a_second_and_a_rise_brings_no_second_one() -> None:
    quotas = ClientQuotas()
    divided(quotas, 980.0, 0, broker=2)
    assert quotas.produce("alice", "a", 5, 0) == 0
    assert quotas.produce("alice", "a", 2, 0) == 100
    assert quotas.fetch_clamp("alice", "a", 10**9, 0) == 10**9, "the other byte rate has no budget"
    divided(quotas, 20.0, 1000, broker=2)
    assert quotas.produce("alice", "a", 18, 1000) == 0, "saved at 20 a second"
    assert quotas.produce("alice", "a", 98, 1000) == 100
    assert quotas.produce("alice", "a", 245, 20_000) == 0
    assert quotas.produce("alice", "a", 98, 20_000) == 100


def test_a_connection_under_a_part_is_looked_at_again_and_waits_by_the_part_of_now() -> None:
    quotas = ClientQuotas()
    divided(quotas, 980.0, 0)
    assert quotas.produce("alice", "a", 245 + 9800, 0) == 2000, "ten seconds' worth; it is looked at again after two"
    first = quotas.held("produce", "alice", "a", 0).rest_ms
    quotas.produce("alice", "a", 490, 0)
    second = quotas.held("produce", "alice", "a", 0).rest_ms
    assert [first(2000), first(9000), first(10_000)] == [2000, 1000, 0]
    assert second(10_000) == 500, "it waits behind the first"
    divided(quotas, 20.0, 10_000)
    assert second(10_000) == 2000
    assert second(34_000) == 500, "490 bytes at 20 a second are 24.5 seconds"
    divided(quotas, 980.0, 34_000)
    assert second(34_000) == 11, "a part that has grown lets go"
    quotas.update({})
    assert second(34_000) == 0, "nothing limits the client any more"


def test_an_answer_under_a_part_passes_when_those_before_it_are_paid_for() -> None:
    limits: Limits = {"kavka_cluster_consumer_byte_rate": {ALICE: 1000.0}, "consumer_byte_rate": {ALICE: 1000.0}}
    quotas = ClientQuotas()
    quotas.update(in_force(limits, 0, 1), budgets=budgets(limits))
    assert quotas.fetch_clamp("alice", "a", 10**9, 0) == 250
    assert [quotas.fetch("alice", "a", 1250, now_ms) for now_ms in (0, 1, 999, 1000)] == [0, 999, 1, 0]


def test_a_part_that_shrinks_to_next_to_nothing_makes_the_rest_no_more_than_the_longest_wait() -> None:
    quotas = ClientQuotas()

    def divide(part: float) -> None:
        limits: Limits = {BUDGET: {ALICE: 1000.0}, share_key(1, PRODUCE): {ALICE: part}}
        quotas.update(in_force(limits, 0, 1), budgets=budgets(limits))

    divide(1000.0)
    assert quotas.produce("alice", "a", 10_000, 0) == 2000
    rest_ms = quotas.held("produce", "alice", "a", 0).rest_ms
    divide(5e-324)
    assert rest_ms(1) == 2000


def test_shares_are_set_like_any_other_key() -> None:
    quotas = Quotas()
    altered(quotas, "alice", {BUDGET: 90.0, share_key(12, PRODUCE): 30.0})
    assert quotas.of(ALICE) == {BUDGET: 90.0, share_key(12, PRODUCE): 30.0}


def test_each_broker_ends_an_override_by_its_own_clock() -> None:
    async def scenario(loop: SimLoop) -> None:
        clock, metadata, quotas = SimClock(loop), Metadata(), ClientQuotas()
        now_ms = clock.now_ms()
        metadata.quotas.limits = {
            PRODUCE: {ALICE: 1000.0},
            OVERRIDE: {ALICE: 1e9},
            FROM: {ALICE: now_ms + 5_000.0},
            UNTIL: {ALICE: now_ms + 600_000.0},
        }
        QuotaTerms(quotas, metadata, clock, Timers(clock, asyncio.get_running_loop()), 1).apply()
        assert quotas.produce("alice", "etl", 12_000, 0) == 2000
        await pass_seconds(5.1)
        assert quotas.produce("alice", "etl", 0, 0) == 0
        await pass_seconds(594)
        assert quotas.produce("alice", "etl", 0, 0) == 0
        await pass_seconds(1)
        assert quotas.produce("alice", "etl", 0, 0) == 2000

    play_simulated(scenario)
