"""What a victim tells of its waits."""

from bench.victims import Schedule


def test_a_request_without_an_answer_has_waited_until_now() -> None:
    schedule = Schedule(3, 0.0)
    schedule.answered(1)
    waits = schedule.waits_ms()
    assert len(schedule.waited_ms) == 1
    assert len(waits) == 3
    assert waits == sorted(waits)
    assert waits[0] == schedule.waited_ms[0]
