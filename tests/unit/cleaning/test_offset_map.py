"""The map from keys to offsets, against a dict, and its bound."""

import math
from random import Random

import pytest

from kavka_broker.storage.cleaning.offset_map import ENTRY_BYTES, SLOTS_MIN, OffsetMap, prime_below


def test_an_offset_map_keeps_what_a_dict_keeps() -> None:
    random, model = Random(1), dict[bytes, int]()
    found = OffsetMap(1 << 20, 0.9, 5_000)
    for offset in range(5_000):
        key = b"%d" % random.randrange(3_000)
        found.put(key, offset)
        model[key] = offset
    assert found.size == len(model)
    assert all(found.get(b"%d" % number) == model.get(b"%d" % number, -1) for number in range(3_500))
    assert found.latest_offset == 4_999
    found.close()


def test_it_takes_what_it_is_given_and_is_full_at_its_load() -> None:
    found = OffsetMap(100 * ENTRY_BYTES, 0.5, 10**9)
    assert found.slots == 97
    for number in range(48):
        assert not found.is_full
        found.put(b"%d" % number, number)
    assert found.is_full
    assert [found.get(b"%d" % number) for number in range(49)] == [*range(48), -1]


def test_a_short_dirty_part_takes_little() -> None:
    assert OffsetMap(1 << 30, 0.9, 90).slots <= 111
    assert OffsetMap(0, 0.9, 10**9).slots == SLOTS_MIN


def test_offset_zero_is_an_offset() -> None:
    found = OffsetMap(1 << 20, 0.9, 10)
    found.put(b"a", 0)
    assert (found.get(b"a"), found.get(b"b")) == (0, -1)


def test_the_prime_below_a_number_is_found() -> None:
    assert [prime_below(number) for number in (2, 4, 11, 100, 5_592_405)] == [2, 3, 11, 97, 5_592_373]


@pytest.mark.parametrize("load_factor", [-1.0, 0.0, 1.5, math.inf, math.nan])
@pytest.mark.parametrize("bytes_max", [-1, 0, 10_000])
def test_any_load_factor_and_any_size_that_a_config_may_have_make_a_map(load_factor: float, bytes_max: int) -> None:
    made = OffsetMap(bytes_max, load_factor, keys_max=100)
    made.put(b"key", 7)
    assert made.get(b"key") == 7
    made.close()
