"""`kavka demo`: start the quickstart cluster, produce the flights, kill a broker and roll all of them meanwhile, read
everything back, throttle a client, stop, and judge.

Every step that can be wrong is checked, and the first thing that is wrong ends the demo with its name and exit code 1.
Whatever happens, the cluster is stopped on the way out; it is also on a leash, should the demo itself be killed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kavka_cli.packaged_examples import file_of
from kavka_demo.audited import AuditedError, answered, audited
from kavka_demo.clients import ClientFailedError, Group, Load, Pulse, Reader, produce_flights, run_load
from kavka_demo.faults import Killed, Rolled, Trouble, TroubleError
from kavka_demo.flights import FLIGHTS, FlightsError, Tally, archive, flights
from kavka_operator.api.files import BadResourcesError, load
from kavka_operator.api.printer_columns import aligned, table
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.topic import Topic
from kavka_operator.platform.local import child_process, processes
from kavka_operator.platform.local.layout import clusters
from kavka_operator.platform.local.signals import Signals, Stopped
from kavka_operator.platform.local.store import Store

BOOTSTRAP = "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
READY_LINE = "ready;"
STOP_SECONDS_MAX = 30.0
UNLIMITED_RATE = 16 * 1024 * 1024
MIB = 1024 * 1024
LIMIT_EXCESS_MAX = 1.25
LIMIT_USE_MIN = 0.6
UNLIMITED_USE_MIN = 0.8
GAP_SECONDS_MAX = 5.0


class MismatchError(Exception):
    """The demo came to another result than it should; the message says which."""


def demo(*, throttled_seconds: float, keep: bool) -> int:
    """Run the demo; the exit code."""
    console = Console(highlight=False)
    began = time.monotonic()
    state = Path(tempfile.mkdtemp(prefix="kavka-demo-"))
    try:
        with Signals() as signals:
            rows = _run(console, state, throttled_seconds, signals)
    except Stopped as stopped:
        console.print(f"stopped ({stopped})")
        return 128 + stopped.number
    except (MismatchError, AuditedError, ClientFailedError, TroubleError, FlightsError, BadResourcesError) as error:
        console.print(f"error: {error}", style="red", markup=False)
        return 1
    finally:
        if keep:
            console.print(f"kept: {state}")
        else:
            shutil.rmtree(state, ignore_errors=True)
    console.print(f"\nall as it should be, in {time.monotonic() - began:.0f} s\n")
    console.print(aligned([(f"  {name}", value) for name, value in rows]), soft_wrap=True)
    return 0


def _run(console: Console, state: Path, seconds: float, signals: Signals) -> list[tuple[str, str]]:
    quickstart = audited(file_of("quickstart"), state)
    topic, archive_topic, quota = _declared(quickstart)
    console.print("$ kavka example quickstart > cluster.yaml; kavka up -f cluster.yaml   (and an audit trail)")
    with _cluster(quickstart, state, signals) as started:
        console.print()
        produced = _produce(console, topic, state, quickstart)
        readers, read_seconds = _read(console, topic, produced)
        loads = _throttle(console, archive_topic, seconds, quota)
        _show_status(console, state)
        report = answered(console, BOOTSTRAP, loads[0].client_id)
    console.print("the cluster is stopped")
    return [
        ("cluster ready after", f"{started:.1f} s"),
        *_produced_rows(produced, readers, read_seconds),
        *_quota_rows(*loads, quota.spec.limits.producer_byte_rate or 0),
        ("who did what", str(report)),
    ]


@dataclass(frozen=True, slots=True)
class Produced:
    """The records produced and acknowledged, and the events meanwhile."""

    tally: Tally
    pulse: Pulse
    seconds: float
    killed: Killed
    rolled: Rolled

    @property
    def count(self) -> int:
        return self.tally.count + self.pulse.count


def _produced_rows(produced: Produced, readers: list[Reader], read_seconds: float) -> list[tuple[str, str]]:
    killed, rolled, tally = produced.killed, produced.rolled, produced.tally
    return [
        ("flights produced", f"{tally.count:,} in {produced.seconds:.1f} s; acks=all, idempotent"),
        (
            "kill -9",
            f"broker {killed.broker}, which led {killed.partition}; in sync again after {killed.back_seconds:.1f} s",
        ),
        ("  longest gap", f"{killed.gap_seconds * 1000:,.0f} ms between two acknowledgements of a partition"),
        ("roll of all three", f"{rolled.seconds:.1f} s, for a setting that needs a restart"),
        ("  longest gap", f"{rolled.gap_seconds * 1000:,.0f} ms between two acknowledgements of a partition"),
        ("lost, duplicated", f"0 and 0 of {produced.count:,} acknowledged records, all read back"),
        ("read", f"{produced.count:,} in {read_seconds:.1f} s by a group of two ({_shares(readers)})"),
        ("order and checksum", f"kept for each of {len(tally.by_key)} carriers; {tally.checksum()}"),
    ]


def _quota_rows(limited: Load, unlimited: Load, limit: float) -> list[tuple[str, str]]:
    reached = f"reached {limited.rate / MIB:.2f} MiB/s in {limited.seconds:.0f} s"
    waited = f"longest {limited.throttle_ms_max:,} ms, {limited.throttle_ms_total / 1000:.1f} s in all"
    free = f"wanted {UNLIMITED_RATE / MIB:.0f} MiB/s, reached {unlimited.rate / MIB:.2f} MiB/s"
    return [
        ("quota of backfill", f"limit {limit / MIB:.2f} MiB/s, {reached}"),
        ("throttle_time_ms seen", f"in {limited.throttled_answers} answers; {waited}"),
        ("unlimited client", f"{free}, throttled {unlimited.throttled_answers} times"),
    ]


def _declared(quickstart: Path) -> tuple[Topic, Topic, ClientQuota]:
    resources = {(declared.resource.kind, declared.resource.name): declared.resource for declared in load([quickstart])}
    first, second = resources["Topic", "flights"], resources["Topic", "archive"]
    quota = resources["ClientQuota", "backfill"]
    assert isinstance(first, Topic)
    assert isinstance(second, Topic)
    assert isinstance(quota, ClientQuota)
    return first, second, quota


@contextmanager
def _cluster(quickstart: Path, state: Path, signals: Signals) -> Generator[float]:
    """The cluster, as a child that shows what it says; the seconds until it was ready. Raises MismatchError."""
    command = [sys.executable, "-m", "kavka_cli", "up", "-f", str(quickstart), "--state-dir", str(state)]
    tied = [sys.executable, "-I", "-S", child_process.__file__, str(os.getpid()), *command]
    began = time.monotonic()
    with signals.held():
        child = subprocess.Popen(
            tied,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    ready = threading.Event()
    echo = threading.Thread(target=_echo, args=(child, ready), daemon=True)
    try:
        echo.start()
        while not ready.wait(0.05):
            if child.poll() is not None:
                echo.join(1.0)
                raise MismatchError(f"the cluster did not start (exit code {child.returncode})")
        yield time.monotonic() - began
        if child.poll() is not None:
            raise MismatchError(f"the cluster ended by itself (exit code {child.returncode})")
    finally:
        processes.stop_children([child], STOP_SECONDS_MAX)
        echo.join(1.0)
    if child.returncode:
        raise MismatchError(f"the cluster did not stop cleanly (exit code {child.returncode})")


def _echo(child: "subprocess.Popen[str]", ready: threading.Event) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(READY_LINE):
            ready.set()
        else:
            sys.stdout.write(line)
            sys.stdout.flush()


def _produce(console: Console, topic: Topic, state: Path, quickstart: Path) -> Produced:
    source = archive()
    (layout,) = clusters(state)
    partitions = topic.spec.partitions or 1
    pulse = Pulse(BOOTSTRAP, topic.topic_name, partitions)
    trouble = Trouble(BOOTSTRAP, topic.topic_name, partitions, layout, quickstart, pulse)
    try:
        began = time.monotonic()
        with _bar(console, "produce", FLIGHTS) as progress:
            tally = produce_flights(BOOTSTRAP, topic.topic_name, flights(source), progress, trouble.may_go_on)
            seconds = time.monotonic() - began
            killed, rolled = trouble.finish()
        pulse.stop()
    except BaseException:
        trouble.abandon()
        pulse.abandon()
        raise
    produced = Produced(tally, pulse, seconds, killed, rolled)
    check_produced(produced)
    return produced


def check_produced(produced: Produced) -> None:
    """Raise MismatchError unless everything was acknowledged, with no gap that anybody would call an outage."""
    if produced.tally.count != FLIGHTS:
        raise MismatchError(f"the data holds {produced.tally.count:,} flights instead of {FLIGHTS:,}")
    if produced.pulse.failure:
        raise MismatchError(f"client pulse: {produced.pulse.failure}")
    for name, gap in (("the kill", produced.killed.gap_seconds), ("the roll", produced.rolled.gap_seconds)):
        if gap > GAP_SECONDS_MAX:
            raise MismatchError(f"during {name} a partition acknowledged nothing for {gap:.1f} s")


def _read(console: Console, topic: Topic, produced: Produced) -> tuple[list[Reader], float]:
    began = time.monotonic()
    group = Group(BOOTSTRAP, topic.topic_name, "flight-readers", topic.spec.partitions or 1)
    with _bar(console, "read   ", produced.count) as progress:
        readers = group.read(progress)
    took = time.monotonic() - began
    check_read(readers, produced.tally)
    check_pulses(readers, produced.pulse.acknowledged)
    return readers, took


def check_pulses(readers: list[Reader], acknowledged: Mapping[int, list[int]]) -> None:
    """Raise MismatchError unless every acknowledged pulse was read, once and in order."""
    for partition, numbers in acknowledged.items():
        read = [number for reader in readers for number in reader.pulses.get(partition, ())]
        if lost := set(numbers) - set(read):
            raise MismatchError(f"{len(lost)} acknowledged records of partition {partition} are lost")
        if len(read) != len(set(read)):
            raise MismatchError(f"{len(read) - len(set(read))} records of partition {partition} stand twice")
        if read != sorted(read):
            raise MismatchError(f"records of partition {partition} changed their order")


def check_read(readers: list[Reader], produced: Tally) -> None:
    """Raise MismatchError unless the readers together read exactly what was produced, each key in its order."""
    for reader in readers:
        if reader.failure or reader.disorder:
            raise MismatchError(f"{reader.name}: {reader.failure or reader.disorder}")
    shared = readers[0].tally.by_key.keys() & readers[1].tally.by_key.keys()
    if shared:
        raise MismatchError(f"both readers read carrier {min(shared).decode()}")
    read = Tally()
    for reader in readers:
        read.merge(reader.tally)
    if read.count != produced.count:
        raise MismatchError(f"{read.count:,} flights were read instead of {produced.count:,}")
    for key, digest in produced.by_key.items():
        if key not in read.by_key or read.by_key[key].digest() != digest.digest():
            raise MismatchError(f"the flights of carrier {key.decode()} are not those that were produced")


def _throttle(console: Console, topic: Topic, seconds: float, quota: ClientQuota) -> tuple[Load, Load]:
    limited, unlimited = Load("backfill"), Load("unlimited")
    stop = threading.Event()
    threads = [
        threading.Thread(target=run_load, args=(BOOTSTRAP, topic.topic_name, client, seconds, rate, stop), daemon=True)
        for client, rate in ((limited, None), (unlimited, UNLIMITED_RATE))
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    try:
        with _bar(console, "quota  ", round(seconds * 10)) as progress:
            while any(thread.is_alive() for thread in threads):
                progress(min(round((time.monotonic() - began) * 10), round(seconds * 10)))
                time.sleep(0.1)
            progress(round(seconds * 10))
    finally:
        stop.set()
        for thread in threads:
            thread.join(STOP_SECONDS_MAX)
    check_loads(limited, unlimited, quota.spec.limits.producer_byte_rate or 0)
    return limited, unlimited


def _show_status(console: Console, state: Path) -> None:
    """Print the status of the ClientQuota while it still shows the throttled client."""
    (layout,) = clusters(state)
    documents = [document for key, document in Store(layout).documents().items() if key[0] == "ClientQuota"]
    console.print("\n$ kavka get clientquota")
    console.print(table(ClientQuota, documents, datetime.now(UTC), wide=False) + "\n", soft_wrap=True)


def check_loads(limited: Load, unlimited: Load, limit: float) -> None:
    """Raise MismatchError unless the one was held at its limit and the other kept its speed."""
    for client in (limited, unlimited):
        if client.failure:
            raise MismatchError(f"client {client.client_id}: {client.failure}")
    if not limit * LIMIT_USE_MIN <= limited.rate <= limit * LIMIT_EXCESS_MAX:
        raise MismatchError(f"client backfill reached {limited.rate / MIB:.2f} MiB/s; its limit is {limit / MIB:.2f}")
    if not limited.throttled_answers:
        raise MismatchError("client backfill saw no throttle_time_ms")
    if unlimited.throttled_answers:
        raise MismatchError(f"client unlimited was throttled {unlimited.throttled_answers} times")
    if unlimited.rate < UNLIMITED_RATE * UNLIMITED_USE_MIN:
        raise MismatchError(
            f"client unlimited reached only {unlimited.rate / MIB:.2f} MiB/s of {UNLIMITED_RATE / MIB:.0f}"
        )


@contextmanager
def _bar(console: Console, title: str, total: int) -> Generator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


def _shares(readers: list[Reader]) -> str:
    return " + ".join(f"{reader.tally.count:,}" for reader in readers)
