"""The bounds that settings of a broker set each other: sizes and times that have to fit together."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kavka_broker.core.config.cordoned import check_cordoned
from kavka_broker.core.config.definition import ConfigError

MEBIBYTE: Final = 1 << 20

Numbers = Callable[[str], int]  # the value of an integer key, or of a duration in milliseconds, by its name


def check_logs(milliseconds: Numbers, number: Numbers) -> None:
    """Check how long logs keep records, when they roll, and the room for compaction. Raises ConfigError."""
    retention_ms = milliseconds("log.retention.ms")
    if retention_ms == 0 or retention_ms < -1:
        raise ConfigError("log.retention.ms", "keeps nothing; write -1 forever, or 1 or more")
    for name, least in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        if (value := milliseconds(name)) < least:
            raise ConfigError(name, f"{value} is not allowed; write {least} or more")
    if threads := number("log.cleaner.threads"):
        name = "log.cleaner.dedupe.buffer.size"
        check_cleaner(name, number(name), threads)


def check_cleaner(name: str, size_bytes: int, threads: int) -> None:
    """Check that each thread of the cleaner has room for a map of offsets. Raises ConfigError about `name`."""
    if not threads or size_bytes // threads <= MEBIBYTE:
        raise ConfigError(
            name, f"{size_bytes} bytes for {threads} threads; each needs more than {MEBIBYTE}, and one at least"
        )


def check_directories(directories: Sequence[str], cordoned: Sequence[str]) -> None:
    """Check the log directories, and those that take no new partitions. Raises ConfigError."""
    if not directories:
        raise ConfigError("log.dirs", "is empty; write at least one directory")
    if len(set(directories)) < len(directories):
        raise ConfigError("log.dirs", "names a directory twice; name each only once")
    check_cordoned(cordoned, directories)


def check_connections(number: Numbers, overrides: Any) -> None:
    """Check bounds of connections; `overrides` are those of single IP addresses. Raises ConfigError."""
    size, queued = number("socket.request.max.bytes"), number("queued.max.request.bytes")
    if 0 < queued < size:
        raise ConfigError("queued.max.request.bytes", f"{queued} holds not even one request; write {size} or more")
    check_per_ip("max.connections.per.ip", number("max.connections.per.ip"), overrides)
    delay_ms, idle_ms = number("connection.failed.authentication.delay.ms"), number("connections.max.idle.ms")
    if 0 <= idle_ms <= delay_ms:
        raise ConfigError("connections.max.idle.ms", f"{idle_ms} is too short; write {delay_ms + 1} or more")


def check_per_ip(name: str, count: int, overrides: Any) -> None:
    """Check that anybody may connect. Raises ConfigError about `name`."""
    if count == 0 and not overrides:
        raise ConfigError(name, "0 lets nobody in; write 1 or more, or let some in by max.connections.per.ip.overrides")


def check_waits(number: Numbers) -> None:
    """Check that each wait ends before the timeout that it would run into. Raises ConfigError."""
    wait_ms = number("replica.fetch.wait.max.ms")
    for name in ("replica.lag.time.max.ms", "replica.socket.timeout.ms"):
        if wait_ms > number(name):
            raise ConfigError("replica.fetch.wait.max.ms", f"is above {name}; write a smaller value")
    interval, session = number("broker.heartbeat.interval.ms"), number("broker.session.timeout.ms")
    if interval * 2 > session:
        raise ConfigError("broker.heartbeat.interval.ms", f"{interval} leaves no second chance within {session} ms")
    for name in ("election", "fetch", "request"):
        key = f"controller.quorum.{name}.timeout.ms"
        if not number(key):
            raise ConfigError(key, "0 leaves no time for an answer; write 1 or more")
