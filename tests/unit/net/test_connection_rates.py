"""How fast connections may come (KIP-612): who waits, who is held and closed, and what counts where."""

from kavka_broker.core.quota.entity import DEFAULT, IpEntity
from kavka_broker.loop.slices import at_once
from kavka_broker.net.address_rates import ADDRESSES_MAX
from kavka_broker.net.connection_rates import ConnectionRates, RateBounds

SAMPLE_MS = 1000
AT_ONCE = 10  # seconds' worth that may come at once
INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"
ADDRESS = "192.0.2.7"
V6 = ("2001:db8::7", "2001:db8::8")


def rates(
    of_broker: int = 10**9, protected: str = "", addresses_max: int = ADDRESSES_MAX, **of_listener: int
) -> ConnectionRates:
    made = ConnectionRates(protected=protected, addresses_max=addresses_max)
    made.join(INSIDE)
    made.join(OUTSIDE)
    made.alter(RateBounds(of_broker, of_listener))
    return made


def taken_at_once(of: ConnectionRates, listener: str, now_ms: int = 0) -> int:
    """How many connections the listener takes until it has to wait, the last included."""
    taken = 1
    while not of.take(listener, now_ms):
        taken += 1
    return taken


def test_the_listener_waits_after_the_connection_that_is_too_fast() -> None:
    limited = rates(OUTSIDE=5)
    assert taken_at_once(limited, OUTSIDE) == 5 * AT_ONCE + 1
    assert all(not limited.take(INSIDE, 0) for _ in range(1000))


def test_a_delay_is_at_most_one_sample_long() -> None:
    limited = rates(OUTSIDE=1)
    assert [limited.take(OUTSIDE, 0) for _ in range(100)][-1] == SAMPLE_MS


def test_the_brokers_rate_binds_all_listeners_but_the_protected() -> None:
    limited = rates(5, protected=INSIDE)
    assert all(not limited.take(INSIDE, 0) for _ in range(1000))
    assert taken_at_once(limited, OUTSIDE) == 5 * AT_ONCE + 1


def test_a_protected_listener_that_is_the_only_one_is_bound() -> None:
    alone = ConnectionRates(protected=INSIDE)
    alone.join(INSIDE)
    alone.alter(RateBounds(1))
    assert taken_at_once(alone, INSIDE) == AT_ONCE + 1


def test_a_listeners_own_rate_binds_the_protected_one() -> None:
    assert taken_at_once(rates(protected=INSIDE, INSIDE=2), INSIDE) == 2 * AT_ONCE + 1


def test_an_address_above_its_rate_counts_nowhere() -> None:
    limited = rates(1000)
    limited.limit_addresses({IpEntity(ADDRESS): 1.0})
    for _ in range(AT_ONCE):
        limited.take(OUTSIDE, 0)
        assert limited.admit(OUTSIDE, ADDRESS, 0) == 0
    for _ in range(1000):
        limited.take(OUTSIDE, 0)
        assert limited.admit(OUTSIDE, ADDRESS, 0) == SAMPLE_MS
    assert (limited.of_listener(OUTSIDE, 0), limited.of_broker(0)) == (1.0, 1.0)
    assert list(limited.of_addresses(5, 0)) == [(ADDRESS, 1.0)]


def test_the_default_gives_each_address_its_own_rate_and_a_name_wins() -> None:
    limited = rates()
    limited.limit_addresses({IpEntity(DEFAULT): 1.0, IpEntity(ADDRESS): 2.0})

    def admitted(address: str) -> int:
        return sum(not limited.admit(OUTSIDE, address, 0) for _ in range(100))

    assert [admitted(one) for one in (ADDRESS, "192.0.2.8", "192.0.2.9")] == [2 * AT_ONCE, AT_ONCE, AT_ONCE]


def test_an_address_may_be_written_in_another_way_than_the_kernels() -> None:
    limited = rates()
    limited.limit_addresses({IpEntity("2001:DB8:0:0::7"): 1.0, IpEntity("client.example"): 1.0})
    admitted = {address: sum(not limited.admit(OUTSIDE, address, 0) for _ in range(100)) for address in V6}
    assert admitted == {"2001:db8::7": AT_ONCE, "2001:db8::8": 100}


