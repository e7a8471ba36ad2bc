"""Names of directories where tables can stand: deltalake and Spark take names apart as URLs, and DuckDB as patterns."""

import re
from pathlib import Path
from typing import Final

from kavka_audit.lake.directory import LakeError

UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f\[\]^|\\*?#\ud800-\udfff]|%[0-9A-Fa-f]{2}")
"""What deltalake refuses, or panics at, or takes for an encoded character of another directory; and DuckDB's patterns.
Behind `#` is another file to delta-spark. Surrogates are bytes that are no UTF-8.
"""


def check_directory(directory: Path) -> None:
    """Raise LakeError where tables cannot stand in a directory, because of its name."""
    for path in (directory.absolute(), directory.resolve()):
        if found := UNUSABLE.search(str(path)):
            raise LakeError(
                f"{str(path)!r} has {found.group()!r} in its name, with which Delta tables cannot stand there; choose"
                " another directory"
            )
