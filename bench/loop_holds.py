"""How long large requests hold the loop of a Kavka broker, by its own watchdog.

python -m bench.loop_holds --elements 20000

Each API of a broker is asked once with very many elements, and a topic of 10,000 partitions is made, grown and deleted.
Told is what `kavka_loop_held_total` and `kavka_loop_held_seconds_total` have grown by meanwhile: callbacks that ran for
more than 10 ms, of which most requests have none. An API that takes no request of that size closes the connection. The
watchdog goes by the clock: on a machine that is busy with something else it also counts what waited for a core.
"""

import argparse
import os
import re
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import machine, processes, wire
from bench.brokers import KAVKA, Broker, compile_kavka
from bench.large import large
from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.request.registry import Api

PARTITIONS: Final = 10_000
TIMEOUT_MS: Final = 60_000
#: What goes on behind an answer belongs to its request: logs are opened, partitions ended.
SETTLE_SECONDS: Final = 0.5
METRIC: Final = re.compile(r'^kavka_loop_held_(total|seconds_total)\{callback="(.*)"\} (\S+)$', re.MULTILINE)
ADMIN_PORT: Final = re.compile(r"^kavka\.admin\.listener=.*:(\d+)$", re.MULTILINE)

Held = dict[str, dict[str, float]]  # "total" and "seconds_total" by callback
Play = tuple[str, Message, int]  # what it is, the request, its version


def plays(apis: list[Api], elements: int) -> Iterator[Play]:
    """What the broker is asked."""
    for api in apis:
        yield api.name, fitting(api, elements), api.versions[1]
    made = CreatableTopic("large", PARTITIONS, 1)
    yield f"{PARTITIONS:,} partitions made", CreateTopicsRequest([made], TIMEOUT_MS), 7
    grown = CreatePartitionsTopic("large", 2 * PARTITIONS, None)
    yield f"{PARTITIONS:,} partitions more", CreatePartitionsRequest([grown], TIMEOUT_MS), 3
    yield f"{2 * PARTITIONS:,} partitions deleted", DeleteTopicsRequest([DeleteTopicState("large")], [], TIMEOUT_MS), 6


def fitting(api: Api, elements: int) -> Message:
    """As many elements as the API takes bytes for."""
    request = large(api, elements)
    while elements > 1 and len(encode(request, api.versions[1])) > api.bytes_max - 1024:
        elements //= 2
        request = large(api, elements)
    return request


def held(admin_port: int) -> Held:
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/metrics") as page:
        text = page.read().decode()
    found: Held = {"total": {}, "seconds_total": {}}
    for kind, callback, value in METRIC.findall(text):
        found[kind][callback] = float(value)
    return found


def grown_by(before: Held, after: Held) -> list[tuple[str, int, float]]:
    """Callback, how often it has held the loop meanwhile, and for how many ms in all; the longest in all first."""
    found = []
    for callback, count in after["total"].items():
        more = int(count - before["total"].get(callback, 0))
        if more:
            seconds = after["seconds_total"][callback] - before["seconds_total"].get(callback, 0)
            found.append((callback, more, seconds * 1000))
    return sorted(found, key=lambda one: -one[2])


def play(port: int, request: Message, version: int) -> tuple[int, str]:
    """How many bytes were sent, and when the answer came."""
    assert request.API_KEY is not None
    header = encode_request_header(RequestHeader(request.API_KEY, version, 7, "turns"))
    body = header + encode(request, version)
    started = time.perf_counter()
    try:
        with wire.Connection(port, TIMEOUT_MS / 1000, bytes_max=64 << 20) as connection:
            connection.ask(len(body).to_bytes(4, "big") + body)
    except (wire.WireError, ConnectionError):
        return len(body), "refused"
    return len(body), f"{(time.perf_counter() - started) * 1000:,.0f}"


def run(broker: Broker, elements: int) -> None:
    port = int(ADMIN_PORT.findall((broker.directory / "server.properties").read_text())[0])
    print("| request | bytes | answered after ms | callbacks over 10 ms |\n|---|---:|---:|---|")
    apis = [api for api in load().values() if "broker" in api.on]
    for name, request, version in plays(apis, elements):
        before = held(port)
        size_bytes, answered = play(broker.port, request, version)
        time.sleep(SETTLE_SECONDS)
        found = [f"{count} of {callback}: {ms:.0f} ms" for callback, count, ms in grown_by(before, held(port))]
        print(f"| {name} | {size_bytes:,} | {answered} | {', '.join(found) or '-'} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.loop_holds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--elements", type=int, default=20_000, help="of each request, and as many again within them")
    chosen = parser.parse_args()
    processes.end_all_at_exit()
    compile_kavka()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    root = Path(tempfile.mkdtemp(prefix="kavka-turns-"))
    broker = Broker(KAVKA, root / "kavka")
    try:
        broker.format()
        broker.start()
        run(broker, chosen.elements)
        print(f"CPU of the broker: {machine.cpu_of(broker.pid).total:.1f} s")
        broker.stop()
    finally:
        processes.stop_all()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
