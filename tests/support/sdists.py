"""Fetches source archives of projects for the tests that they bring, by version and hash of the lock file."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

from tools.cache import cache

LOCK = Path(__file__).parents[2] / "requirements" / "lock.txt"
FETCH_SECONDS_MAX = 300


def unpacked(project: str, directory: Path) -> Path:
    """Unpack the source archive of a project into a directory; returns its root there."""
    with tarfile.open(_fetched(project)) as archive:
        archive.extractall(directory, filter="data")
    (root,) = directory.iterdir()
    return root


def _fetched(project: str) -> Path:
    """The archive in the cache, which pip has compared with its hash."""
    pinned = re.search(rf"^{re.escape(project)}==(\S+).*(?:\n    .*)*", LOCK.read_text(), re.MULTILINE)
    assert pinned is not None, f"{project} is not in {LOCK.name}"
    home = cache("sdists", f"{project}-{pinned[1]}")
    if not (found := list(home.glob("*.tar.gz"))):
        wanted = home / "requirements.txt"
        wanted.write_text(f"{pinned[0]}\n")
        line = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        line += ["--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "-r", str(wanted), "-d", str(home)]
        subprocess.run(line, check=True, timeout=FETCH_SECONDS_MAX)
        found = list(home.glob("*.tar.gz"))
    (archive,) = found
    return archive
