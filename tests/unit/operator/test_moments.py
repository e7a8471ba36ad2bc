"""Durations and moments as people write them; what is none is refused in words, however long or far away."""

import pytest

from kavka_operator.domain.moments import A_WEEK_SECONDS, BadMomentError, duration_seconds, milliseconds_of
from kavka_operator.live_views.records import BadQueryError, query_of


def test_durations_are_as_with_kubectl() -> None:
    assert [duration_seconds(text) for text in ("30s", "1h30m", "500ms", "5", "-1s")] == [
        30.0,
        5400.0,
        0.5,
        5.0,
        A_WEEK_SECONDS,
    ]


def test_moments_are_milliseconds() -> None:
    assert (milliseconds_of("start"), milliseconds_of("now")) == (0, None)
    assert milliseconds_of("1970-01-01T00:00:02Z") == 2000


@pytest.mark.parametrize(
    "text",
    [
        "-" + "9" * 400 + "h",
        "-" + "9" * 304 + "h",
        "-" + "9" * 20 + "s",
        "0001-01-01T00:00:00+23:00",
        "9999-12-31T23:59:59-23:00",
        "0001-01-01",
        "yesterday",
        "",
    ],
)
def test_what_is_no_moment_is_refused_in_words(text: str) -> None:
    try:
        milliseconds_of(text)
    except BadMomentError:
        with pytest.raises(BadQueryError):
            query_of({"topic": "t", "at": "time", "where": text})
    else:
        # Where no clock was ahead of Greenwich then, the first day has a time.
        assert text == "0001-01-01"


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "h", "9" * 200 + "h" + "9" * 308 + "h"])
def test_a_duration_that_is_too_long_is_refused_in_words(text: str) -> None:
    with pytest.raises(BadMomentError, match="too long"):
        duration_seconds(text)
