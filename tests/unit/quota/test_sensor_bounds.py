"""What clients can make a quota keep: bounded in bytes, and never at the expense of clients of another name."""

from kavka_broker.core.client_names import shortened
from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.loop.slices import at_once
from kavka_broker.quotas.byte_quota import ByteQuota
from kavka_broker.quotas.observe_mode import ObservedQuota
from kavka_broker.quotas.quota_shares import ANONYMOUS, IDLE_MS_MAX, RESOLVED_BYTES_MAX
from kavka_broker.quotas.sensor import OTHER
from kavka_broker.quotas.sensor_bounds import NAMES_BYTES_MAX, size_of

WIDE = "\U0001f600" * 240  # four bytes a character
EMPTIED_MS = 10_000


def names_bytes(quota: ByteQuota) -> int:
    """The bytes of the names that sensors keep."""
    return sum(size_of(sensor.client) for sensor in quota.sensors.values())


def resolved_bytes(quota: ByteQuota) -> int:
    return sum(size_of(client) for client in quota.resolved)


def flood(quota: ByteQuota, user: str, count: int, name: str = "", now_ms: int = 0) -> None:
    for number in range(count):
        quota.charge(user, f"{number}{name}", 1, now_ms)


def test_names_of_clients_are_bounded_in_bytes() -> None:
    quota = ByteQuota(SampleWindow())
    for user in (ANONYMOUS, "alice", "bob"):
        flood(quota, user, 6_000, WIDE)
    assert names_bytes(quota) <= NAMES_BYTES_MAX + 3 * 2_000  # and the first of each late-comers' sensor
    assert resolved_bytes(quota) <= RESOLVED_BYTES_MAX
    assert quota.room.used_bytes > NAMES_BYTES_MAX * 0.9, "the bound is used"


def test_clients_without_a_login_push_no_others_into_a_common_sensor() -> None:
    quota = ByteQuota(SampleWindow(), sensors_max=10)
    quota.update({Entity(None, DEFAULT): 1000.0})
    flood(quota, ANONYMOUS, 100)
    assert quota.charge(ANONYMOUS, "late", EMPTIED_MS, 0) > 0
    assert [quota.charge("alice", f"app-{number}", EMPTIED_MS, 0) for number in range(5)] == [0] * 5


def test_a_user_pushes_only_its_own_clients_into_a_common_sensor() -> None:
    quota = ByteQuota(SampleWindow(), sensors_max=10)
    quota.update({Entity(None, DEFAULT): 1000.0})
    flood(quota, "alice", 100)
    assert quota.charge("alice", "late", EMPTIED_MS, 0) > 0
    assert quota.charge("bob", "app", EMPTIED_MS, 0) == 0


def test_late_comers_with_and_without_a_login_have_sensors_apart() -> None:
    quota = ByteQuota(SampleWindow(), sensors_max=4)
    quota.update({Entity(None, DEFAULT): 1000.0})
    flood(quota, ANONYMOUS, 100)
    flood(quota, "alice", 2)
    assert quota.charge(ANONYMOUS, "late", 10 * EMPTIED_MS, 0) > 0
    assert quota.charge("bob", "app", EMPTIED_MS, 0) == 0


def test_a_quota_on_a_name_always_has_a_sensor_of_its_own() -> None:
    quota = ByteQuota(SampleWindow(), sensors_max=2)
    quota.update({Entity(None, DEFAULT): 1000.0, Entity(None, "app"): 1000.0})
    flood(quota, ANONYMOUS, 100, now_ms=0)
    assert quota.charge(ANONYMOUS, "app", EMPTIED_MS, 0) == 0
    assert quota.charge(ANONYMOUS, "app", EMPTIED_MS, 0) > 0


def test_room_comes_back_with_the_sensors_that_expire() -> None:
    quota = ByteQuota(SampleWindow(), sensors_max=10)
    flood(quota, "alice", 100)
    quota.expire(IDLE_MS_MAX)
    assert (quota.room.sensors, quota.room.used_bytes, quota.room.by_user) == (0, 0, {})
    flood(quota, "alice", 5, now_ms=IDLE_MS_MAX)
    assert quota.room.sensors == 5


def test_a_quota_on_a_long_client_id_holds_for_the_client_whose_id_was_shortened() -> None:
    name = "x" * 300
    quota, observed = ByteQuota(SampleWindow()), ObservedQuota(SampleWindow())
    quota.update({Entity(None, name): 7.0})
    observed.observe({}, {Entity(None, name): 7.0})
    for found in (quota, observed):
        effective = found.effective("alice", shortened(name), 0)
        assert effective is not None
        assert effective.limit == 7.0


def test_clients_without_a_login_leave_series_to_those_with_one() -> None:
    quota = ByteQuota(SampleWindow(), series_max=8)
    quota.update({Entity(None, DEFAULT): 1000.0})
    flood(quota, ANONYMOUS, 100)
    for number in range(100):
        quota.charge("alice", f"app-{number}", 1, 0)
    named = [line.client_id for line in at_once(quota.usages(0)) if line.client_id != OTHER]
    assert named == ["0", "1", "2", "3", "4", "5", "app-0", "app-1"]


def test_labels_are_bounded_in_bytes_and_stay_apart() -> None:
    quota = ByteQuota(SampleWindow())
    quota.charge("alice", f"{WIDE}a", 1, 0)
    quota.charge("alice", f"{WIDE}b", 2, 0)
    lines = {line.client_id: line.used_total for line in at_once(quota.usages(0))}
    assert sorted(lines.values()) == [1, 2]
    assert all(len(label.encode()) <= 128 for label in lines)
