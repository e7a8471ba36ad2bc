"""The load generators: librdkafka's `rdkafka_performance` and Apache Kafka's own Java tools.

Each is one command and one line of its output. A run that lost a record is no measure, it is an error.

- `rdkafka` fills batches of up to 10,000 records or 1 MB: the broker's ceiling for large batches. The program has a
  linger of a second and a retry backoff of half a second built in, which a run of one or two seconds would mostly
  measure; it gets librdkafka's own default of 5 ms and a short backoff instead.
- `java-16384/0` is the Java producer with batch.size 16384 and linger.ms 0: many small requests.
- `java-131072/10` is the Java producer as one would set it for throughput.
A third of what the Java producer sends is its own warm-up and is left out of its figures.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import rdkafka
from bench.processes import ClientError, run
from tools.kafka_jars import class_path

RDKAFKA = "rdkafka"
JAVA_SMALL = "java-16384/0"
JAVA_LARGE = "java-131072/10"
JAVA = "java"
PRODUCERS = (RDKAFKA, JAVA_SMALL, JAVA_LARGE)
CONSUMERS = (RDKAFKA, JAVA)
NEVER_MS = 1_000_000_000
RDKAFKA_SETTINGS = ("queue.buffering.max.messages=1000000", "linger.ms=5", "retry.backoff.ms=20")

RDKAFKA_PRODUCED = re.compile(r"(\d+) delivered \(offset -?\d+, (\d+) failed\) in (\d+)ms")
RDKAFKA_CONSUMED = re.compile(r"(\d+) messages \((\d+) bytes\) consumed in (\d+)ms")
JAVA_PRODUCED = re.compile(
    r"(\d+) records sent, ([\d.]+) records/sec .*?"
    r"(\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th, (\d+) ms 99\.9th"
)


@dataclass(frozen=True, slots=True)
class Load:
    """What to send or to read: `records` of `size_bytes`, over `partitions`, with `acks`."""

    client: str
    size_bytes: int
    partitions: int
    records: int
    acks: str = "-"
    settings: tuple[str, ...] = ()  # of librdkafka


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client reached; latencies where it measures them, in milliseconds. The rate may leave warm-up out."""

    records_in_all: int
    records_per_second: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None


def produce(bootstrap: str, topic: str, load: Load) -> Outcome:
    """Send the load; the rate that its client reports."""
    if load.client == RDKAFKA:
        # It counts what is left in its queue a moment too early and may exit with 1; what was delivered decides.
        text = run(rdkafka_produce_command(bootstrap, topic, load), check=False)
        return parse_rdkafka_produced(text, load.records)
    return parse_java_produced(run(java_produce_command(bootstrap, topic, load)), load.records)


def consume(bootstrap: str, topic: str, load: Load) -> Outcome:
    """Read the load from the beginning; the rate without the time a group needs to gather."""
    if load.client == RDKAFKA:
        return parse_rdkafka_consumed(run(rdkafka_consume_command(bootstrap, topic, load)), load.records)
    return parse_java_consumed(run(java_consume_command(bootstrap, topic, load)), load.records)


def rdkafka_produce_command(bootstrap: str, topic: str, load: Load, program: str | None = None) -> list[str]:
    acks = "-1" if load.acks == "all" else load.acks
    where = ["-p", "0"] if load.partitions == 1 else []
    amount = ["-s", str(load.size_bytes), "-c", str(load.records), "-a", acks]
    settings = [part for setting in (*RDKAFKA_SETTINGS, *load.settings) for part in ("-X", setting)]
    return [program or str(rdkafka.program()), "-P", "-t", topic, "-b", bootstrap, *amount, *settings, *where]


def rdkafka_consume_command(bootstrap: str, topic: str, load: Load, program: str | None = None) -> list[str]:
    """One partition: assigned by hand. Several: as a group, which is how one would read them."""
    if load.partitions == 1:
        how = ["-C", "-p", "0", "-o", "beginning"]
    else:
        how = ["-G", f"bench-{time.time_ns()}", "-X", "auto.offset.reset=earliest"]
    settings = [part for setting in load.settings for part in ("-X", setting)]
    return [program or str(rdkafka.program()), *how, "-t", topic, "-b", bootstrap, "-c", str(load.records), *settings]


def _java_tool(name: str) -> list[str]:
    heap = ["-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    return ["java", *heap, "-Dlog4j2.level=error", "-cp", class_path(), f"org.apache.kafka.tools.{name}"]


def java_produce_command(bootstrap: str, topic: str, load: Load) -> list[str]:
    batch_bytes, linger_ms = load.client.removeprefix("java-").split("/")
    amount = ["--num-records", str(load.records), "--record-size", str(load.size_bytes), "--throughput", "-1"]
    quiet = ["--reporting-interval", str(NEVER_MS), "--warmup-records", str(load.records // 3)]
    settings = [f"acks={load.acks}", f"batch.size={batch_bytes}", f"linger.ms={linger_ms}"]
    target = ["--bootstrap-server", bootstrap, "--topic", topic]
    return [*_java_tool("ProducerPerformance"), *target, *amount, *quiet, "--command-property", *settings]


def java_consume_command(bootstrap: str, topic: str, load: Load) -> list[str]:
    target = ["--bootstrap-server", bootstrap, "--topic", topic]
    amount = ["--num-records", str(load.records), "--timeout", "60000", "--hide-header"]
    return [*_java_tool("ConsumerPerformance"), *target, *amount]


def parse_rdkafka_produced(text: str, records: int) -> Outcome:
    rows = RDKAFKA_PRODUCED.findall(text)
    if not rows:
        raise _unread("rdkafka_performance -P", text)
    delivered, failed, took_ms = (int(field) for field in rows[-1])
    if failed or delivered != records:
        raise ClientError(f"rdkafka_performance: {delivered} of {records} delivered, {failed} failed")
    return Outcome(delivered, delivered / (took_ms / 1000))


def parse_rdkafka_consumed(text: str, records: int) -> Outcome:
    rows = RDKAFKA_CONSUMED.findall(text)
    if not rows:
        raise _unread("rdkafka_performance -C", text)
    consumed, _size, took_ms = (int(field) for field in rows[-1])
    if consumed < records:
        raise ClientError(f"rdkafka_performance: {consumed} of {records} consumed")
    return Outcome(consumed, consumed / (took_ms / 1000))


def parse_java_produced(text: str, records: int) -> Outcome:
    """The last summary: with warm-up records the tool prints one of everything, then one without them."""
    rows = JAVA_PRODUCED.findall(text)
    if not rows:
        raise _unread("ProducerPerformance", text)
    if int(rows[0][0]) != records:
        raise ClientError(f"ProducerPerformance: {rows[0][0]} of {records} sent")
    _sent, rate, p50, p99, p999 = rows[-1]
    return Outcome(records, float(rate), float(p50), float(p99), float(p999))


def parse_java_consumed(text: str, records: int) -> Outcome:
    """The line of ten fields: the fifth counts the records, the last is their rate while fetching."""
    rows = [fields for line in text.splitlines() if len(fields := line.split(",")) == 10]
    if not rows:
        raise _unread("ConsumerPerformance", text)
    consumed, rate = int(rows[-1][4]), float(rows[-1][9])
    if consumed < records:
        raise ClientError(f"ConsumerPerformance: {consumed} of {records} consumed")
    return Outcome(consumed, rate)


def _unread(tool: str, text: str) -> ClientError:
    return ClientError(f"{tool} printed no result:\n{text[-2000:]}")


def known(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The clients of `names` that were asked for; all where none was."""
    return [name for name in names if not wanted or any(name.startswith(prefix) for prefix in wanted)]
