"""Room behind the end of a file: pages that a thread makes ready, and that nobody takes for a part of the file."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kavka_broker.storage import room
from kavka_broker.storage.disk import RealDisk, RealFile
from kavka_broker.storage.room import HELD_SECONDS_MIN, MAKES_ROOM, STRAINED_SECONDS, Strain

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


def test_a_file_that_room_is_made_for_is_not_let_go_of_and_its_end_waits(
    file: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    bring_in = room.bring_in

    def slow(fd: int, position: int, size: int) -> None:
        begun.set()
        go_on.wait(60)
        bring_in(fd, position, size)

    monkeypatch.setattr(room, "bring_in", slow)
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


def test_a_file_that_is_not_open_or_whose_disk_refuses_goes_without(
    file: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.release()
    file.make_room(SIZE)
    assert len(on_disk(file)) == 5

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(room, "bring_in", full)
    file.append(b"!")
    file.make_room(SIZE)
    file.append(b"!")
    assert on_disk(file) == b"first!!"


def test_strain_is_felt_for_a_while_after_somebody_was_held_back() -> None:
    now = [100.0]
    strain = Strain(lambda: now[0])

    def felt_after(seconds: float) -> bool:
        strain.note(now[0] - seconds)
        return strain.is_felt

    assert [felt_after(seconds) for seconds in (HELD_SECONDS_MIN / 2, 2 * HELD_SECONDS_MIN, 0.0)] == [False, True, True]
    now[0] += STRAINED_SECONDS
    assert not felt_after(0.0)
