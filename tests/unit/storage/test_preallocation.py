"""Room behind the end of a file: pages that a thread makes ready, and that nobody takes for a part of the file."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kavka_broker.storage.disk import RealDisk, RealFile
from kavka_broker.storage.preallocation import MAKES_ROOM, bring_in

pytestmark = pytest.mark.skipif(not MAKES_ROOM, reason="this kernel makes no room by request")
SIZE = 300_000


@pytest.fixture
def file(tmp_path: Path) -> RealFile:
    file = RealFile(str(tmp_path / "log"))
    file.append(b"first")
    return file


def on_disk(file: RealFile) -> bytes:
    return Path(file.path).read_bytes()


def test_room_is_no_part_of_the_file_and_an_append_takes_it(file: RealFile) -> None:
    file.make_room(SIZE)
    assert file.size == 5
    assert on_disk(file) == b"first" + bytes(SIZE)
    with pytest.raises(ValueError, match="has 5 bytes"):
        file.read(0, 6)
    file.append(b"x" * SIZE)
    assert on_disk(file) == b"first" + b"x" * SIZE
    assert bytes(file.read(4, 2)) == b"tx"


def test_what_is_left_of_room_goes_when_the_file_is_let_go_of_or_finished(file: RealFile) -> None:
    for let_go in (file.release, file.end_room):
        file.append(b"less")
        file.make_room(SIZE)
        assert len(on_disk(file)) == file.size + SIZE
        let_go()
        assert len(on_disk(file)) == file.size
    file.make_room(SIZE)
    assert len(on_disk(file)) == file.size, "a finished file has room made for it no more"


def test_a_reader_of_its_own_sees_what_was_written(file: RealFile) -> None:
    file.make_room(SIZE)
    reader = RealDisk().open_to_read(file.path, file.size)
    assert reader.size == 5
    assert RealDisk().open_to_read(file.path).size == 5 + SIZE
    assert RealDisk().open_to_read(file.path, 10 * SIZE).size == 5 + SIZE


def test_a_cut_takes_room_along(file: RealFile) -> None:
    file.make_room(SIZE)
    file.truncate(2)
    assert on_disk(file) == b"fi"
    file.append(b"ve")
    file.release()
    assert on_disk(file) == b"five"


def test_a_file_that_room_is_made_for_is_not_let_go_of_and_its_end_waits(file: RealFile) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(fd: int, position: int, size: int) -> None:
        begun.set()
        go_on.wait(60)
        bring_in(fd, position, size)

    file.room.bring_in = slow
    with ThreadPoolExecutor(2) as pool:
        made = pool.submit(file.make_room, SIZE)
        begun.wait(60)
        file.release()
        file.append(b" and second")
        ended = pool.submit(file.end_room)
        go_on.set()
        made.result(60)
        ended.result(60)
    assert on_disk(file) == b"first and second"


def test_appends_beside_a_thread_that_makes_room_lose_nothing(file: RealFile) -> None:
    pieces = [bytes([number]) * 40_000 for number in range(200)]
    with ThreadPoolExecutor(1) as pool:
        for piece in pieces:
            made = pool.submit(file.make_room, len(piece) * 3)
            file.append(piece)
            made.result(60)
    file.end_room()
    assert on_disk(file) == b"first" + b"".join(pieces)


def test_a_file_that_is_not_open_or_whose_disk_refuses_goes_without(file: RealFile) -> None:
    file.release()
    file.make_room(SIZE)
    assert len(on_disk(file)) == 5

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    file.room.bring_in = full
    file.append(b"!")
    file.make_room(SIZE)
    file.append(b"!")
    assert on_disk(file) == b"first!!"


def test_room_is_made_in_pieces_and_only_once(file: RealFile) -> None:
    made = list[tuple[int, int]]()

    def noting(fd: int, position: int, size: int) -> None:
        bring_in(fd, position, size)
        made.append((position, size))

    file.room.bring_in = noting
    file.room.piece_bytes = 100_000
    file.make_room(SIZE - 50_000)
    file.make_room(1000)
    assert (made, file.room_bytes) == ([(5, 100_000), (100_005, 100_000), (200_005, 50_000)], 250_000)
    file.append(b"x" * 100_000)
    assert file.room_bytes == 150_000
    file.make_room(SIZE)
    assert made[3:] == [(250_005, 100_000), (350_005, 50_000)], "what there is of it is not made again"
    file.truncate(10)
    assert file.room_bytes == 0


def test_who_waits_for_room_goes_on_after_the_piece_that_holds_it(file: RealFile) -> None:
    go_on, pieces = threading.Event(), list[int]()

    def slow(fd: int, position: int, size: int) -> None:
        if pieces:
            go_on.wait(60)
        bring_in(fd, position, size)
        pieces.append(position)

    file.room.bring_in = slow
    file.room.piece_bytes = 100_000
    with ThreadPoolExecutor(2) as pool:
        extended = pool.submit(file.make_room, SIZE)
        pool.submit(file.make_room, 100_000).result(60)
        assert (pieces, extended.done()) == ([5], False)
        go_on.set()
        extended.result(60)
    assert file.room_bytes == SIZE
