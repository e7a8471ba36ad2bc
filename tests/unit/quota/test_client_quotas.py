"""Enforcement as handlers see it: who shares what, what a change does, and what stays bounded."""

import math

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity, QuotaKey
from kavka_broker.core.quota.rate import THROTTLE_MS_MAX, SampleWindow
from kavka_broker.core.quota.resolve import LEVELS, candidates
from kavka_broker.loop.slices import at_once
from kavka_broker.quotas.byte_quota import ByteQuota
from kavka_broker.quotas.client_quotas import FETCH, PRODUCE, ClientQuotas
from kavka_broker.quotas.quota_shares import IDLE_MS_MAX
from kavka_broker.quotas.resolver import KafkaRule, Standing
from kavka_broker.quotas.sensor import OTHER, Usage

KIB = 1024
WINDOW = SampleWindow()


def quotas(**limits: dict[Entity | IpEntity, float]) -> ClientQuotas:
    made = ClientQuotas(WINDOW)
    made.update(limits)
    return made


def producers(limits: dict[Entity | IpEntity, float]) -> ClientQuotas:
    return quotas(producer_byte_rate=limits)


def consumers(limits: dict[Entity | IpEntity, float]) -> ClientQuotas:
    return quotas(consumer_byte_rate=limits)


def usage(of: ClientQuotas, quota_type: str, now_ms: int = 0) -> dict[tuple[str, str], Usage]:
    return {(line.user, line.client_id): line for line in at_once(of.by_type[quota_type].usages(now_ms))}


def test_a_client_without_a_quota_never_waits_and_is_counted() -> None:
    without = producers({Entity("bob"): 1.0})

    assert without.produce("alice", "etl", 10**12, 0) == 0
    assert without.fetch("alice", "etl", 10**12, 0) == 0
    assert without.fetch_clamp("alice", "etl", 10**9, 0) == 10**9
    assert usage(without, "produce") == {("alice", "etl"): Usage("alice", "etl", 10**12)}


@pytest.mark.parametrize("level", LEVELS)
def test_each_of_the_eight_levels_throttles(level: int) -> None:
    limited = producers({candidates("alice", "etl")[level - 1]: 1000.0})

    assert limited.produce("alice", "etl", 10_000, 0) == 0
    assert limited.produce("alice", "etl", 5000, 0) == 5000
    assert limited.produce("alice", "etl", 0, 0) == 5000  # a request that moves nothing waits with the others


def test_produce_and_fetch_have_limits_of_their_own() -> None:
    both = quotas(producer_byte_rate={Entity("alice"): 1000.0}, consumer_byte_rate={Entity("alice"): 2000.0})

    assert both.fetch("alice", "etl", 20_000, 0) == 0
    assert both.produce("alice", "etl", 11_000, 0) == 1000


def test_the_quota_of_a_user_is_shared_by_its_client_ids() -> None:
    shared = producers({Entity("alice"): 1000.0})
    shared.produce("alice", "a", 6000, 0)

    assert shared.produce("alice", "b", 6000, 0) == 2000
    assert shared.produce("bob", "a", 10**9, 0) == 0


def test_a_default_gives_each_name_its_own() -> None:
    shared = producers({Entity(None, DEFAULT): 1000.0})
    shared.produce("alice", "a", 10_000, 0)

    assert shared.produce("alice", "b", 10_000, 0) == 0
    assert shared.produce("bob", "a", 10_000, 0) == 10_000


def test_a_change_holds_from_the_next_request_and_keeps_recorded_traffic() -> None:
    changing = producers({Entity("alice"): 1000.0})
    assert changing.produce("alice", "etl", 10_000, 0) == 0

    changing.update({"producer_byte_rate": {Entity("alice"): 500.0}})
    assert changing.produce("alice", "etl", 0, 0) == 10_000

    changing.update({"producer_byte_rate": {Entity("alice"): 2000.0}})
    assert changing.produce("alice", "etl", 10_000, 0) == 0
    assert changing.produce("alice", "etl", 1000, 0) == 500

    changing.update({})
    assert changing.produce("alice", "etl", 10**9, 0) == 0


