"""For how much of the time a client had a broker, as the broker itself counts it: what `request_percentage` limits.

Kavka tells a sum of seconds (`kavka_client_loop_seconds_total`), Apache Kafka the rate over its window (`request-time`,
by JMX). Both are asked once a second, and brought to the same two figures: the percentage reached after the warm-up,
and how many seconds' worth came at once. Of a rate only the first ten seconds tell the second: until then it is all
that was taken, divided by the ten seconds of the window.
"""

import re
import threading
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import mean
from typing import Final

from bench import processes, wire
from bench.brokers import KAVKA
from bench.three_brokers import Trio, TrioBroker
from tools.kafka_jars import class_path

LOOP_LINE: Final = "kavka_client_loop_seconds_total{"
JMX_LINE: Final = re.compile(r"^(\d+),([\d.E-]+)$", re.MULTILINE)  # milliseconds since 1970, a percentage
ASK_SECONDS: Final = 1.0
WINDOW_SECONDS: Final = 10.0
READY_SECONDS_MAX: Final = 60.0
PERCENT: Final = 100

Reading = tuple[float, float]  # when by the monotonic clock, and what was read


class TimeTaken(ABC):
    """What is counted of one client at one broker, from its making until `stop`."""

    @abstractmethod
    def stop(self) -> None:
        """Ask no more."""

    @abstractmethod
    def figures(self, limit: float, began: float, warm_up_seconds: float) -> dict[str, float]:
        """The percentage reached after the warm-up as a part of the limit, and the seconds' worth ahead of it."""


class KavkaTime(TimeTaken):
    """The sum of seconds, from the metrics."""

    def __init__(self, member: TrioBroker, client_id: str) -> None:
        self._page = f"http://127.0.0.1:{member.admin_port}/metrics"
        self._client_id = client_id
        self._readings: list[Reading] = []
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stops.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stops.wait(ASK_SECONDS):
            self._readings.append((time.monotonic(), of_client(self._page, LOOP_LINE, self._client_id)))

    def figures(self, limit: float, began: float, warm_up_seconds: float) -> dict[str, float]:
        return of_sums(self._readings, limit / PERCENT, began, warm_up_seconds)


class KafkaTime(TimeTaken):
    """The percentage over the window, by Kafka's own JmxTool. It finds what is there when it begins, so the client id
    has to have asked something before.
    """

    def __init__(self, member: TrioBroker, client_id: str) -> None:
        with wire.Connection(member.port) as connection:
            connection.ask(wire.frame(wire.API_VERSIONS, wire.API_VERSIONS_VERSION, b"", client_id.encode()))
        address = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{jmx_port(member.pid)}/jmxrmi"
        name = f"kafka.server:type=Request,client-id={client_id}"
        asked = ["--jmx-url", address, "--object-name", name, "--attributes", "request-time", "--wait"]
        tool = ["java", "-Xmx64M", "-cp", class_path(), "org.apache.kafka.tools.JmxTool", *asked]
        self._log = member.directory / f"time-of-{client_id}.log"
        self._process = processes.start([*tool, "--reporting-interval", f"{ASK_SECONDS * 1000:.0f}"], self._log)
        self._wait_for_the_first()

    def _wait_for_the_first(self) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self._readings():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise processes.ClientError(f"JmxTool tells nothing: {self._log.read_text()[-500:]}")
            time.sleep(ASK_SECONDS / 10)

    def stop(self) -> None:
        processes.stop(self._process)

    def _readings(self) -> list[Reading]:
        since_1970 = time.time() - time.monotonic()
        return [(int(at) / 1000 - since_1970, float(rate)) for at, rate in JMX_LINE.findall(self._log.read_text())]

    def figures(self, limit: float, began: float, warm_up_seconds: float) -> dict[str, float]:
        return of_rates(self._readings(), limit, began, warm_up_seconds)


@cache
def jmx_port(pid: int) -> int:
    """Where a JVM can be asked that was not started for it."""
    port = processes.free_port()
    options = [f"jmxremote.port={port}", "jmxremote.authenticate=false", "jmxremote.ssl=false"]
    processes.run(["jcmd", str(pid), "ManagementAgent.start", *options])
    return port


def of_sums(readings: Sequence[Reading], limit: float, began: float, warm_up_seconds: float) -> dict[str, float]:
    """The figures of sums that only grow. The rate is that of the window, as of the other: a client moves in waves, and
    a part of one would count for too much.
    """
    return {
        "of_limit_later": mean(rate for at, rate in rates(readings) if at - began >= warm_up_seconds) / limit,
        "burst_seconds": max(taken / limit - (at - began) for at, taken in readings),
    }


def of_rates(readings: Sequence[Reading], limit: float, began: float, warm_up_seconds: float) -> dict[str, float]:
    """The figures of rates over a window."""
    early = [(at - began, rate) for at, rate in readings if 0 <= at - began <= WINDOW_SECONDS]
    return {
        "of_limit_later": mean(rate for at, rate in readings if at - began >= warm_up_seconds) / limit,
        "burst_seconds": max(rate * WINDOW_SECONDS / limit - at for at, rate in early),
    }


def rates(readings: Sequence[Reading]) -> Iterator[Reading]:
    """The rate over the window behind each reading of a sum."""
    first = 0
    for at, taken in readings:
        while at - readings[first + 1][0] >= WINDOW_SECONDS:
            first += 1
        since, before = readings[first]
        if at - since >= WINDOW_SECONDS:
            yield at, (taken - before) / (at - since)


def of_client(page: str, beginning: str, client_id: str) -> float:
    """The sum of a client's lines that begin so on a page of metrics."""
    with urllib.request.urlopen(page) as answer:
        lines = answer.read().decode().splitlines()
    mine = [line for line in lines if line.startswith(beginning) and f'client_id="{client_id}"' in line]
    return sum(float(line.rsplit(" ", 1)[1]) for line in mine)


def time_taken(trio: Trio, member: TrioBroker, client_id: str) -> TimeTaken:
    """What a broker of either product tells."""
    return (KavkaTime if trio.product is KAVKA else KafkaTime)(member, client_id)
