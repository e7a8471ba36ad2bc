"""What an error of the operating system says about a disk."""

import errno
from typing import Final

# The disk is well, but has no room, or the processes' share of something is used up just now.
_PASSING: Final = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def is_passing(problem: OSError) -> bool:
    """Whether the same call may succeed later, because nothing is wrong with the disk."""
    return problem.errno in _PASSING


def is_out_of_files(problem: OSError) -> bool:
    """Whether there was no descriptor to open a file with, so that the file was not touched."""
    return problem.errno in (errno.EMFILE, errno.ENFILE)
