"""Whether the kernel holds writers back: a rule over what was seen, and what the kernel tells."""

import os
from collections.abc import Sequence

import pytest

from kavka_broker.storage.strain import (
    HELD_SECONDS_MIN,
    LOOK_SECONDS,
    STRAINED_SECONDS,
    DirtyPages,
    Seen,
    Strain,
    count_dirty_pages,
    is_strained,
    of_group,
    of_machine,
    own_group,
)

FEW, MANY = DirtyPages(79, 100), DirtyPages(80, 100)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("waited_seconds", [0.0, HELD_SECONDS_MIN, 1.0])
def test_whoever_waited_while_few_pages_are_dirty_was_not_held_back(before: bool, waited_seconds: float) -> None:
    assert not is_strained(before, Seen(waited_seconds, 0.0, [FEW]))
    assert not is_strained(before, Seen(waited_seconds, 0.0, [FEW, FEW]))


@pytest.mark.parametrize("pages", [[MANY], [FEW, MANY], [MANY, FEW], []])
def test_strain_begins_with_a_write_that_waited_and_ends_when_none_has_for_long(pages: list[DirtyPages]) -> None:
    assert is_strained(False, Seen(HELD_SECONDS_MIN, 0.0, pages))
    assert not is_strained(False, Seen(HELD_SECONDS_MIN / 2, 0.0, pages))
    assert is_strained(True, Seen(0.0, STRAINED_SECONDS / 2, pages))
    assert not is_strained(True, Seen(0.0, STRAINED_SECONDS, pages))


class Scene:
    """A clock, a processor's time, and dirty pages, set by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.worked = 0.0
        self.pages: Sequence[DirtyPages] = [MANY]
        self.counts = 0
        self.strain = Strain(lambda: self.now, lambda: self.worked, self.count)

    def count(self) -> Sequence[DirtyPages]:
        self.counts += 1
        return self.pages

    def write(self, seconds: float, worked: float = 0.0) -> bool:
        """A large write that takes so long, and so much of it on a processor; whether there is strain then."""
        began = self.strain.begin()
        self.now += seconds
        self.worked += worked
        self.strain.note(began)
        return self.strain.is_felt


def test_time_on_a_processor_is_no_waiting() -> None:
    scene = Scene()
    assert not scene.write(10.0, worked=10.0)
    assert scene.counts == 0
    assert scene.write(0.02, worked=0.001)


def test_strain_is_left_as_soon_as_few_pages_are_dirty() -> None:
    scene = Scene()
    assert scene.write(0.02)
    scene.pages = [FEW]
    assert scene.write(0.0), "the next look is yet to come"
    scene.now += LOOK_SECONDS
    assert not scene.strain.is_felt
    assert not scene.write(0.02)


def test_pages_are_counted_now_and_then_only() -> None:
    scene = Scene()
    scene.pages = [FEW]
    for _ in range(100):
        scene.write(0.01)
    assert scene.counts <= 1 + 100 * 0.01 / LOOK_SECONDS


def test_what_the_machine_tells() -> None:
    lines = {"nr_dirty": 5, "nr_writeback": 2, "nr_dirty_threshold": 40, "nr_dirty_background_threshold": 20}
    assert of_machine(lines) == DirtyPages(7 * PAGE_BYTES, 30 * PAGE_BYTES)
    assert of_machine({"nr_dirty": 5}) is None
    assert all(pages.held_from_bytes > 0 for pages in count_dirty_pages())


def test_what_a_control_group_tells() -> None:
    lines = {"file_dirty": 30, "file_writeback": 20, "inactive_file": 150, "active_file": 250}
    assert of_group(lines, 1000, 400, 40, 20) == DirtyPages(50, 300)
    assert of_group(lines, 1000, 1400, 0, 0) == DirtyPages(50, 60)
    assert of_group({}, 1000, 400, 40, 20) is None


def test_the_control_group_of_this_process() -> None:
    assert own_group("4:memory:/old\n0::/system.slice/kavka.service\n") == "/system.slice/kavka.service"
    assert own_group("0::/\n") == ""
    assert own_group("4:memory:/old\n") is None