def test_a_more_specific_quota_takes_over_at_once() -> None:
    changing = producers({Entity("alice"): 1000.0})
    changing.produce("alice", "etl", 20_000, 0)
    changing.update({"producer_byte_rate": {Entity("alice"): 1000.0, Entity("alice", "etl"): 1000.0}})

    assert changing.produce("alice", "etl", 10_000, 0) == 0  # its own allowance, untouched
    assert changing.produce("alice", "other", 0, 0) == 10_000


def test_quotas_of_addresses_limit_no_bytes() -> None:
    of_addresses = producers({IpEntity("10.0.0.1"): 1.0})

    assert of_addresses.produce("alice", "etl", 10**9, 0) == 0


def test_a_withheld_fetch_counts_for_nothing() -> None:
    fetching = consumers({Entity("alice"): 1000.0})

    assert fetching.fetch("alice", "etl", 9000, 0) == 0
    assert fetching.fetch("alice", "etl", 2000, 0) == 1000
    assert fetching.fetch("alice", "etl", 1000, 0) == 0
    assert usage(fetching, "fetch")["alice", ""].used_total == 10_000


def test_a_fetch_reads_no_more_than_an_empty_window_has_room_for() -> None:
    fetching = consumers({Entity("alice"): 1000.0})

    assert fetching.fetch_clamp("alice", "etl", 1_000_000, 0) == 10_000
    assert fetching.fetch_clamp("alice", "etl", 500, 0) == 500


def test_a_batch_larger_than_the_window_goes_through_once_and_is_waited_for() -> None:
    fetching = consumers({Entity("alice"): 1000.0})

    assert fetching.fetch("alice", "etl", 60_000, 0) == 0
    assert fetching.fetch("alice", "etl", 1, 1000) == 59_000
    assert fetching.fetch("alice", "etl", 60_000, 59_999) == 1
    assert fetching.fetch("alice", "etl", 60_000, 60_000) == 0


def test_a_batch_larger_than_the_window_waits_for_earlier_batches() -> None:
    fetching = consumers({Entity("alice"): 1000.0})
    fetching.fetch("alice", "etl", 10, 0)

    assert fetching.fetch("alice", "etl", 60_000, 0) > 0
    assert fetching.fetch("alice", "etl", 60_000, 11_000) == 0


def test_a_new_limit_ends_the_wait_for_a_large_batch() -> None:
    fetching = consumers({Entity("alice"): 1000.0})
    fetching.fetch("alice", "etl", 60_000, 0)

    fetching.update({"consumer_byte_rate": {Entity("alice"): 100_000.0}})

    assert fetching.fetch("alice", "etl", 60_000, 0) == 0


def test_throttles_are_counted_beside_usage_and_limit() -> None:
    limited = producers({Entity(DEFAULT): 1000.0, Entity(None, "etl"): 5.0})
    for _ in range(3):
        limited.produce("alice", "etl", 10_000, 0)

    line = usage(limited, "produce")["alice", ""]

    assert (line.used_total, line.throttled_requests_total) == (30_000, 2)
    assert line.throttle_ms_average == 15_000
    assert line.rate == 3000.0
    assert line.effective is not None
    assert (line.effective.level, line.effective.limit) == (6, 1000.0)
    assert limited.by_type["produce"].delay_counts == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0]


def test_held_time_counts_each_connection_for_itself_and_until_now() -> None:
    limited = producers({Entity("alice"): 1000.0})
    held = limited.held("produce", "alice", "etl", 0)

    held.begin(0)
    held.begin(1000)
    assert usage(limited, "produce", 3000)["alice", ""].held_ms_total == 5000
    held.end(4000)
    held.end(4500)
    assert usage(limited, "produce", 9000)["alice", ""].held_ms_total == 7500
    limited.held("produce", "alice", "other", 9000).begin(9000)
    assert usage(limited, "produce", 10_000)["alice", ""].held_ms_total == 8500, "they share the quota"


