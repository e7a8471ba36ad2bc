"""A look-up in a large index reads what is near, and finds what a look at all of it finds."""

from itertools import accumulate
from random import Random

import pytest

from kavka_broker.storage.index_file import NEAR_ENTRIES
from kavka_broker.storage.offset_index import OffsetIndex
from tests.unit.storage.support import new_disk

ENTRIES = 4 * NEAR_ENTRIES


def index_of(offsets: list[int], positions: list[int]) -> OffsetIndex:
    """As a disk gives it out, whatever it says."""
    disk, path = new_disk(), "/data/00000000000000000000.index"
    disk.open(path).append(b"".join(map(OffsetIndex.ENTRY.pack, offsets, positions)))
    return OffsetIndex(disk, path, 0, 10**6)


def drawn(random: Random, spread: str) -> list[int]:
    """Numbers that ascend: in even steps, in wild ones, or in such a way that the middle of them tells nothing."""
    match spread:
        case "even":
            return list(accumulate(random.randint(3, 5) for _ in range(ENTRIES)))
        case "wild":
            return list(accumulate(random.choice([1, 2, 5000]) for _ in range(ENTRIES)))
        case _:
            return [*range(1, ENTRIES), 10**8]


@pytest.mark.parametrize("spread", ["even", "wild", "bent"])
def test_what_is_near_is_what_is_there(spread: str) -> None:
    random = Random(spread)
    offsets, positions = drawn(random, spread), drawn(random, spread)
    index = index_of(offsets, positions)
    pairs = list(zip(offsets, positions, strict=True))
    for _ in range(300):
        target = random.choice(offsets) + random.randint(-1, 1)
        below = [pair for pair in pairs if pair[0] <= target]
        assert index.positions_before(target, 3) == ([position for _, position in below[:-4:-1]] or [0])
        position = random.choice(positions) + random.randint(-1, 1)
        assert index.batch_before(position) == max([one for one in positions if one <= position], default=0)


def test_not_all_of_it_is_read() -> None:
    index = index_of(drawn(Random(1), "even"), drawn(Random(2), "even"))
    sizes = list[int]()
    read = index._file.read

    class Watched:
        def read(self, position: int, size: int) -> memoryview:
            sizes.append(size)
            return read(position, size)

    index._file = Watched()  # type: ignore[assignment]
    index.batch_before(ENTRIES)
    assert sum(sizes) < ENTRIES * OffsetIndex.ENTRY.size // 2


def test_an_index_that_was_damaged_is_searched_all_the_same() -> None:
    """What it says is held against the batches; only the search must come to an end."""
    random = Random(3)
    numbers = [random.randrange(-(2**31), 2**31) for _ in range(ENTRIES)]
    index = index_of(numbers, numbers[::-1])
    for _ in range(300):
        assert index.positions_before(random.randrange(2**31), 2)
        assert index.position_before(random.randrange(2**31)) >= 0
        index.batch_before(random.randrange(2**31))


@pytest.mark.parametrize(("position", "is_entry"), [(0, True), (-1, False), (-(2**31), False)])
def test_what_stands_before_its_file_is_no_entry(position: int, is_entry: bool) -> None:
    last = index_of([1, 5], [0, position]).last_entry()
    assert (last == (5, position)) is is_entry
