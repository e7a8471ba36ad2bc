"""Programs outside Python: Apache Kafka's tools, kcat, promtool, Node.js clients.

Each is fetched once into the cache, by version, and verified; nothing is installed into the machine.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.tool_runner import SHARED, tool_in_jvm
from tools.cache import cache
from tools.ktool import command
from tools.kube.programs import BUILD_SECONDS_MAX, environment

RUN_SECONDS_MAX = 120
FETCH_SECONDS_MAX = 300
SHELL_TRIES_MAX = 40
SHELL_SECONDS_MAX = 20
OPTIONS_OF_JVMS = "JAVA_TOOL_OPTIONS"  # read by a JVM when it starts: a test that sets it needs one of its own


def run(
    line: list[str],
    *,
    stdin: str = "",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    seconds_max: float = RUN_SECONDS_MAX,
) -> str:
    """What a program writes to stdout; an AssertionError with all it wrote when it fails."""
    ran = subprocess.run(
        line, input=stdin, capture_output=True, text=True, check=False, timeout=seconds_max, env=env, cwd=cwd
    )
    assert ran.returncode == 0, f"{line[0]} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def kafka_tool(name: str, *arguments: str, stdin: str = "") -> str:
    """Run one of Apache Kafka's tools: in a JVM that all tests of this process share, where the tool may."""
    if name in SHARED and OPTIONS_OF_JVMS not in os.environ:
        ended = tool_in_jvm(name, *arguments, stdin=stdin, seconds_max=RUN_SECONDS_MAX)
        if ended is not None:
            assert ended.status == 0, f"{name} ended with {ended.status}\n{ended.stdout}\n{ended.stderr}"
            return ended.stdout
    return run(command(name, *arguments), stdin=stdin)


def metadata_shell(file: Path, *arguments: str, shows: Callable[[str], bool]) -> None:
    """Kafka's shell runs a command once it has applied anything at all, on a busy machine only the file's beginning.
    Now and then it applies nothing, and waits.
    """
    said = ""
    for _ in range(SHELL_TRIES_MAX):
        with suppress(subprocess.TimeoutExpired):
            line = command("metadata-shell", "--snapshot", str(file), *arguments)
            said = run(line, seconds_max=SHELL_SECONDS_MAX)
        if shows(said):
            return
    raise AssertionError(f"{arguments} never shows what it should, but {said!r}")


def kcat(*arguments: str, stdin: str = "") -> str:
    """Run kcat: the machine's own, or Debian's package unpacked in the cache."""
    if installed := shutil.which("kcat") or shutil.which("kafkacat"):
        return run([installed, *arguments], stdin=stdin)
    root = debian("kcat", "librdkafka1", "libyajl2")  # the two libraries are those that a bare system lacks
    libraries = ":".join(str(path) for path in root.glob("usr/lib/*"))
    return run([str(root / "usr/bin/kcat"), *arguments], stdin=stdin, env={**os.environ, "LD_LIBRARY_PATH": libraries})


def lua(script: str) -> str:
    """What a script of Lua 5.1 writes: by the machine's own, or Debian's package unpacked in the cache."""
    return run([shutil.which("lua5.1") or str(debian("lua5.1") / "usr/bin/lua5.1"), "-"], stdin=script)


def promtool(*arguments: str, stdin: str = "") -> str:
    """Run Prometheus' checker."""
    return run([of_prometheus("promtool"), *arguments], stdin=stdin)


def of_prometheus(name: str) -> str:
    """Where `prometheus` or `promtool` is: the machine's own, or that of Debian's package unpacked in the cache."""
    return shutil.which(name) or str(debian("prometheus") / "usr/bin" / name)


def debian(*packages: str, has_libraries: bool = False) -> Path:
    """Where these packages of Debian lie, unpacked and not installed. The first one names them in the cache. With
    `has_libraries` what they need and this machine lacks lies there too.
    """
    home = cache(packages[0])
    root = home / "root"
    if not root.exists():
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            download(packages, Path(scratch), has_libraries=has_libraries)
            target = Path(scratch) / "root"
            for package in sorted(Path(scratch).glob("*.deb")):
                subprocess.run(["dpkg-deb", "-x", str(package), str(target)], check=True)
            target.rename(root)
    return root


def download(packages: Sequence[str], directory: Path, *, has_libraries: bool = False) -> None:
    """Fetch packages, with lists of our own: a new machine has none, and an old one's name what is gone."""
    lists = directory / "lists"
    (lists / "partial").mkdir(parents=True)

    def apt(*words: str) -> str:
        line = ["apt-get", "-q", "-o", f"Dir::State::Lists={lists}", *words]
        ran = subprocess.run(line, cwd=directory, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX)
        return ran.stdout

    apt("update")
    if has_libraries:
        planned = apt("install", "--simulate", "--no-install-recommends", *packages)
        packages = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
    apt("download", *packages)


NODE = Path(__file__).parents[1] / "conformance/clients/node"


def node_modules(place: Path = NODE) -> Path:
    """The packages of the lock file of a place, installed in the cache by `npm ci` without running their scripts."""
    lock = (place / "package-lock.json").read_bytes()
    home = cache("node", hashlib.sha256(lock).hexdigest()[:16])
    if not (home / "complete").exists():
        for name in ("package.json", "package-lock.json"):
            shutil.copy(place / name, home)
        install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(install, cwd=home, check=True, capture_output=True, timeout=FETCH_SECONDS_MAX)
        (home / "complete").touch()
    return home / "node_modules"


def node(script: str, *arguments: str) -> str:
    """Run a script of tests/conformance/clients/node; it sees the packages as if they lay beside it."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(NODE / script, scratch)
        (Path(scratch) / "node_modules").symlink_to(node_modules())
        return run(["node", str(Path(scratch) / script), *arguments])


GO = Path(__file__).parents[1] / "conformance/clients/go"


def go_clients() -> Path:
    """The program of tests/conformance/clients/go, built in the cache once for each state of its files."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(GO.iterdir()))).hexdigest()
    program = cache("go-clients", digest[:16]) / "clients"
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
            made = Path(scratch) / "clients"
            line = ["nice", "go", "build", "-ldflags", "-s -w", "-o", str(made), "."]
            built = subprocess.run(
                line, cwd=GO, env=environment(), check=False, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX
            )
            assert built.returncode == 0, built.stderr
            made.rename(program)
    return program
