"""The rights on what a broker writes: its user's, and for reading its group's.

Logs hold what clients wrote, and the metadata log the salted keys of SCRAM users: neither is for every user of a
machine. What is there already keeps the rights that it has.
"""

import os
from typing import Final

FILE_MODE: Final = 0o640
DIRECTORY_MODE: Final = 0o750


def opener(path: str, flags: int) -> int:
    """Open a file for the built-in `open` with these rights. No link is followed, and no pipe waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, FILE_MODE)
