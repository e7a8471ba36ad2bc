"""A disk of the operating system that a test fills: what would take room then fails with ENOSPC.

As of a real full disk, what is there stays readable, and files may be cut, renamed and removed. Nothing is written to
fill it, so that no other program of the machine is short of room.
"""

import errno
import os
from typing import Final, NoReturn

from kavka_broker.storage.disk import Buffer, RealDisk, RealFile
from kavka_broker.storage.writeback_throttling import Strain

__all__: Final = ("FillableDisk",)


class FillableDisk(RealDisk):
    """The files of a broker in a test."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False

    def check(self, path: str) -> None:
        """Raise OSError where there is no room."""
        if self.is_full:
            no_room(path)

    def open(self, path: str) -> "FillableFile":
        if not os.path.exists(path):
            self.check(path)
        return FillableFile(path, self, self._strain)

    def make_directory(self, path: str) -> None:
        if not os.path.isdir(path):
            self.check(path)
        super().make_directory(path)

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.check(path)
        super().write_file(path, data, durable=durable)

    def space(self, path: str) -> tuple[int, int]:
        total, free = super().space(path)
        return total, 0 if self.is_full else free


class FillableFile(RealFile):
    """A file on such a disk."""

    __slots__ = ("_disk",)

    def __init__(self, path: str, disk: FillableDisk, strain: Strain) -> None:
        self._disk = disk
        super().__init__(path, strain=strain)

    def append(self, piece: Buffer) -> None:
        self._disk.check(self.path)
        super().append(piece)

    def make_room(self, size: int) -> None:
        if not self._disk.is_full:
            super().make_room(size)


def no_room(path: str) -> NoReturn:
    """Raise the error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
