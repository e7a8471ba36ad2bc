"""Patterns against Python's own engine, on texts short enough for it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.regular_expressions import Pattern, PatternError

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", "1", "(?:)", "^", "$"])


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{0,2}", "{2}", "{1,}", "*?"])),
    )


@given(st.recursive(ATOMS, grown, max_leaves=8), st.lists(st.text("ab1", max_size=6), min_size=1, max_size=8))
def test_the_same_texts_match(pattern: str, texts: list[str]) -> None:
    # Python's "$" also stands before a newline at the end; these texts have none.
    compiled, model = Pattern.compile(pattern), re.compile(pattern)
    for text in texts:
        assert compiled.matches(text) == (model.fullmatch(text) is not None)


@given(st.text("ab()[]{}|*+?^$\\.-,01&d", max_size=30), st.text("ab01", max_size=20))
def test_any_text_is_a_pattern_or_refused(pattern: str, text: str) -> None:
    try:
        compiled = Pattern.compile(pattern)
    except PatternError:
        return
    compiled.matches(text)
