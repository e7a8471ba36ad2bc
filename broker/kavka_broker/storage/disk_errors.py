"""What an error of the operating system says about a disk."""

import errno
from typing import Final

from kavka_broker.protocol.errors import BrokerError, ErrorCode

# The disk is well, but has no room, or the processes' share of something is used up just now.
_PASSING: Final = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class NotAFile(BrokerError):
    """What has the name of a file is a link, a pipe or another thing that is not ours. A link would have what
    it names read or cut as ours, and a pipe would have its reader wait for good.
    """

    def __init__(self, path: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} is no regular file; remove it, or put the file there")


def is_passing(problem: OSError) -> bool:
    """Whether the same call may succeed later, because nothing is wrong with the disk."""
    return problem.errno in _PASSING


def is_out_of_files(problem: OSError) -> bool:
    """Whether there was no descriptor to open a file with, so that the file was not touched."""
    return problem.errno in (errno.EMFILE, errno.ENFILE)
