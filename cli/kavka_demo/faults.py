"""What happens to the brokers while the demo produces: one is killed, then all are restarted for a new setting.

Both happen at a given share of the flights. The producer goes on through the first; it slows down for the second, so
that there is something to produce until the last broker is back.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, TopicPartition

from kavka_demo.clients import QUIET, Pulse
from kavka_demo.flights import FLIGHTS
from kavka_operator.platform.local import child_process, processes
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout

KILL_AT = FLIGHTS // 4
ROLL_AT = FLIGHTS * 3 // 5
ROLL_RATE = 9_000  # flights a second meanwhile
BACK_SECONDS_MAX = 60.0
ROLL_SECONDS_MAX = 180.0
POLL_SECONDS = 0.05
NEW_SETTING = ("queued.max.requests", 400)


class TroubleError(Exception):
    """A kill or a roll did not end well; the message says what happened."""


@dataclass(frozen=True, slots=True)
class Killed:
    """A broker that was killed, and what its clients saw of it."""

    broker: int
    partition: str
    gap_seconds: float
    back_seconds: float


@dataclass(frozen=True, slots=True)
class Rolled:
    """A roll of all brokers, and what clients saw of it."""

    gap_seconds: float
    seconds: float


class Watch:
    """A client that only looks."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "watch", "log_level": QUIET})
        self._topic, self._partitions = topic, partitions

    def busiest(self) -> tuple[int, int]:
        """The partition with most records, and its leader."""
        sizes = {number: self._size(number) for number in range(self._partitions)}
        partition = max(sizes, key=lambda number: sizes[number])
        return partition, int(self._metadata()[partition].leader)

    def is_whole(self) -> bool:
        """Whether every replica of the topic is in sync."""
        return all(sorted(partition.isrs) == sorted(partition.replicas) for partition in self._metadata().values())

    def close(self) -> None:
        self._consumer.close()

    def _size(self, number: int) -> int:
        low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=10)
        return int(high - low)

    def _metadata(self) -> dict[int, Any]:
        partitions: dict[int, Any] = self._consumer.list_topics(self._topic, timeout=10).topics[self._topic].partitions
        return partitions


@dataclass(slots=True)
class Trouble:
    """The two events, each in a thread of its own; `may_go_on` begins them and paces the producer."""

    bootstrap: str
    topic: str
    partitions: int
    layout: Layout
    quickstart: Path
    pulse: Pulse
    killed: Killed | None = None
    rolled: Rolled | None = None
    failure: str | None = None
    _threads: list[threading.Thread] = field(default_factory=list)
    _roll_began: tuple[int, float] | None = None
    _apply: "subprocess.Popen[str] | None" = None

    def may_go_on(self, count: int) -> bool:
        """Whether the producer, with so many flights produced, may go on. Raises TroubleError."""
        if self.failure:
            raise TroubleError(self.failure)
        if count >= KILL_AT and not self._threads:
            self._begin(self._kill)
        if count < ROLL_AT or self.rolled is not None:
            return True
        if self.killed is None:
            return False
        if self._roll_began is None:
            self._roll_began = count, time.monotonic()
            self._begin(self._roll)
        begin_count, began = self._roll_began
        return count < begin_count + ROLL_RATE * (time.monotonic() - began)

    def finish(self) -> tuple[Killed, Rolled]:
        """Wait for the end of both events. Raises TroubleError."""
        for thread in self._threads:
            thread.join()
        if self.failure:
            raise TroubleError(self.failure)
        assert self.killed is not None
        assert self.rolled is not None
        return self.killed, self.rolled

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self._apply is not None:
            processes.stop_children([self._apply], 5.0)

    def _begin(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - told by the thread that produces
                self.failure = str(error)

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _kill(self) -> None:
        watch = Watch(self.bootstrap, self.topic, self.partitions)
        try:
            partition, broker = watch.busiest()
            self.pulse.begin()
            began = time.monotonic()
            kill_node(self.layout, broker)
            time.sleep(POLL_SECONDS)
            while watch.is_whole() and time.monotonic() - began < 1.0:
                time.sleep(POLL_SECONDS)  # the cluster has not noticed yet
            while not watch.is_whole():
                if time.monotonic() - began > BACK_SECONDS_MAX:
                    raise TroubleError(f"broker {broker} was not back within {BACK_SECONDS_MAX:.0f} s")
                time.sleep(POLL_SECONDS)
            back = time.monotonic() - began
        finally:
            watch.close()
        self.killed = Killed(broker, f"{self.topic}-{partition}", self.pulse.longest_gap_seconds(), back)

    def _roll(self) -> None:
        changed = self.layout.root.parent / "changed.yaml"
        changed.write_text(with_new_setting(self.quickstart.read_text()))
        state = str(self.layout.root.parent.parent)
        command = [sys.executable, "-m", "kavka_cli", "apply", "-f", str(changed), "--state-dir", state]
        self.pulse.begin()
        began = time.monotonic()
        self._apply = subprocess.Popen(
            [sys.executable, "-I", "-S", child_process.__file__, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        said, _ = self._apply.communicate(timeout=ROLL_SECONDS_MAX)
        if self._apply.returncode:
            raise TroubleError(f"the roll failed: {said.strip()}")
        self.rolled = Rolled(self.pulse.longest_gap_seconds(), time.monotonic() - began)


def kill_node(layout: Layout, number: int) -> None:
    """End a node of ours as `kill -9` does, known by pid and command line. Raises TroubleError."""
    pid = int((read_text(layout.pid(number)) or "0").strip())
    if not pid or str(layout.properties(number)) not in processes.command_line(pid):
        raise TroubleError(f"node {number} has no process of ours")
    os.kill(pid, signal.SIGKILL)


def with_new_setting(text: str) -> str:
    """The KafkaCluster of a resource file, with a setting that brokers read only when they start."""
    cluster = next(document for document in yaml.safe_load_all(text) if document["kind"] == "KafkaCluster")
    name, value = NEW_SETTING
    cluster["spec"].setdefault("config", {})[name] = value
    return yaml.safe_dump(cluster, sort_keys=False)
