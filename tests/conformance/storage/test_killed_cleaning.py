"""A cleaning that was killed: what one product leaves half done, the other finishes or removes as its maker does.

Apache Kafka is killed while it cleans. In the directory that it leaves, other topics stand at each step of how either
product puts cleaned segments in the place of others: files are there as the steps before have made, named and renamed
them. Apache Kafka starts on one copy and Kavka on another, and both serve the same. Then Kavka is killed while it
cleans, and Apache Kafka goes on.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.conformance.side_by_side.products import KAFKA, KAVKA, become
from tests.conformance.storage.compacting import (
    NEVER,
    SECONDS_MAX,
    SETTINGS,
    SOON,
    Written,
    all_consumed,
    alter,
    clean,
    copy_of,
    is_clean,
    running,
)
from tests.support.servers import Server, start_apache_kafka
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

TEMPLATE, KAFKAS, OURS = "template", "killed-kafka", "killed-kavka"
CLEANED, SWAP, DELETED = ".cleaned", ".swap", ".deleted"
LOG, INDEX, TIMES, ABORTED = ".log", ".index", ".timeindex", ".txnindex"
PARTS: Final = (LOG, INDEX, TIMES, ABORTED)
#: So slow that a cleaning can be caught.
RATE: Final = "40000"
LOOKS: Final = 2_000
#: What keys begin with that are written as a cleaning was not caught.
LATER: Final = "later"
Files = dict[str, bytes]


class Group(NamedTuple):
    """The old segments' files, in the order of their offsets, and the new one's that takes their place."""

    old: list[Files]
    new: Files


def named(files: Files, suffix: str, *only: str) -> Files:
    """The files with a suffix more; the others, if only some of them are to have it, as they are."""
    return {name + (suffix if not only or Path(name).suffix in only else ""): data for name, data in files.items()}


def all_of(files: list[Files]) -> Files:
    return {name: data for one in files for name, data in one.items()}


def torn(files: Files) -> Files:
    return {name: data[: len(data) // 2] if name.endswith(LOG + CLEANED) else data for name, data in files.items()}


def half_named(group: Group, *renamed: str) -> Files:
    """Some of the new files are called `.swap`, the others `.cleaned` still."""
    return {name + (SWAP if Path(name).suffix in renamed else CLEANED): data for name, data in group.new.items()}


#: What is there of a group at each step.
STEPS: Final[dict[str, Callable[[Group], Files]]] = {
    "written": lambda group: named(group.new, CLEANED) | all_of(group.old),
    "torn": lambda group: torn(named(group.new, CLEANED)) | all_of(group.old),
    "swap-begun-by-kafka": lambda group: half_named(group, LOG) | all_of(group.old),
    "swap-begun-by-kavka": lambda group: half_named(group, INDEX, TIMES, ABORTED) | all_of(group.old),
    "swap": lambda group: named(group.new, SWAP) | all_of(group.old),
    "first-log-deleted": lambda group: (
        named(group.new, SWAP) | named(group.old[0], DELETED, LOG) | all_of(group.old[1:])
    ),
    "first-deleted": lambda group: named(group.new, SWAP) | named(group.old[0], DELETED) | all_of(group.old[1:]),
    "all-deleted": lambda group: named(group.new, SWAP) | named(all_of(group.old), DELETED),
    "named-by-kafka": lambda group: named(group.new, SWAP, INDEX, TIMES, ABORTED) | named(all_of(group.old), DELETED),
    "named-by-kavka": lambda group: named(group.new, SWAP, LOG) | named(all_of(group.old), DELETED),
    "done": lambda group: group.new | named(all_of(group.old), DELETED),
}


def segments(directory: Path) -> dict[int, Files]:
    """The files of each segment, by its first offset."""
    found: dict[int, Files] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix in PARTS:
            found.setdefault(int(path.stem), {})[path.name] = path.read_bytes()
    return found


def grouped(before: dict[int, Files], after: dict[int, Files]) -> tuple[Group, dict[int, Files]]:
    """The first new segment that has taken the place of several, and what was beside it when it did."""
    bases = sorted(after)
    for base, end in pairwise(bases):
        inside = [one for one in before if base <= one < end]
        if len(inside) > 1:
            early = {one: after[one] for one in bases if one < base}
            late = {one: files for one, files in before.items() if one >= end}
            return Group([before[one] for one in inside], after[base]), early | late
    raise AssertionError("the cleaning has joined no segments")


def place(server: Server, topic: str, files: Files) -> None:
    """Have the topic's partition be these files, and what goes with the template's."""
    target, template = server.data / f"{topic}-0", server.data / f"{TEMPLATE}-0"
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in template.iterdir():
        if path.suffix == ".snapshot" or path.name == "leader-epoch-checkpoint":
            shutil.copy(path, target)
    for name, data in files.items():
        (target / name).write_bytes(data)


def fill(server: Server) -> None:
    """Segments of some kilobytes, several of which become one when they are cleaned."""
    for topic in (TEMPLATE, KAFKAS, OURS):
        written = Written(server, topic, records=90, keys=12)
        for codec, end in (("none", ""), ("none", "abort"), ("lz4", "commit")) if topic == TEMPLATE else ():
            written.write(codec, end)
        for _ in range(2):
            written.write()
        alter(server, topic, internal_segment_bytes="20000")


def kill_in_cleaning(server: Server, topic: str) -> None:
    """Let the cleaner come to the topic, with more records where it was too quick, and kill the server as it writes."""
    directory, more = server.data / f"{topic}-0", Written(server, topic)
    alter(server, topic, min_cleanable_dirty_ratio=SOON)
    deadline = time.monotonic() + SECONDS_MAX
    while not is_held_in_cleaning(server, directory):
        assert time.monotonic() < deadline, server.last_lines()
        if is_clean(server, topic):
            alter(server, topic, min_cleanable_dirty_ratio=NEVER)
            for _ in range(6):
                more.write(prefix=LATER)
            alter(server, topic, min_cleanable_dirty_ratio=SOON)
    server.kill()
    assert any(directory.glob(f"*{CLEANED}"))


def is_held_in_cleaning(server: Server, directory: Path) -> bool:
    """Look for a while without a pause; hold the server when it writes, and see whether it still does."""
    for _ in range(LOOKS):
        if any(name.endswith(CLEANED) for name in os.listdir(directory)):
            os.kill(server.pid, signal.SIGSTOP)
            while not is_stopped(server.pid):
                time.sleep(0.001)
            if any(directory.glob(f"*{CLEANED}")):
                return True
            os.kill(server.pid, signal.SIGCONT)
    return False


def is_stopped(pid: int) -> bool:
    """Whether all its threads are: one that was in a call to the disk ends that first."""
    tasks = Path(f"/proc/{pid}/task")
    try:
        return all((tasks / one / "stat").read_text().rpartition(") ")[2][0] == "T" for one in os.listdir(tasks))
    except (FileNotFoundError, ProcessLookupError):  # one has just ended
        return False


def left_by_kafka(directory: Path) -> Server:
    """Apache Kafka's directory: killed in a cleaning, and with a topic for each step."""
    own = {
        "log.cleaner.io.max.bytes.per.second": RATE,
        "log.segment.delete.delay.ms": "60000",
        "log.index.size.max.bytes": "100000",  # as the active segment's is when Apache Kafka is killed
        "broker.session.timeout.ms": "3000",  # as long as a start after that waits
        "broker.heartbeat.interval.ms": "500",
    }
    server = start_apache_kafka(directory, SETTINGS | own)
    try:
        for topic in (TEMPLATE, KAFKAS, OURS, *STEPS):
            create_topic(server, topic, cleanup_policy="compact", internal_segment_bytes="6000")
        fill(server)
        before = segments(server.data / f"{TEMPLATE}-0")
        clean(server, TEMPLATE)
        group, beside = grouped(before, segments(server.data / f"{TEMPLATE}-0"))
        kill_in_cleaning(server, KAFKAS)
    finally:
        server.kill()
    for topic, step in STEPS.items():
        place(server, topic, all_of(list(beside.values())) | step(group))
    return server