def test_other_limits_hold_at_once_and_what_was_measured_stays() -> None:
    limited = rates(OUTSIDE=1)
    assert taken_at_once(limited, OUTSIDE) == AT_ONCE + 1
    limited.alter(RateBounds(of_listener={OUTSIDE: 2}))
    assert taken_at_once(limited, OUTSIDE) == AT_ONCE
    limited.limit_addresses({IpEntity(ADDRESS): 1.0})
    limited.limit_addresses({})
    assert not any(limited.admit(OUTSIDE, ADDRESS, 0) for _ in range(100))


def test_addresses_are_bounded_and_those_beyond_share_a_rate() -> None:
    limited = rates(addresses_max=3)
    limited.limit_addresses({IpEntity(DEFAULT): 1.0})
    for number in range(3):
        limited.admit(OUTSIDE, f"192.0.2.{number}", 0)
    late = [limited.admit(OUTSIDE, f"198.51.100.{number}", 1) for number in range(AT_ONCE + 2)]
    assert [delay_ms > 0 for delay_ms in late] == [False] * AT_ONCE + [True] * 2
    assert limited.admit(OUTSIDE, "203.0.113.1", limited.window.span_ms) == 0, "nobody has come for a window"
    assert len(list(limited.of_addresses(9, 0))) <= 4


def test_the_long_run_rate_is_the_limit() -> None:
    limited, now_ms, taken = rates(OUTSIDE=20), 0, 0
    while now_ms < 300_000:
        now_ms += 1 + limited.take(OUTSIDE, now_ms)
        taken += 1
    assert 20 * 300 <= taken <= 20 * (300 + AT_ONCE) * 1.01 + 1


def observed(of: ConnectionRates, now_ms: int) -> dict[str, tuple[float, float, int]]:
    """The limit, the usage, and for how long it would have held somebody, of each entity."""
    lines = at_once(of.observed.lines(now_ms))
    return {str(line.entity): (line.limit, line.usage, line.held_ms) for line in lines}


def test_an_observed_rate_refuses_nobody_and_tells_for_how_long_it_would_have_held_somebody() -> None:
    watched = rates()
    watched.limit_addresses({}, {IpEntity(DEFAULT): 1.0})
    assert not any(watched.admit(OUTSIDE, ADDRESS, 0) for _ in range(AT_ONCE))
    assert observed(watched, 5000) == {"default address": (1.0, 1.0, 0)}
    assert not any(watched.admit(OUTSIDE, ADDRESS, now_ms) for now_ms in (5000, 5100, 5200))
    assert observed(watched, 5700)["default address"][2] == 700
    assert observed(watched, 60_000)["default address"][2] == 1000, "delays that overlap count once"


def test_an_observed_rate_is_resolved_among_those_in_force() -> None:
    watched = rates()
    watched.limit_addresses({IpEntity(ADDRESS): 100.0}, {IpEntity(DEFAULT): 1.0})
    assert not any(watched.admit(OUTSIDE, ADDRESS, 0) for _ in range(100))
    assert observed(watched, 1000) == {"default address": (1.0, 0.0, 0)}, "the address has a limit of its own"
    watched.limit_addresses({IpEntity(ADDRESS): 1.0}, {IpEntity(ADDRESS): 100.0})
    assert watched.admit(OUTSIDE, ADDRESS, 0) == SAMPLE_MS, "the one in force holds beside it"
    watched.limit_addresses({})
    assert observed(watched, 1000) == {}


def test_addresses_under_an_observed_rate_are_bounded() -> None:
    watched = rates(addresses_max=3)
    watched.limit_addresses({}, {IpEntity(DEFAULT): 1.0})
    for number in range(100):
        watched.admit(OUTSIDE, f"192.0.2.{number}", 0)
    (line,) = at_once(watched.observed.lines(0))
    assert line.shares == 4


def test_addresses_may_be_forgotten_while_they_are_counted() -> None:
    watched = rates(addresses_max=100)
    watched.limit_addresses({}, {IpEntity(DEFAULT): 1.0})
    for number in range(100):
        watched.admit(INSIDE, f"192.0.2.{number}", 0)
    lines = watched.observed.lines(0)
    next(lines)
    for number in range(100):
        watched.admit(INSIDE, f"198.51.100.{number}", 60_000)
    assert [(line.usage, line.shares) for line in at_once(lines)] == [(0.1, 100)]
