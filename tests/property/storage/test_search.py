"""The search of a fetch, in bytes that it has read, finds what the walk finds that says what is wrong with them."""

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.protocol.records.batch import EXTENT_BYTES, HEADER_BYTES
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.batch_walk import ANY_OFFSET, Damage, Place, find, find_by_walk, whole_in, whole_until
from kavka_broker.storage.disk import File
from tests.support.sim_disk import SimDisk

BASE_OFFSET = 5
#: Records of a batch, and the offsets that compaction has left out before it.
BATCHES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=40)
#: Where in the file a byte is another one, and which.
DAMAGE = st.none() | st.tuples(st.integers(0, 2**16), st.integers(1, 255))


def file_of(batches: list[tuple[int, int]], damage: tuple[int, int] | None) -> tuple[File, list[int]]:
    """The file, and where in it each batch begins."""
    data, starts, offset = bytearray(), [], BASE_OFFSET
    for records, gap in batches:
        offset += gap
        starts.append(len(data))
        batch = build_batch([(None, bytes(100))] * records, timestamp_ms=0)
        batch[0:8] = offset.to_bytes(8, "big")
        data += batch
        offset += records
    if damage is not None:
        data[damage[0] % len(data)] ^= damage[1]
    file = SimDisk().open("/log")
    file.append(data)
    return file, starts


@given(BATCHES, DAMAGE, st.integers(0, 200), st.integers(0, 200))
def test_the_search_finds_what_the_walk_finds(
    batches: list[tuple[int, int]], damage: tuple[int, int] | None, from_batch: int, ahead: int
) -> None:
    file, starts = file_of(batches, damage)
    position, offset = starts[from_batch % len(starts)], BASE_OFFSET + ahead
    bounds = (BASE_OFFSET, offset if position else ANY_OFFSET)

    def outcome(search: object) -> Place | str | None:
        assert callable(search)
        try:
            found = search(file, position, offset, *bounds)
        except Damage as problem:
            return str(problem)
        assert found is None or isinstance(found, Place)
        return found

    assert outcome(find) == outcome(find_by_walk)


@given(BATCHES, st.integers(0, 200), st.integers(1, 4000))
def test_the_end_of_whole_batches_is_where_the_walk_says(
    batches: list[tuple[int, int]], from_batch: int, room: int
) -> None:
    file, starts = file_of(batches, None)
    position = starts[from_batch % len(starts)]
    limit = position + room
    if limit + HEADER_BYTES > file.size:
        return
    view = file.read(position, min(room + EXTENT_BYTES, file.size - position))
    end = whole_in(view, 0, room, BASE_OFFSET, file.size - position)
    assert end is not None
    assert (position + end[0], end[1]) == whole_until(file, position, limit, BASE_OFFSET)
