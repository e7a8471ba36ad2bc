"""The disks of the nodes: small real ones, that fill up, fail, lose power and go away.

In namespaces of our own each log directory is an ext4 file system of a few hundred MiB, on a loop device over a sparse
file in memory. `fill` leaves no byte of it; `fail` shuts it down as the kernel does after an error of the medium, so
that every call ends with EIO. Mounted again it replays its journal, and what was not synced is gone, as after a loss of
power. `hide` takes it away: what is left is an empty mount point, or a loop of links.

Without namespaces a log directory is a plain directory, and none of this can be done.
"""

import contextlib
import fcntl
import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.chaos.network import MARK, run

DISK_MIB: Final = 768
BALLAST: Final = "ballast"
PIECES: Final = (64 * 1024 * 1024, 1024 * 1024, 4096)
#: EXT4_IOC_SHUTDOWN, and its flag that even the journal is not written.
SHUTDOWN: Final = 0x8004587D
WITHOUT_JOURNAL: Final = 2


def in_memory(root: Path) -> None:
    """Keep the files of all disks in memory: a sync is not to wait for the disk of this machine."""
    if os.environ.get(MARK):
        run("mount", "-t", "tmpfs", "tmpfs", str(root))


def leave(root: Path) -> None:
    """Let go of the memory."""
    if os.environ.get(MARK):
        run("umount", "--lazy", str(root))


@dataclass(slots=True)
class Disk:
    """One log directory, `data`, on a file system of its own where that is possible."""

    path: Path
    image: Path
    is_own: bool = False
    is_failing: bool = False
    is_hidden: bool = False

    @property
    def data(self) -> Path:
        return self.path / "data"

    def make(self) -> None:
        self.path.mkdir(parents=True)
        if not os.environ.get(MARK):
            return
        with self.image.open("wb") as image:
            image.truncate(DISK_MIB * 1024 * 1024)
        run("mkfs.ext4", "-q", "-F", "-m", "0", str(self.image))
        self._mount()
        self.is_own = True

    def close(self) -> None:
        if self.is_own and not self.is_hidden:
            self._unmount()

    # --- room ---------------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Leave no byte."""
        with (self.path / BALLAST).open("ab", buffering=0) as ballast:
            for piece in PIECES:
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(ballast.fileno(), os.fstat(ballast.fileno()).st_size, piece)

    def make_room(self) -> None:
        if self.is_own and not self.is_hidden:
            (self.path / BALLAST).unlink(missing_ok=True)

    # --- errors -------------------------------------------------------------------------------------------------

    def fail(self) -> None:
        """From now on every call on it ends with EIO; what was not synced is lost."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", WITHOUT_JOURNAL))
        finally:
            os.close(directory)
        self.is_failing = True

    def hide(self, *, by_a_loop: bool) -> None:
        """Take it away: nothing is mounted, or its place is a link to itself. Nobody may use it meanwhile."""
        self._unmount()
        self.is_hidden = True
        if by_a_loop:
            self.data.symlink_to(self.data)

    def mend(self) -> None:
        """Make it what it was. Nobody may use it meanwhile."""
        if self.is_hidden:
            if self.data.is_symlink():
                self.data.unlink()
            shutil.rmtree(self.data, ignore_errors=True)
            self._mount()
        elif self.is_failing:
            self._unmount()
            self._mount()
        self.is_hidden = self.is_failing = False

    def _mount(self) -> None:
        run("mount", "-o", "loop,noatime", str(self.image), str(self.path))

    def _unmount(self) -> None:
        run("umount", str(self.path))
