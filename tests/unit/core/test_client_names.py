"""Names that clients choose: how much of them is kept, and that two of them stay two."""

from sys import getsizeof

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.client_names import LABEL_BYTES_MAX, NAME_CHARACTERS_MAX, label_of, shortened

LONG = "x" * 32_000


@pytest.mark.parametrize("name", ["", "etl", "x" * NAME_CHARACTERS_MAX, "\U0001f600" * NAME_CHARACTERS_MAX])
def test_a_name_that_is_short_enough_is_kept(name: str) -> None:
    assert shortened(name) == name


def test_a_long_name_is_kept_as_its_beginning_and_a_hash() -> None:
    assert shortened("x" * 300) == "x" * 223 + "~0d4e2ca9e9cbced7a7a5380eb29e1a37"
    assert len(shortened("x" * 300)) == NAME_CHARACTERS_MAX
    assert getsizeof(shortened(LONG + "\U0001f600")) < 1_200


def test_long_names_that_differ_at_their_end_stay_apart() -> None:
    assert shortened(LONG + "a") != shortened(LONG + "b")
    assert label_of(LONG + "a") != label_of(LONG + "b")
    assert shortened(LONG + "\ud800") == shortened(LONG + "\ud800"), "half a character has a hash, too"


@given(st.text(max_size=600))
def test_names_and_labels_are_bounded(name: str) -> None:
    assert len(shortened(name)) <= NAME_CHARACTERS_MAX
    assert len(label_of(name).encode(errors="replace")) <= LABEL_BYTES_MAX
    assert (label_of(name) == name) == (len(name.encode(errors="replace")) <= LABEL_BYTES_MAX)
