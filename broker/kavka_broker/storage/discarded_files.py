"""Files of a log that are not wanted any more, until they are removed.

A rename to `.deleted` is cheap, and a start removes what has that name. The removal of a large file takes its time, and
is left to a thread.
"""

from errno import ENOSPC

from kavka_broker.logs import get
from kavka_broker.storage.disk import UNFINISHED_SUFFIXES, Disk
from kavka_broker.storage.file_names import DELETED

log = get("storage")

assert DELETED in UNFINISHED_SUFFIXES, "a start keeps what was discarded"


class DiscardedFiles:
    """Discarded files of one log. `remove` may run in a thread beside `add`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._paths: list[str] = []

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, path: str) -> None:
        """Take the file out of the log; a missing file is fine. Raises OSError."""
        assert not path.endswith(DELETED), path
        try:
            self._disk.rename(path, path + DELETED)
        except FileNotFoundError:
            return
        except OSError as problem:
            if problem.errno != ENOSPC:
                raise
            # A longer name may need room in the directory, which a full disk does not have.
            self._disk.remove(path)
        else:
            self._paths.append(path + DELETED)

    def remove(self) -> None:
        """Remove the files. Blocks."""
        paths, self._paths = self._paths, []
        assert all(path.endswith(DELETED) for path in paths), f"{paths} are not all discarded"
        for path in paths:
            try:
                self._disk.remove(path)
            except FileNotFoundError:
                continue
            except OSError as problem:
                log.warning("segment.not_removed", path=path, reason=str(problem))
                self._paths.append(path)
