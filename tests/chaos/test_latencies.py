"""The figures of a slow node: which partitions count, and what is said of them."""

from tests.chaos.latencies import Latencies, Others, p99_ms

LED_BY_1, LED_BY_2 = ("chaos", 0), ("chaos", 1)


def test_the_p99_is_that_of_the_partitions_named() -> None:
    latencies = Latencies()
    for number in range(100):
        latencies.acknowledged(LED_BY_1, number / 1000)
        latencies.acknowledged(LED_BY_2, 5.0)
    assert p99_ms(latencies.of([LED_BY_1])) == 99
    assert p99_ms(latencies.of([LED_BY_1, LED_BY_2])) == 5000
    latencies.reset()
    assert latencies.of([LED_BY_1, LED_BY_2]) == []


def test_what_was_beside_a_slow_node_is_compared_with_all_calm_times_of_the_run() -> None:
    others = Others()
    assert others.text() == "", "no node was slow"
    others.were_calm([0.010] * 100)
    others.were_calm([0.020] * 100)
    others.were_beside([0.030] * 50)
    assert others.text() == "p99 beside a slow node 30 ms, calm 20 ms: 1.50 times"
