"""Programs in Go that tests use: built once from a module of the project that pins them, and kept in the cache.

The cache knows a build by the version of the program and by a checksum of the files that pin it.
"""

import fcntl
import hashlib
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.cache import cache, cache_home
from tools.kube.programs import BUILD_SECONDS_MAX, NoModulesError, environment


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A program below `module`/cmd. `home` has go.mod and go.sum, `room` is its part of the cache."""

    name: str
    module: str
    home: Path
    room: str
    uses_c: bool = False  # parts of it are compiled by the machine's C compiler

    def path(self) -> Path:
        """Return the path of the program, which is built where it is not there yet. Raises NoModulesError."""
        path = self._built() / self.name
        if not path.exists():
            with (cache(self.room) / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not path.exists():
                    self._build()
        return path

    def is_here(self) -> bool:
        """Whether the program has been built."""
        return (self._built() / self.name).exists()

    def _built(self) -> Path:
        """Return the directory of the build, whether it is there or not."""
        pins = [(self.home / name).read_bytes() for name in ("go.mod", "go.sum")]
        found = re.search(rf"^\s*{self.module} (v[0-9.]+)", pins[0].decode(), re.MULTILINE)
        assert found is not None, f"go.mod requires no {self.module}"
        return cache_home() / "kavka" / self.room / f"{found[1]}-{hashlib.sha256(b''.join(pins)).hexdigest()[:16]}"

    def _build(self) -> None:
        """Build the program, and its directory appears as a whole. Raises NoModulesError."""
        target, package = self._built(), f"{self.module}/cmd/{self.name}"
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            directory = Path(scratch) / "bin"
            ran = subprocess.run(
                ["nice", "go", "build", "-ldflags", "-s -w", "-o", f"{directory}/{self.name}", package],
                cwd=self.home,
                env=environment() | ({"CGO_ENABLED": "1"} if self.uses_c else {}),
                check=False,
                capture_output=True,
                text=True,
                timeout=BUILD_SECONDS_MAX,
            )
            if ran.returncode != 0:
                raise NoModulesError(f"Go cannot build {self.module}: {ran.stderr.strip()}")
            directory.rename(target)
