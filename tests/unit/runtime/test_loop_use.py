"""How busy the loop is, as a dashboard shows it."""

from kavka_broker.runtime.loop_use import SPAN_SECONDS, LoopUse


def test_a_loop_that_has_not_begun_is_idle() -> None:
    assert LoopUse(10.0, 1.0).idle_ratio(10.0, 1.0) == 1.0


def test_what_was_longer_ago_than_a_span_and_a_scrape_counts_no_more() -> None:
    use = LoopUse(0.0, 0.0)
    assert use.idle_ratio(10.0, 10.0) == 0.0
    assert use.idle_ratio(SPAN_SECONDS, 30.0) == 0.0
    assert use.idle_ratio(2 * SPAN_SECONDS, 30.0) == 1.0, "the time before the last mark is forgotten"
    assert use.idle_ratio(3 * SPAN_SECONDS, 45.0) == 0.5


def test_two_clocks_that_do_not_agree_make_no_figure_beyond_its_bounds() -> None:
    use = LoopUse(0.0, 0.0)
    assert use.idle_ratio(1.0, 1.5) == 0.0
