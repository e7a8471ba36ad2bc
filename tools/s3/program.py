"""Where the S3 server is: in the cache, built there once, which takes about a minute of a processor and 45 MB.

The cache knows a build by the version of the server and by a checksum of the files that pin it.
"""

import fcntl
import hashlib
import re
import subprocess
import tempfile
from functools import cache as once
from pathlib import Path

from tools.cache import cache, cache_home
from tools.kube.programs import BUILD_SECONDS_MAX, NoModulesError, environment

MODULE = Path(__file__).parent / "go"
SERVER = "github.com/versity/versitygw"


def program() -> Path:
    """The path of the server, which is built where it is not there yet. Raises NoModulesError."""
    path = built() / "versitygw"
    if not path.exists():
        with (cache("s3") / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                build(built())
    return path


def is_here() -> bool:
    """Whether the server has been built."""
    return (built() / "versitygw").exists()


@once
def built() -> Path:
    """The directory of the build, whether it is there or not."""
    pins = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    found = re.search(rf"^\s*{SERVER} (v[0-9.]+)", pins[0].decode(), re.MULTILINE)
    assert found is not None, f"go.mod requires no {SERVER}"
    return cache_home() / "kavka" / "s3" / f"{found[1]}-{hashlib.sha256(b''.join(pins)).hexdigest()[:16]}"


def build(target: Path) -> None:
    """Build the server, and its directory appears as a whole. Raises NoModulesError."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        directory = Path(scratch) / "bin"
        line = ["nice", "go", "build", "-ldflags", "-s -w", "-o", f"{directory}/versitygw", f"{SERVER}/cmd/versitygw"]
        ran = subprocess.run(
            line, cwd=MODULE, env=environment(), check=False, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX
        )
        if ran.returncode != 0:
            raise NoModulesError(f"Go cannot build {SERVER}: {ran.stderr.strip()}")
        directory.rename(target)