def test_held_time_stays_where_it_was_counted_when_a_share_gets_its_name() -> None:
    quota = ByteQuota(WINDOW, series_max=1)  # for a share with a limit
    held = quota.held("alice", "etl", 0)
    held.begin(0)
    quota.update({Entity("alice"): 1000.0})
    quota.charge("alice", "etl", 1, 1000)
    quota.charge("alice", "x", 1, 3000)

    assert [line.held_ms_total for line in at_once(quota.usages(5000))] == [0, 5000]


def test_an_idle_client_is_forgotten_after_an_hour() -> None:
    limited = producers({Entity("alice"): 1000.0})
    limited.produce("alice", "etl", 10_000, 0)
    limited.produce("bob", "etl", 1, 1000)

    limited.expire(IDLE_MS_MAX)

    assert set(usage(limited, "produce")) == {("bob", "etl")}
    assert limited.produce("alice", "etl", 10_000, IDLE_MS_MAX) == 0


def test_late_comers_under_one_quota_share_a_sensor() -> None:
    quota = ByteQuota(WINDOW, sensors_max=4)
    quota.update({Entity(None, DEFAULT): 1000.0})
    for client_id in ("a", "b"):
        assert quota.charge("alice", client_id, 10_000, 0) == 0

    assert quota.charge("alice", "c", 10_000, 0) == 0
    assert quota.charge("alice", "d", 10_000, 0) == 10_000
    assert quota.charge("alice", "a", 0, 0) == 0


def test_names_made_up_by_clients_do_not_grow_memory() -> None:
    quota = ByteQuota(WINDOW, sensors_max=50, series_max=10)
    quota.update({Entity("alice", DEFAULT): 1000.0, Entity("bob"): 1.0})
    for number in range(1000):
        quota.charge("alice", f"client-{number}", 1, 0)
        quota.charge("carol", f"client-{number}", 1, 0)

    lines = {(line.user, line.client_id): line for line in at_once(quota.usages(0))}

    assert len(quota.sensors) <= 52  # the bound, and one for late-comers of each of the two users
    assert len(quota.resolved) <= 50
    assert len(lines) == 11
    assert sum(line.used_total for line in lines.values()) == 2000
    assert lines[OTHER, OTHER].used_total == 1990
    assert quota.overflows_total > 0


def test_counters_of_the_others_never_fall() -> None:
    quota = ByteQuota(WINDOW, series_max=2)
    seen = [0]
    for now_ms, client_id in enumerate(["a", "b", "c", "d", "e"]):
        quota.charge("alice", client_id, 100, now_ms)
        seen += [line.used_total for line in at_once(quota.usages(now_ms)) if line.user == OTHER]
    quota.update({Entity("alice", "c"): 1e9})  # c gets a series of its own now
    quota.charge("alice", "c", 7, 10)
    seen += [line.used_total for line in at_once(quota.usages(10)) if line.user == OTHER]
    quota.expire(IDLE_MS_MAX + 5)
    seen += [line.used_total for line in at_once(quota.usages(10)) if line.user == OTHER]

    assert seen == sorted(seen)
    assert seen[-1] == 400
    assert {(line.client_id, line.used_total) for line in at_once(quota.usages(10))} == {("c", 7), (OTHER, 400)}


def test_each_key_is_enforced() -> None:
    quotas = ClientQuotas()
    assert {*quotas.by_key, QuotaKey.CONNECTION_CREATION_RATE} == set(QuotaKey)
    addresses: dict[Entity | IpEntity, float] = {}
    quotas.limit_addresses = lambda limits, _: addresses.update(limits)
    quotas.update({QuotaKey.CONNECTION_CREATION_RATE: {IpEntity("192.0.2.7"): 5.0}})
    assert addresses == {IpEntity("192.0.2.7"): 5.0}
    quotas.update({key: {Entity("alice"): 1000.0} for key in QuotaKey})
    assert quotas.produce("alice", "", 100_000, 0) > 0
    assert [quotas.fetch("alice", "", 100_000, 0) > 0 for _ in range(2)][-1]


