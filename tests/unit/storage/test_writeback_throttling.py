"""Whether the kernel is about to hold writers back: counts of dirty pages, and what is written between them."""

import os
from collections.abc import Sequence

import pytest

from kavka_broker.storage.writeback_throttling import (
    LASTING_SECONDS,
    LOOK_SECONDS,
    STRAINED_LOOK_SECONDS,
    DirtyPages,
    Strain,
    count_dirty_pages,
    of_group,
    of_machine,
    own_group,
)

FEW, MANY = DirtyPages(79, 100), DirtyPages(80, 100)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Scene:
    """A clock and dirty pages, set by hand."""

    def __init__(self, *pages: DirtyPages) -> None:
        self.now = 100.0
        self.pages: Sequence[DirtyPages] = pages
        self.counts = 0
        self.strain = Strain(lambda: self.now, self.count)

    def count(self) -> Sequence[DirtyPages]:
        self.counts += 1
        return self.pages

    def after(self, seconds: float) -> bool:
        """Whether there is strain so much later."""
        self.now += seconds
        return self.strain.is_felt

    def lasts(self) -> bool:
        return self.strain.lasts


@pytest.mark.parametrize(
    ("pages", "is_felt"),
    [([FEW], False), ([FEW, FEW], False), ([MANY], True), ([FEW, MANY], True), ([MANY, FEW], True), ([], False)],
)
def test_strain_is_of_the_machine_or_of_the_group_and_unknown_where_the_kernel_does_not_tell(
    pages: list[DirtyPages], is_felt: bool
) -> None:
    scene = Scene(*pages)
    assert scene.after(0.0) is is_felt
    assert not scene.lasts()


def test_what_is_written_between_two_counts_uses_up_what_the_first_left() -> None:
    scene = Scene(DirtyPages(0, 1000))
    assert not scene.after(0.0)
    scene.strain.wrote(799)
    assert not scene.after(0.0)
    assert scene.counts == 1
    scene.strain.wrote(1)
    assert scene.after(0.0), "and it is counted again"
    assert not scene.after(STRAINED_LOOK_SECONDS), "all of it is on the disk"
    assert scene.counts == 2


def test_pages_are_counted_now_and_then_only() -> None:
    scene = Scene(FEW)
    for _ in range(200):
        scene.after(LOOK_SECONDS / 100)
    assert scene.counts <= 4
    scene.pages = [MANY]
    assert scene.after(LOOK_SECONDS)
    scene.counts = 0
    for _ in range(100):
        scene.after(STRAINED_LOOK_SECONDS / 10)
    assert scene.counts <= 12


def test_strain_lasts_where_no_count_was_without_it() -> None:
    scene = Scene(MANY)
    assert scene.after(0.0)
    assert scene.after(LASTING_SECONDS / 2)
    assert not scene.lasts()
    scene.pages = [FEW]
    assert not scene.after(LASTING_SECONDS / 4)
    scene.pages = [MANY]
    assert scene.after(LOOK_SECONDS)
    assert scene.after(LASTING_SECONDS * 0.9)
    assert not scene.lasts(), "it has begun again"
    assert scene.after(LASTING_SECONDS * 0.2)
    assert scene.lasts()
    scene.pages = [FEW]
    assert not scene.after(STRAINED_LOOK_SECONDS)
    assert not scene.lasts()


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
