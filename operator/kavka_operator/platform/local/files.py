"""Small files that are either there as a whole or not at all, and locks that end with their process."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, text: str, mode: int = 0o666) -> None:
    """Replace a file in one step; a reader sees the old text or the new one. `mode` is that of a new file."""
    with _draft(path, text, mode) as draft:
        draft.replace(path)


def write_secret(path: Path, text: str, *, is_new: bool = False) -> None:
    """Replace a file in one step, as one that this user alone can read. With `is_new` there must be none yet: raises
    FileExistsError.
    """
    with _draft(path, text, 0o600) as draft:
        if is_new:
            path.hardlink_to(draft)
        else:
            draft.replace(path)


@contextmanager
def _draft(path: Path, text: str, mode: int) -> Generator[Path]:
    """A file with the text beside the one at `path`; it does not outlast the block."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def read_text(path: Path) -> str | None:
    """The text of a file, or None where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


class Lock:
    """An exclusive lock on a file. The kernel lets go of it when the process ends, however that happens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self, *, wait: bool = False) -> bool:
        """Take the lock; whether it is ours now."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_held_elsewhere(self) -> bool:
        """Whether another process holds the lock now."""
        if not self._path.exists():
            return False
        if self.take():
            self.release()
            return False
        return True


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock at `path` for the time of the block."""
    lock = Lock(path)
    lock.take(wait=True)
    try:
        yield
    finally:
        lock.release()
