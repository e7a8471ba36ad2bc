"""Patterns: what they match, what is refused, and that no text makes them slow."""

import pytest

from kavka_broker.core.telemetry.pattern import STATES_MAX, TEXT_CHARACTERS_MAX, Pattern, PatternError
from kavka_broker.loop.slices import at_once


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", [""], ["a"]),
        ("app", ["app"], ["ap", "apps", "xapp"]),
        ("a.p", ["abp", "a.p"], ["ap", "a\np"]),
        ("a*", ["", "a", "aaa"], ["b", "ab"]),
        ("a+b?", ["a", "aab"], ["", "b", "abb"]),
        ("(a|bc)+", ["a", "bc", "abca"], ["", "b", "ac"]),
        ("(?:a|)", ["", "a"], ["aa"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,3}?", ["a", "aaa"], ["", "aaaa"]),
        ("a{200}", ["a" * 200], ["a" * 199]),
        (r"127\.0\.0\.\d+", ["127.0.0.1"], ["127x0.0.1", "127.0.0."]),
        ("[a-c-]+", ["abc-"], ["d"]),
        ("[^a-c]", ["d", "-"], ["a", ""]),
        (r"[\d_\-]+", ["1_-2"], ["a"]),
        (r"[^\D]", ["7"], ["x"]),
        (r"\w\W\s\S", ["a- b"], ["aa b"]),
        ("^a$", ["a"], ["aa"]),
        ("a^b|a$b", [], ["ab"]),
        ("(a*)*b", ["b", "aab"], ["a"]),
        ("ü+", ["üü"], ["u"]),
        (r"\t", ["\t"], ["t"]),
    ],
)
def test_a_pattern_matches_whole_texts(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = Pattern.compile(pattern)
    assert [text for text in matching + others if at_once(compiled.matches(text))] == matching


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "[", "[]", "[a", "a)", "*", "+a", "?", "{2}", "a{", "a{x}", "a{2,1}", "a{201}", "a**", "a++", "(?=a)",
        "(?i)a", "(?<n>a)", r"\1", r"\b", r"\p{L}", "[z-a]", r"[\d-z]", "[a[b]]", "[a&&b]", "a\\",
        "(" * 21 + ")" * 21, "a{200}a{200}", "((((){200}){200}){200}){200}", "(a{150}){150}",
    ],
)  # fmt: skip
def test_what_cannot_be_matched_in_linear_time_or_read_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Pattern.compile(pattern)


def test_a_group_of_another_kind_is_refused_by_its_name() -> None:
    with pytest.raises(PatternError, match="has a group that begins with"):
        Pattern.compile("(?=a)")


def test_a_pattern_of_the_most_states_is_matched_in_pieces() -> None:
    assert at_once(Pattern.compile("a" * STATES_MAX).matches("a" * STATES_MAX))


def test_a_text_that_no_client_has_reason_for_matches_nothing() -> None:
    compiled = Pattern.compile(".*")
    assert at_once(compiled.matches("a" * TEXT_CHARACTERS_MAX))
    assert not at_once(compiled.matches("a" * (TEXT_CHARACTERS_MAX + 1)))


def test_a_pattern_that_keeps_a_backtracking_engine_for_years() -> None:
    assert not at_once(Pattern.compile("(a+)+b").matches("a" * TEXT_CHARACTERS_MAX))


def test_patterns_are_compared_by_their_texts() -> None:
    assert Pattern.compile("a*") == Pattern.compile("a*")
    assert Pattern.compile("a*") != Pattern.compile("a+")
