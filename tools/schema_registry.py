"""A schema registry that others wrote: Apicurio's, fetched once by Maven and checked against its hash.

It answers the API of Confluent's registry below `PATH`, and keeps its schemas in memory. Tests decode by it.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from tools.cache import cache_home

VERSION: Final = "2.6.13.Final"
ARTIFACT: Final = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
ARCHIVE: Final = f"apicurio-registry-app-{VERSION}-all.tar.gz"
SHA256: Final = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
PATH: Final = "/apis/ccompat/v7"
JAR: Final = f"apicurio-registry-app-{VERSION}-runner.jar"
FETCH_SECONDS_MAX: Final = 900


def registry_jar() -> Path:
    """The jar that runs it, with its libraries beside it; fetched where it is not there yet. Raises SystemExit."""
    home = cache_home() / "kavka-registry" / VERSION
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            _fetch(Path(scratch))
            (Path(scratch) / "whole").rename(home)
    return home / JAR


def _fetch(scratch: Path) -> None:
    options = [f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={scratch}"]
    command = ["mvn", "-q", "-B", f"{PLUGIN}:copy", *options]
    subprocess.run(command, check=True, timeout=FETCH_SECONDS_MAX, stdout=sys.stderr)
    archive = scratch / ARCHIVE
    with archive.open("rb") as held:
        found = hashlib.file_digest(held, "sha256").hexdigest()
    if found != SHA256:
        raise SystemExit(f"error: {ARCHIVE} differs from what was pinned: {found}")
    with tarfile.open(archive) as packed:
        packed.extractall(scratch / "whole", filter="data")
