"""No client gets more than its quota, however it sends: any sizes, pauses, answers that wait, on any connections.

The connection and the quota are the broker's own; the socket, the clock and the answers are the test's, so that a run
of minutes takes no time. All connections are one client's, and mix Produce with Fetch, which have a quota each.
Requests are of up to one second's allowance: of larger ones the sampled rate itself lets more pass
(docs/explanation/quotas.md).
"""

from hypothesis import example, given, settings

from tests.property.quota.connections import CONNECTIONS, LIMIT, REQUESTS, WAITS, Request, assert_bounded, run

#: What a broker lets through that mutes a connection only when the answer leaves.
ALL_AT_ONCE = [Request(number % CONNECTIONS, 0, LIMIT, is_fetch=False) for number in range(60)]


@settings(max_examples=40, deadline=None)
@given(REQUESTS, WAITS)
@example(ALL_AT_ONCE, [5_000] * CONNECTIONS)
def test_no_more_than_the_quota_passes_over_any_span(requests: list[Request], waits_ms: list[int]) -> None:
    """`waits_ms`: for how long the answers of each connection wait, for replicas or for records."""
    assert_bounded(run(requests, waits_ms), forgets=True)


@settings(max_examples=40, deadline=None)
@given(REQUESTS, WAITS)
@example(ALL_AT_ONCE, [5_000] * CONNECTIONS)
def test_held_time_is_the_time_in_which_a_delay_was_running(requests: list[Request], waits_ms: list[int]) -> None:
    broker = run(requests, waits_ms)
    now_ms = broker.world.now_ms
    expected, intervals = 0.0, 0
    for told in broker.taken.told.values():
        until = 0.0
        for start, end in sorted(told):
            expected += max(0.0, min(end, now_ms) - max(start, until))
            until = max(until, min(end, now_ms))
        intervals += len(told)

    assert abs(broker.held_ms() - expected) <= intervals + 1  # it counts whole milliseconds
    assert broker.held_ms() <= CONNECTIONS * now_ms
