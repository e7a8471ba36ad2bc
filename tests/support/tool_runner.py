"""Runs Apache Kafka's tools in one JVM: a JVM of its own costs each of them a second and a half of a processor.

`ToolRunner.java` calls the `main` of a tool as `java` would, with streams of its own, and takes its exit status where
it asks for its end. What a tool leaves in static fields stays for the next one. Tools that do not end by themselves, or
whose process is what is looked at, are run by `tools.ktool.command`.
"""

import atexit
import hashlib
import struct
import subprocess
import threading
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path
from typing import IO, Final

from tools.cache import cache
from tools.kafka_jars import class_path
from tools.ktool import CLASSES, jvm

SOURCE: Final = Path(__file__).with_name("ToolRunner.java")
#: Tools that end by themselves, and keep nothing that the next one would meet.
SHARED: Final = (
    "acls",
    "client-metrics",
    "cluster",
    "configs",
    "console-consumer",
    "console-producer",
    "consumer-groups",
    "delegation-tokens",
    "delete-records",
    "dump-log",
    "features",
    "get-offsets",
    "groups",
    "leader-election",
    "log-dirs",
    "metadata-quorum",
    "reassign-partitions",
    "share-groups",
    "streams-groups",
    "topics",
    "transactions",
)
HEAP: Final = "384M"
COMPILE_SECONDS_MAX: Final = 120
INT: Final = struct.Struct(">i")

_LOCK: Final = threading.Lock()
_running: "list[Runner]" = []


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a call of a tool."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Runner:
    """The JVM."""

    process: "subprocess.Popen[bytes]"

    def call(self, name: str, arguments: tuple[str, ...], stdin: str, seconds_max: float) -> Ended:
        """Run a tool. One that takes longer than it may is ended with the JVM: raises TimeoutError."""
        clock = threading.Timer(seconds_max, self.process.kill)
        clock.start()
        try:
            return self._call((CLASSES[name], *arguments), stdin)
        except (EOFError, BrokenPipeError) as error:
            self.end()
            raise TimeoutError(
                f"{name} {' '.join(arguments)}: the JVM is gone; it may take {seconds_max:g} s"
            ) from error
        finally:
            clock.cancel()

    def _call(self, words: tuple[str, ...], stdin: str) -> Ended:
        calls, answers = self.process.stdin, self.process.stdout
        assert calls is not None
        assert answers is not None
        calls.write(INT.pack(len(words)) + b"".join(map(framed, (*words, stdin))))
        calls.flush()
        (status,) = INT.unpack(taken(answers, INT.size))
        return Ended(status, text_of(answers), text_of(answers))

    def end(self) -> None:
        """End the JVM, and wait for it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def framed(text: str) -> bytes:
    """A text as the JVM reads it: its length in bytes before it."""
    encoded = text.encode()
    return INT.pack(len(encoded)) + encoded


def taken(stream: IO[bytes], count: int) -> bytes:
    """So many bytes. Raises EOFError."""
    found = stream.read(count)
    if len(found) < count:
        raise EOFError("the JVM has ended")
    return found


def text_of(stream: IO[bytes]) -> str:
    """A text that the JVM has written."""
    (count,) = INT.unpack(taken(stream, INT.size))
    return taken(stream, count).decode()


@once
def compiled() -> Path:
    """Where the class of `ToolRunner.java` is, compiled once for each state of its source."""
    home = cache("tool-runner", hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16])
    if not (home / "complete").exists():
        line = ["javac", "-d", str(home), "-cp", class_path(), str(SOURCE)]
        subprocess.run(line, check=True, capture_output=True, timeout=COMPILE_SECONDS_MAX)
        (home / "complete").touch()
    return home


def tool_in_jvm(name: str, *arguments: str, stdin: str, seconds_max: float) -> Ended | None:
    """What comes of a tool in the JVM that all tests of the process share; None while another thread runs one there."""
    assert name in SHARED, f"{name} may not share a JVM"
    if not _LOCK.acquire(blocking=False):
        return None
    try:
        if not _running or _running[0].process.poll() is not None:
            _running[:] = [started()]
        return _running[0].call(name, arguments, stdin, seconds_max)
    finally:
        _LOCK.release()


def started() -> Runner:
    """A JVM that waits for calls, and ends with this process."""
    line = [*jvm(HEAP), "-cp", f"{class_path()}:{compiled()}", "ToolRunner"]
    runner = Runner(
        subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=compiled())
    )
    atexit.register(runner.end)
    return runner
