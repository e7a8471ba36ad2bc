"""`rdkafka_performance`, built once into the user's cache.

librdkafka's own load generator is the fastest client there is, so it is the one that finds the broker's ceiling. No
package ships the program. The library's sources are inside the npm package of Confluent's JavaScript client; its
examples, which that copy leaves out, are inside the crate `rdkafka-sys`. Both are pinned, and the directory in the
cache is named after them, so that a new pin builds another.
"""

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tools.cache import cache_home

LIBRARY_PACKAGE, LIBRARY_VERSION = "@confluentinc/kafka-javascript", "1.10.1"
EXAMPLES_CRATE, EXAMPLES_VERSION = "rdkafka-sys", "4.10.0"
BUILD = f"rdkafka-performance-{LIBRARY_VERSION}-{EXAMPLES_VERSION}"
TOOLS_NEEDED = ("npm", "cargo", "gcc", "g++", "make")


class BuildError(RuntimeError):
    """The machine lacks what the build needs, or the build failed."""


def program() -> Path:
    """The program, built now if it is not there yet (about a minute)."""
    built = cache_home() / "kavka-kafka" / BUILD / "rdkafka_performance"
    if not built.exists():
        lacking = [tool for tool in TOOLS_NEEDED if shutil.which(tool) is None]
        if lacking:
            raise BuildError(f"rdkafka_performance cannot be built: install {', '.join(lacking)}")
        built.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="rdkafka-") as scratch:
            _build(Path(scratch), built)
    return built


def _build(scratch: Path, built: Path) -> None:
    library = _unpack_library(scratch)
    example = _find_example(scratch)
    _call(["./configure", "--disable-curl", "--disable-sasl"], library)
    _call(["make", "-j2", "-C", "src", "librdkafka.a"], library)
    made = scratch / built.name
    include, archive = library / "src", library / "src" / "librdkafka.a"
    _call(["gcc", "-O2", f"-I{include}", str(example), "-o", str(made), str(archive), *_libraries(library)], scratch)
    # A rename is whole or not at all; the copy beside the target makes it one within a file system.
    beside = built.with_suffix(".new")
    shutil.copy2(made, beside)
    beside.rename(built)


def _unpack_library(scratch: Path) -> Path:
    _call(["npm", "pack", "--silent", f"{LIBRARY_PACKAGE}@{LIBRARY_VERSION}"], scratch)
    package = next(scratch.glob("*.tgz"))
    with tarfile.open(package) as archive:
        archive.extractall(scratch, filter="data")
    return scratch / "package" / "deps" / "librdkafka"


def _find_example(scratch: Path) -> Path:
    """The program's source, out of the crate; vendoring puts the crate where we say, whatever cargo's home is."""
    project = scratch / "crate"
    _call(["cargo", "init", "--quiet", "--name", "borrow", str(project)], scratch)
    _call(["cargo", "add", "--quiet", f"{EXAMPLES_CRATE}@={EXAMPLES_VERSION}"], project)
    _call(["cargo", "vendor", "--quiet", "vendored"], project)
    return next(project.glob("vendored/rdkafka-sys*/librdkafka/examples/rdkafka_performance.c"))


def _libraries(library: Path) -> list[str]:
    """What the configured library links against, in the order its makefile gives."""
    lines = (library / "Makefile.config").read_text().splitlines()
    return [word for line in lines if line.startswith("LIBS") for word in line.partition("=")[2].split()]


def _call(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, check=False)
    if done.returncode != 0:
        output = (done.stdout + done.stderr).decode(errors="replace")
        raise BuildError(f"{' '.join(command)} ended with {done.returncode}:\n{output[-2000:]}")
