"""The figures of a configured quota, whoever draws on it."""

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_broker.loop.slices import at_once
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.quotas.entity_usage import ENTITIES_MAX, EntityUsage

EACH_CLIENT = Entity(None, DEFAULT)


def quotas(limits: dict[Entity | IpEntity, float]) -> ClientQuotas:
    made = ClientQuotas()
    made.update({"producer_byte_rate": limits})
    return made


def produced(of: ClientQuotas, now_ms: int = 0) -> dict[str, EntityUsage]:
    return {str(line.entity): line for line in at_once(of.by_type["produce"].entities(now_ms))}


def test_a_quota_that_nobody_uses_has_its_line() -> None:
    assert produced(quotas({Entity("bob"): 500.0})) == {'user "bob"': EntityUsage(Entity("bob"), 500.0)}


def test_a_default_is_as_near_its_limit_as_the_client_that_uses_most() -> None:
    shared = quotas({EACH_CLIENT: 1000.0})
    shared.produce("alice", "a", 8000, 0)
    shared.produce("alice", "b", 2000, 0)

    line = produced(shared)["default client id"]
    assert (line.limit, line.usage, line.shares) == (1000.0, 800.0, 2)


def test_held_time_is_that_in_which_any_connection_was_held() -> None:
    shared = quotas({EACH_CLIENT: 1000.0})
    first = shared.held("produce", "alice", "a", 0)
    second = shared.held("produce", "alice", "b", 0)

    first.begin(1000)
    second.begin(2000)
    assert (produced(shared, 3000)["default client id"].held_ms, shared_connections(shared)) == (2000, 2)
    first.end(4000)
    second.end(5000)
    first.begin(7000)
    first.end(7500)
    assert (produced(shared, 9000)["default client id"].held_ms, shared_connections(shared)) == (4500, 0)


def shared_connections(of: ClientQuotas) -> int:
    return produced(of)["default client id"].held_connections


def test_a_wait_ends_where_it_began_when_the_limit_changes_meanwhile() -> None:
    changing = quotas({EACH_CLIENT: 1000.0})
    held = changing.held("produce", "alice", "a", 0)
    held.begin(0)
    changing.update({"producer_byte_rate": {EACH_CLIENT: 2000.0, Entity("alice"): 1.0}})
    held.end(3000)

    assert produced(changing, 9000)["default client id"].held_ms == 3000
    assert produced(changing, 9000)['user "alice"'].held_ms == 0


def test_a_shadowed_quota_says_so() -> None:
    lines = produced(quotas({Entity(DEFAULT): 1.0, Entity(None, "etl"): 1.0}))

    assert {name: line.is_shadowed for name, line in lines.items()} == {
        "default user": False,
        'client id "etl"': True,
    }


def test_no_more_than_the_bound_is_shown() -> None:
    many = quotas({Entity(f"user-{number}"): 1.0 for number in range(ENTITIES_MAX + 7)})

    assert len(produced(many)) == ENTITIES_MAX
    assert many.by_type["produce"].entities_total == ENTITIES_MAX + 7


def test_beyond_the_bound_a_quota_that_has_held_a_connection_comes_first() -> None:
    many = quotas({Entity(f"user-{number}"): 1.0 for number in range(ENTITIES_MAX + 7)})
    last = f"user-{ENTITIES_MAX + 6}"
    many.held("produce", last, "a", 0).begin(0)

    assert produced(many, 10)[f'user "{last}"'].held_ms == 10
    assert len(produced(many, 10)) == ENTITIES_MAX