def test_clients_without_a_quota_leave_half_of_the_series_to_those_with_one() -> None:
    quota = ByteQuota(WINDOW, series_max=4)
    quota.update({Entity("alice", DEFAULT): 1000.0})
    for number in range(9):
        quota.charge("bob", f"{number}", 1, 0)
    for number in range(9):
        quota.charge("alice", f"{number}", 1, 0)

    named = [line.user for line in at_once(quota.usages(0)) if line.user != OTHER]

    assert sorted(named) == ["alice", "alice", "bob", "bob"]


def test_shares_that_look_alike_in_labels_are_not_exported_twice() -> None:
    quota = ByteQuota(WINDOW)
    quota.charge("alice", "", 1, 0)  # no quota: (alice, "")
    quota.update({Entity("alice"): 1000.0})
    quota.charge("alice", "x", 2, 0)  # the user's quota: (alice, any)
    quota.charge(OTHER, OTHER, 4, 0)

    labels = [(line.user, line.client_id) for line in at_once(quota.usages(0))]

    assert len(labels) == len(set(labels))
    assert sum(line.used_total for line in at_once(quota.usages(0))) == 7


@pytest.mark.parametrize("limit", [-1.0, math.nan])
def test_a_limit_that_is_none_throttles_nobody(limit: float) -> None:
    """Apache Kafka's metadata may hold one."""
    quota = ByteQuota(WINDOW)
    quota.update({Entity("alice"): limit})
    assert quota.charge("alice", "", 1_000_000, 0) == quota.admit("alice", "", 1_000_000, 0) == 0
    assert quota.clamp("alice", "", 1_000_000, 0) == 1_000_000


def test_a_limit_of_zero_lets_nothing_pass() -> None:
    quota = ByteQuota(WINDOW)
    quota.update({Entity("alice"): 0.0})
    assert quota.admit("alice", "", 1, 0) == quota.charge("alice", "", 1, 0) == THROTTLE_MS_MAX


def test_limits_that_have_not_changed_are_not_found_again() -> None:
    quotas = ClientQuotas(SampleWindow())
    quotas.update({"producer_byte_rate": {Entity("alice"): 1000.0}})
    quotas.produce("alice", "etl", 1, 0)
    quotas.fetch("alice", "etl", 1, 0)
    known = quotas.by_type[PRODUCE].resolved.copy()

    quotas.update({"producer_byte_rate": {Entity("alice"): 1000.0}, "consumer_byte_rate": {Entity("alice"): 1000.0}})

    assert quotas.by_type[PRODUCE].resolved == known != {}
    assert quotas.by_type[FETCH].resolved == {}


def test_a_change_asks_for_nobody_and_each_has_its_limit_when_it_is_heard_of_or_looked_at_next() -> None:
    class Counting(KafkaRule):
        asked = 0

        def find(self, user: str, client_id: str) -> Standing:
            self.asked += 1
            return super().find(user, client_id)

    rule = Counting()
    quota = ByteQuota(WINDOW, rule=rule)
    quota.update({Entity(DEFAULT): 1000.0})
    for number in range(100):
        quota.charge(f"user {number}", "", 10_000, 0)
    rule.asked = 0
    quota.update({Entity(DEFAULT): 500.0})
    assert rule.asked == 0, "with thousands of clients it would hold the loop"
    assert quota.charge("user 7", "", 1000, 0) == 12_000
    assert {line.effective.limit for line in at_once(quota.usages(0)) if line.effective is not None} == {500.0}
    assert [line.shares for line in at_once(quota.entities(0))] == [100]
