"""`python -m e2e [--keep] [--images NAMES] [PYTEST...]`: build images, start the cluster, run the tests, end it.

--keep           leaves the cluster there, and the next run goes on with it; python -m e2e.cluster down ends it
--images NAMES   builds these alone, of broker,operator,audit,audit-spark,former; only the test of an upgrade needs the
                 last, which is of an earlier commit
e2e/FILE         that file alone; all tests of e2e where none is named
PYTEST...        more words for pytest, such as -k secured or -x
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e import earlier_commit, images
from e2e.cluster import CLUSTER
from e2e.clusters.kubernetes import Kubernetes

KEEP, IMAGES = "--keep", "--images"
FORMER = "former"
HELP = {"-h", "--help"}


def pytest_words(words: Sequence[str]) -> list[str]:
    """What pytest is told: words of its own, and all tests of `e2e` where none of them names a file of it."""
    named = words.index(IMAGES) if IMAGES in words else len(words)
    own = [word for word in (*words[:named], *words[named + 2 :]) if word != KEEP]
    where = [] if any(word.startswith("e2e/") for word in own) else ["e2e"]
    return ["-q", "-p", "no:randomly", *where, *own]


def wanted_images(words: Sequence[str]) -> list[str]:
    """The images to build: all of them where none is named. Raises SystemExit where one has no such name."""
    known = [*images.TARGETS, FORMER]
    if IMAGES not in words:
        return known
    named = [*words, ""][words.index(IMAGES) + 1].split(",")
    if strangers := [name for name in named if name not in known]:
        raise SystemExit(f'error: {IMAGES} names "{strangers[0]}"; write some of {",".join(known)}')
    return named


def main(
    words: Sequence[str],
    cluster: Kubernetes = CLUSTER,
    build: Callable[[Sequence[str]], None] = images.build_all,
) -> int:
    """Bring the cluster up, run the tests, take it down; pytest's exit code."""
    if HELP & set(words):
        print(__doc__.rstrip())
        return 0
    wanted = wanted_images(words)
    build([target for target in images.TARGETS if target in wanted])
    if FORMER in wanted:
        earlier_commit.build_former()
    try:
        cluster.up()
        line = [sys.executable, "-m", "pytest", *pytest_words(words)]
        return subprocess.run(line, cwd=Path(__file__).parents[1], check=False).returncode
    finally:
        if KEEP not in words:
            cluster.down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
