"""Members of a group as processes: start, watch, kill."""

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

LIBRARIES = ["confluent_kafka", "kafka_python", "aiokafka"]
PROGRAM = Path(__file__).with_name("member.py")
SECONDS_MAX = 60.0
SHORT_SESSION_MS = 2_000  # a member that is killed is missed soon
LONG_SESSION_MS = 60_000  # no member is missed, however slow the machine is
NUMBERS = itertools.count(1)


class Served(Protocol):
    """A broker, or a cluster of them, with a directory where members may leave what they log."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def directory(self) -> Path: ...


class Member:
    """One consumer; `assigned` is what it last said it has, `reads` what it has read, `events` all that has a time."""

    def __init__(
        self, server: Served, library: str, group: str, topic: str, session_ms: int, instance: str | None = None
    ) -> None:
        command = [sys.executable, str(PROGRAM), library, server.bootstrap, group, topic, str(session_ms)]
        self.assigned: list[int] | None = None
        self.reads: list[tuple[int, int]] = []
        self.assignments = 0
        self.events: list[dict[str, Any]] = []
        self.errors = server.directory / f"member-{next(NUMBERS)}.log"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command if instance is None else [*command, instance], stdout=subprocess.PIPE, stderr=errors
            )
        self._watch = threading.Thread(target=self._listen, daemon=True)
        self._watch.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if "assigned" in said:
                self.assignments += 1
                self.assigned = said["assigned"]  # the last, for who sees it asks for their number
            elif "read" in said:
                self.reads.append(tuple(said["read"]))
            if "at" in said:
                self.events.append(said)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def leave(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(SECONDS_MAX)
        self._watch.join(SECONDS_MAX)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Fleet:
    """The members of one group."""

    def __init__(self, server: Served, group: str, topic: str, session_ms: int) -> None:
        self.server, self.group, self.topic, self.session_ms = server, group, topic, session_ms
        self.members: list[Member] = []

    def start(self, *libraries: str, instance: str | None = None) -> Member:
        self.members += [
            Member(self.server, library, self.group, self.topic, self.session_ms, instance) for library in libraries
        ]
        return self.members[-1]

    def remove(self, member: Member) -> None:
        """It is gone, one way or the other."""
        self.members.remove(member)

    def settled(self, *counts: int) -> bool:
        """Do the members share all partitions, each of them so many?"""
        shares = [member.assigned or [] for member in self.members]
        whole = sorted(partition for share in shares for partition in share)
        return sorted(map(len, shares)) == sorted(counts) and whole == list(range(sum(counts)))

    def reads(self) -> list[tuple[int, int]]:
        return [read for member in self.members for read in member.reads]


@contextmanager
def fleet(server: Served, group: str, topic: str, *, session_ms: int = SHORT_SESSION_MS) -> Iterator[Fleet]:
    members = Fleet(server, group, topic, session_ms)
    try:
        yield members
    except AssertionError as error:
        for member in members.members:
            error.add_note(f"member has {member.assigned}: {member.errors.read_text()[-2000:]}")
        raise
    finally:
        for member in members.members:
            member.kill()


def eventually(what: str, holds: Callable[[], bool]) -> None:
    """Wait until it holds; tests say what they waited for, not for how long."""
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, f"not within {SECONDS_MAX:g} s: {what}"
        time.sleep(0.02)
