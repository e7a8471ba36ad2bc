"""Clients that share a topic get no more of it together than its limit, keep their order, and each gets a part."""

from heapq import heappop, heappush

import pytest
from hypothesis import example, given, settings

from kavka_broker.core.quota.entity import TopicEntity
from kavka_broker.loop.slices import Cost, at_once
from kavka_broker.quotas.topic_quota import TopicQuota
from tests.property.quota.connections import (
    CONNECTIONS,
    LIMIT,
    REQUESTS,
    TOPIC,
    WAITS,
    WINDOW,
    BrokerOfTopic,
    Request,
    assert_bounded,
    run,
)

ALL_AT_ONCE = [Request(number % CONNECTIONS, 0, LIMIT, is_fetch=False) for number in range(60)]
SECONDS = 600


@settings(max_examples=40, deadline=None)
@given(REQUESTS, WAITS)
@example(ALL_AT_ONCE, [5_000] * CONNECTIONS)
def test_no_more_than_the_topics_limit_passes_over_any_span(requests: list[Request], waits_ms: list[int]) -> None:
    """`waits_ms`: for how long the answers of each connection wait, for replicas or for records."""
    assert_bounded(run(requests, waits_ms, BrokerOfTopic), forgets=False)


@settings(max_examples=40, deadline=None)
@given(REQUESTS, WAITS)
@example(ALL_AT_ONCE, [5_000] * CONNECTIONS)
def test_a_held_connection_keeps_the_order_of_its_requests(requests: list[Request], waits_ms: list[int]) -> None:
    broker = run(requests, waits_ms, BrokerOfTopic)
    for number, begun in broker.taken.begun.items():
        assert begun == [request.size for request in requests if request.number == number]


@pytest.mark.parametrize(
    ("clients", "size"),
    [(1, LIMIT), (1, 100 * LIMIT), (3, LIMIT // 10), (3, 7 * LIMIT), (50, LIMIT // 10), (50, LIMIT)],
)
def test_greedy_clients_reach_the_limit_and_have_equal_parts(clients: int, size: int) -> None:
    """Each sends again as soon as it may."""
    quota = TopicQuota(WINDOW)
    quota.limit(TOPIC, b"", {TopicEntity(TOPIC): LIMIT})
    due, sent = [(0, number) for number in range(clients)], [0] * clients
    while due[0][0] < SECONDS * 1000:
        now_ms, number = heappop(due)
        sent[number] += size
        delays = at_once(quota.limited[TOPIC].charge({0: size}, now_ms, Cost()))
        delay_ms = max((delay for delay, _ in delays), default=1)
        heappush(due, (now_ms + delay_ms, number))
    passed = sum(sent) - WINDOW.value_max(LIMIT) - clients * size  # the first burst, and what is not paid off
    assert 0.95 <= passed / SECONDS / LIMIT <= 1.05
    assert max(sent) - min(sent) <= 0.1 * sum(sent) / clients + size
