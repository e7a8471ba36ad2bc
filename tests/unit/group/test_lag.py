"""How far groups are behind: when records were written, what is unknown, and which lags are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.group.lag import SAMPLES_MAX, Ends, EndSamples, GroupTopicLag, Shown, lag_of

NAME = (3, "etl", "orders")
MINUTE_MS = 60_000


def samples(*moments: tuple[int, int]) -> EndSamples:
    found = EndSamples()
    for at_ms, end in moments:
        found.add(at_ms, end)
    return found


def test_a_record_was_written_while_the_end_went_past_it() -> None:
    found = samples((1_000, 0), (2_000, 100), (3_000, 100), (4_000, 100), (5_000, 300))
    assert found.written_ms(99) == 2_000
    assert found.written_ms(49) == 1_500
    assert found.written_ms(100) == 4_005, "nothing was written between 2,000 and 4,000"
    assert found.written_ms(300) is None, "it is still to be written"
    assert len(found) == 4


def test_before_the_first_sample_timestamps_of_records_tell() -> None:
    found = samples((10_000, 500))
    assert found.written_ms(7) is None
    found.seed([(9_000, 400), (5_000, 100), (1_000, 0)])
    assert found.written_ms(99) == 5_000
    assert found.written_ms(249) == 7_000
    assert found.written_ms(449) == 9_500


def test_timestamps_that_contradict_the_offsets_are_left_out() -> None:
    found = samples((10_000, 500))
    found.seed([(9_000, 600), (8_000, 300), (7_000, 400)])
    assert found.written_ms(399) == 9_000, "between 300 at 8,000 and 500 at 10,000"


@pytest.mark.parametrize("moment", [(3_000, 50), (1_500, 200)])
def test_nothing_is_known_after_an_end_or_a_clock_has_gone_back(moment: tuple[int, int]) -> None:
    found = samples((1_000, 0), (2_000, 100))
    found.seed([(500, 0)])
    found.add(*moment)
    assert (len(found), found.is_seeded, found.end) == (1, False, moment[1])


@given(st.lists(st.tuples(st.integers(1, 10**7), st.integers(0, 10**6)), min_size=1, max_size=200))
def test_samples_are_few_keep_the_first_and_the_last_and_tell_times_in_order(steps: list[tuple[int, int]]) -> None:
    found, at_ms, end = EndSamples(), 0, 0
    for passed_ms, written in steps:
        at_ms, end = at_ms + passed_ms, end + written
        found.add(at_ms, end)
    assert len(found) <= SAMPLES_MAX
    assert (found.oldest_ms, found.end) == (steps[0][0], end)
    times = [told for offset in range(0, end, max(1, end // 50)) if (told := found.written_ms(offset)) is not None]
    assert times == sorted(times)
    assert all(steps[0][0] <= told <= at_ms for told in times)


def test_lag_is_the_records_of_all_partitions_and_the_age_of_the_oldest_of_them() -> None:
    ends = {("orders", 0): Ends(100, 60), ("orders", 1): Ends(50, 50)}
    known = {("orders", 0): samples((0, 0), (10_000, 100)), ("orders", 1): samples((0, 0), (10_000, 50))}
    lag, unknown = lag_of(NAME, {0: 49, 1: 50}, ends, known, 20_000)
    assert (lag, unknown) == (GroupTopicLag(*NAME, (51, 11), (15.0, 15.0)), [])
    lag, _ = lag_of(NAME, {0: 60}, ends, known, 20_000)
    assert (lag.records, lag.seconds) == ((40, 0), (13.9, 0.0)), "a reader of committed records is at its end"


def test_a_topic_with_an_end_that_is_not_known_has_no_lag() -> None:
    lag, _ = lag_of(NAME, {0: 10, 1: 10}, {("orders", 0): Ends(10, 10)}, {("orders", 0): EndSamples()}, 5)
    assert (lag.records, lag.seconds) == ((None, None), (None, None))


def test_records_of_before_the_first_sample_have_an_age_once_timestamps_were_asked_for() -> None:
    ends, known = {("orders", 0): Ends(100, 100)}, {("orders", 0): samples((10 * MINUTE_MS, 100))}
    lag, unknown = lag_of(NAME, {0: 5}, ends, known, 11 * MINUTE_MS)
    assert (lag.records, lag.seconds, unknown) == ((95, 95), (None, None), [("orders", 0)])
    known["orders", 0].seed([(MINUTE_MS, 40)])
    lag, unknown = lag_of(NAME, {0: 5}, ends, known, 11 * MINUTE_MS)
    assert (lag.seconds, unknown) == ((600.0, 600.0), []), "at least"


def shown_of(found: Shown) -> set[str]:
    return {lag.group for lag in found.lags}


def test_many_new_groups_displace_none_that_is_shown() -> None:
    found = Shown(frozenset({("etl", "orders")}), 3)
    found.add(GroupTopicLag(*NAME, (0, 0), (0.0, 0.0)), has_members=False)
    for number in range(10):
        lag = GroupTopicLag(0, f"stranger-{number}", "orders", (10**9 + number, 0), (1.0, 1.0))
        found.add(lag, has_members=False)
    found.add(GroupTopicLag(0, "new", "orders", (1, 1), (1.0, 1.0)), has_members=True)
    assert shown_of(found) == {"etl", "new", "stranger-9"}
    assert found.omitted == 9
