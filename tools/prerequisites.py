"""What the tests need beside Python, and what this machine lacks of it.

One list, asked twice: tools/run_tests.py says the lacks first and last, tests/conftest.py skips the tests that carry
the marker of one. Nothing here is needed for `make demo`.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

ASK_SECONDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A program outside Python; tests that need it carry `marker`."""

    marker: str
    name: str
    remedy: str
    is_here: Callable[[], bool]


def answer(*command: str) -> str:
    """The text that a program prints about itself; empty where it is not there or fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ASK_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout + ran.stderr if ran.returncode == 0 else ""


def at_least(pattern: str, wanted: tuple[int, ...], *command: str) -> bool:
    """Whether the program has the wanted version or a newer one."""
    found = re.search(pattern, answer(*command))
    return found is not None and tuple(int(part) for part in found.groups()) >= wanted


def jdk_is_here() -> bool:
    """Whether there are a compiler of Java 17 or newer, and Maven or the jars it would fetch."""
    from tools.kafka_jars import is_fetched

    return at_least(r"javac (\d+)", (17,), "javac", "-version") and (is_fetched() or shutil.which("mvn") is not None)


def spark_is_here() -> bool:
    """Whether there are Java 17 or newer, and Spark or Maven, which fetches the jars that pip does not."""
    from tools.spark_home import is_fetched

    return at_least(r'version "(\d+)', (17,), "java", "-version") and (is_fetched() or shutil.which("mvn") is not None)


def node_is_here() -> bool:
    """Whether there is Node.js with its package manager."""
    return at_least(r"v(\d+)\.(\d+)", (20, 19), "node", "--version") and shutil.which("npm") is not None


def go_is_here() -> bool:
    """Whether there is the Go tool chain."""
    return at_least(r"go(\d+)\.(\d+)", (1, 24), "go", "version")


def kubernetes_is_here() -> bool:
    """Whether there are Kubernetes' programs, or Go to build them; and openssl, for the API server's certificate."""
    from tools.kube.programs import FOR_TESTS, are_here

    return (are_here(*FOR_TESTS) or go_is_here()) and shutil.which("openssl") is not None


def s3_is_here() -> bool:
    """Whether there is the S3 server, or Go to build it."""
    from tools.s3.program import SERVER

    return SERVER.is_here() or at_least(r"go(\d+)\.(\d+)", (1, 25), "go", "version")


def kcat_is_here() -> bool:
    """Whether there is kcat, or apt to take Debian's package from."""
    return any(shutil.which(program) for program in ("kcat", "kafkacat", "apt-get"))


def promtool_is_here() -> bool:
    """Whether there is Prometheus' checker, or apt to take Debian's package from."""
    return any(shutil.which(program) for program in ("promtool", "apt-get"))


def lua_is_here() -> bool:
    """Whether there is Lua 5.1, or apt to take Debian's package from."""
    return any(shutil.which(program) for program in ("lua5.1", "apt-get"))


def chromium_is_here() -> bool:
    """Whether there is Chromium, or apt to take Debian's package from."""
    programs = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "apt-get")
    return any(shutil.which(program) for program in programs)


def root_is_here() -> bool:
    """Whether the process runs as root."""
    return os.geteuid() == 0


ALL = (
    Prerequisite("java", "JDK 17", "install a JDK 17 or newer and Maven", jdk_is_here),
    Prerequisite("spark", "Spark", "install Java 17 or newer and Maven; pip fetches Spark itself", spark_is_here),
    Prerequisite("go", "Go 1.24", "install Go 1.24 or newer", go_is_here),
    Prerequisite("kube", "Kubernetes", "install Go 1.24 or newer, and openssl", kubernetes_is_here),
    Prerequisite("s3", "S3 server", "install Go 1.25 or newer, which builds one", s3_is_here),
    Prerequisite("node", "Node.js 20.19", "install Node.js 20.19 or newer with npm", node_is_here),
    Prerequisite("kcat", "kcat", "install kcat, for example Debian's package of that name", kcat_is_here),
    Prerequisite("promtool", "promtool", "install Debian's package prometheus", promtool_is_here),
    Prerequisite("lua", "Lua 5.1", "install Debian's package lua5.1", lua_is_here),
    Prerequisite("chromium", "Chromium", "install Debian's package chromium", chromium_is_here),
    Prerequisite("root", "root", "run as root", root_is_here),
)


@functools.cache
def lacking() -> tuple[Prerequisite, ...]:
    """Prerequisites that this machine lacks."""
    return tuple(wanted for wanted in ALL if not wanted.is_here())
