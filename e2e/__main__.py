"""`python -m e2e [--keep] [PYTEST...]`: build the images, start the node, run the tests, and end the node.

--keep      leaves the node there; python -m e2e.cluster down ends it
e2e/FILE    that file alone; all tests of e2e where none is named
PYTEST...   more words for pytest, such as -k secured or -x
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e import cluster, former, images

KEEP = "--keep"
HELP = {"-h", "--help"}


def pytest_words(words: Sequence[str]) -> list[str]:
    """What pytest is told: words of its own, and all tests of `e2e` where none of them names a file of it."""
    own = [word for word in words if word != KEEP]
    where = [] if any(word.startswith("e2e/") for word in own) else ["e2e"]
    return ["-q", "-p", "no:randomly", *where, *own]


def main(words: Sequence[str]) -> int:
    """Bring the node up, run the tests, take it down; pytest's exit code."""
    if HELP & set(words):
        print(__doc__.rstrip())
        return 0
    images.build_all()
    former.build_former()
    try:
        cluster.up()
        line = [sys.executable, "-m", "pytest", *pytest_words(words)]
        return subprocess.run(line, cwd=Path(__file__).parents[1], check=False).returncode
    finally:
        if KEEP not in words:
            cluster.down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
