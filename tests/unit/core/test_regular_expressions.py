"""Expressions: what they match, what is refused, and that no text makes them slow."""

import pytest

from kavka_broker.core.regular_expressions import PATTERN_CHARACTERS_MAX, TEXT_CHARACTERS_MAX, Pattern, PatternError


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
        (r"[\[\]&]+", ["[&&]"], ["a"]),
        (r"[^\D]", ["7"], ["x"]),
        (r"\w\W\s\S", ["a- b"], ["aa b"]),
        ("^a$", ["a"], ["aa"]),
        ("a^b|a$b", [], ["ab"]),
        ("(a*)*b", ["b", "aab"], ["a"]),
        ("(?i)a", ["a", "A"], ["b"]),
        (r"\p{Lu}+", ["ÄB"], ["äb"]),
        ("ü+", ["üü"], ["u", "\udc80"]),
        (r"\t", ["\t"], ["t"]),
    ],
)
def test_a_pattern_matches_whole_texts(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = Pattern.compile(pattern)
    assert [text for text in matching + others if compiled.matches(text)] == matching


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "[", "[]", "[a", "a)", "*", "+a", "?", "a{2,1}", "a{1001}", "a**", "a++", "(?=a)", r"\1", "[z-a]",
        "[a[b]]", "[[:alpha:]]", "[a&&b]", "[]a[b]]", "a\\", "((((){200}){200}){200}){200}", "(a{150}){150}", "\udc80",
        "a" * (PATTERN_CHARACTERS_MAX + 1), r"(\pL\PL){50}", "(?:.?){1000}", "((.?){9}){100}",
    ],
)  # fmt: skip
def test_what_cannot_be_matched_in_linear_time_or_read_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Pattern.compile(pattern)


def test_a_refusal_says_what_is_wrong() -> None:
    with pytest.raises(PatternError, match=r"cannot be read: invalid perl operator: \(\?="):
        Pattern.compile("(?=a)")


def test_a_text_that_no_client_has_reason_for_matches_nothing() -> None:
    compiled = Pattern.compile(".*")
    assert compiled.matches("a" * TEXT_CHARACTERS_MAX)
    assert not compiled.matches("a" * (TEXT_CHARACTERS_MAX + 1))


def test_a_pattern_that_keeps_a_backtracking_engine_for_years() -> None:
    assert not Pattern.compile("(a+)+b").matches("a" * TEXT_CHARACTERS_MAX)


@pytest.mark.parametrize("pattern", ["(" * 500 + ")" * 500, "(.*)" * 249])
def test_groups_cost_nothing_as_nobody_asks_what_they_capture(pattern: str) -> None:
    compiled = Pattern.compile(pattern)
    assert compiled._compiled.options.never_capture
    assert compiled.matches("")


def test_a_name_of_any_topic_may_be_asked_for_by_its_characters() -> None:
    assert Pattern.compile("[a-zA-Z0-9._-]{1,249}").matches("a" * 249)


def test_patterns_are_compared_by_their_texts() -> None:
    assert Pattern.compile("a*") == Pattern.compile("a*")
    assert Pattern.compile("a*") != Pattern.compile("a+")
