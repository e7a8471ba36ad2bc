"""A file of entries, the newest of which wait in memory until they are written out.

A thread may sync while the loop appends; the lock covers the moment in which entries move from memory to the file.
"""

import threading

from kavka_broker.storage.disk import Disk, File


class EntryFile:
    """Common part of a segment's indexes. `_file` is None where there is no file before the first entry."""

    __slots__ = ("_disk", "_file", "_is_closed", "_lock", "_pending", "path")

    def __init__(self, disk: Disk, path: str, file: File | None) -> None:
        self.path = path
        self._disk = disk
        self._file = file
        self._pending = bytearray()
        self._is_closed = False
        self._lock = threading.Lock()

    def spill(self) -> None:
        """Write out the entries that wait in memory. Raises OSError, and then they wait on."""
        with self._lock:
            ready = bytes(self._pending)
            if not ready or self._is_closed:
                return
            if self._file is None:
                self._file = self._disk.open(self.path)
            self._file.append(ready)
            self._stored_more(len(ready))
            assert len(self._pending) >= len(ready)
            del self._pending[: len(ready)]

    def _stored_more(self, size_bytes: int) -> None:
        """Note that so many bytes were written out."""

    def _try_spill(self) -> None:
        # The batches of these entries are in the log already: the entries just wait on.
        try:
            self.spill()
        except OSError:
            return

    def sync(self) -> None:
        self.spill()
        if self._file is not None:
            self._file.sync()

    def release(self) -> None:
        """Close the descriptor; an index that is looked up rarely need not hold one."""
        # Under the lock: a descriptor that is closed under a thread's write may be another file's by then.
        with self._lock:
            if self._file is not None:
                self._file.release()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                self._file.close()
