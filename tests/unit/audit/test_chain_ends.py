"""The ends of chains that a node keeps and names in its first head: which ones stay, and what a value may hold."""

import json
from typing import Any

import pytest

from kavka_broker.core.audit.chain_ends import ENDS_MAX, End, ends_of, text_of, with_end

HASH = bytes(range(32))
TOLD = {"source": "1-6", "sequence": 41, "hash": HASH.hex(), "certain": True}


def end(number: int, *, is_certain: bool = False) -> End:
    return End(f"1-{number}", number, HASH, is_certain)


def text(*told: Any) -> bytes:
    return json.dumps({"before": told}).encode()


def test_the_end_of_a_chain_of_one_entry_is_read_again() -> None:
    """A node that is killed after its first batch ends at the sequence 0."""
    ends = tuple(map(end, range(ENDS_MAX)))
    assert ends[0].sequence == 0
    assert ends_of(text_of(ends)) == ends


def test_a_chain_with_no_end_before_it_names_none() -> None:
    assert ends_of(b"") == ()
    assert ends_of(text_of(())) == ()


def test_more_ends_than_a_node_keeps_are_refused() -> None:
    with pytest.raises(ValueError, match=f"^more than {ENDS_MAX} ends of chains$"):
        ends_of(text_of(tuple(map(end, range(ENDS_MAX + 1)))))


@pytest.mark.parametrize(
    "field",
    [
        {"source": 1},
        {"sequence": -1},
        {"sequence": True},
        {"sequence": 1.0},
        {"sequence": "1"},
        {"certain": 1},
        {"hash": None},
        {"hash": list(HASH.hex())},
        {"hash": HASH.hex()[:-2]},
        {"hash": HASH.hex() + "00"},
        {"hash": HASH.hex()[:-2] + "zz"},
        {"hash": HASH.hex()[:-2] + "  "},
        {"hash": HASH.hex().upper()},
    ],
    ids=str,
)
def test_an_end_with_a_field_of_another_kind_is_refused(field: dict[str, Any]) -> None:
    assert ends_of(text(TOLD)) == (End("1-6", 41, HASH, is_certain=True),)
    with pytest.raises(ValueError, match=r"^no ends of chains: "):
        ends_of(text(TOLD | field))


@pytest.mark.parametrize("value", [b"[]", b"{}", b"{", b"[" * 100_000, b'{"before":1}', b'{"before":[1]}', b"\xff"])
def test_a_value_that_names_no_ends_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"^no ends of chains: "):
        ends_of(value)


def test_a_certain_end_stands_alone() -> None:
    ends = with_end(with_end((), end(1)), end(2))
    assert ends == (end(1), end(2))
    assert with_end(ends, end(3, is_certain=True)) == (end(3, is_certain=True),)


def test_of_a_chain_only_the_last_uncertain_end_stays_beside_the_certain_one() -> None:
    certain = end(1, is_certain=True)
    once = with_end((certain,), End("1-1", 5, HASH, is_certain=False))
    assert with_end(once, End("1-1", 9, HASH, is_certain=False)) == (certain, End("1-1", 9, HASH, is_certain=False))


@pytest.mark.parametrize("certain", [(), (end(0, is_certain=True),)], ids=["none", "one"])
def test_the_oldest_uncertain_ends_make_room_and_the_certain_one_stays(certain: tuple[End, ...]) -> None:
    ends = certain
    for number in range(1, 2 * ENDS_MAX):
        ends = with_end(ends, end(number))
        assert len(ends) <= ENDS_MAX
    kept = ENDS_MAX - len(certain)
    assert ends == (*certain, *map(end, range(2 * ENDS_MAX - kept, 2 * ENDS_MAX)))


def test_what_may_have_come_behind_the_certain_end_stays_however_many_starts_follow() -> None:
    """Its chain seemed to have entries that its node had not written, once nine starts in a row had no answer."""
    certain, behind = end(1, is_certain=True), End("1-1", 9, HASH, is_certain=False)
    ends = with_end((certain,), behind)
    for number in range(2, 2 * ENDS_MAX):
        ends = with_end(ends, end(number))
        assert ends[:2] == (certain, behind)
        assert len(ends) <= ENDS_MAX
    assert ends[2:] == tuple(map(end, range(2 * ENDS_MAX - ENDS_MAX + 2, 2 * ENDS_MAX)))
    assert ends_of(text_of(ends)) == ends
