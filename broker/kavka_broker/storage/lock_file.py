"""A POSIX lock on a file, the kind that Java takes too, so that Kafka and Kavka keep each other out."""

import fcntl
import os
from typing import Protocol

from kavka_broker.storage.file_modes import FILE_MODE


class Lock(Protocol):
    """A lock that other processes respect."""

    def release(self) -> None: ...


class LockFile:
    """The lock, while this process holds it."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise

    def release(self) -> None:
        os.close(self._fd)