def test_what_is_left_of_a_cleaning_is_finished_or_removed_as_kafka_does_it(tmp_path: Path) -> None:
    left = left_by_kafka(tmp_path / "left")
    topics = (TEMPLATE, KAFKAS, OURS, *STEPS)
    by_kafka = copy_of(left, tmp_path / "kafka", KAFKA, log_cleaner_enable="false")
    by_kavka = copy_of(left, tmp_path / "kavka", KAVKA, log_cleaner_enable="false")
    with running(by_kafka):
        expected = all_consumed(by_kafka, *topics)
    with running(by_kavka):
        found = all_consumed(by_kavka, *topics)
    for one in expected:
        assert found[one] == expected[one], one
    assert all(expected.values())
    assert expected["done read_committed"] == expected["swap read_committed"] != expected["written read_committed"]
    expect_nothing_half_done(by_kavka)

    ours = copy_of(by_kavka, tmp_path / "ours", KAVKA, log_cleaner_enable="true")
    with running(ours):
        kill_in_cleaning(ours, OURS)
    become(ours, KAFKA)
    config = ours.directory / "server.properties"
    config.write_text(config.read_text() + "log.cleaner.enable=false\n")
    again = copy_of(ours, tmp_path / "again", KAVKA)
    with running(again):
        by_us = all_consumed(again, OURS)
    with running(ours):
        assert all_consumed(ours, OURS) == by_us
    assert latest(by_us) == latest({key: found[key] for key in by_us})


def latest(found: dict[str, list[tuple[int | None, bytes | None, bytes | None, object]]]) -> list[dict[object, object]]:
    """The last value of each of the first keys, whatever other keys are there still."""
    return [
        {key: (offset, value) for offset, key, value, _ in seen if key and not key.startswith(LATER.encode())}
        for seen in found.values()
    ]


def expect_nothing_half_done(server: Server) -> None:
    for topic in (KAFKAS, *STEPS):
        left = [path.name for path in (server.data / f"{topic}-0").iterdir() if path.suffix in (CLEANED, SWAP, DELETED)]
        assert left == [], topic
