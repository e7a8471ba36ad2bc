"""How many partitions a cluster bears: made, left alone, a node killed, all stopped and started again.

python -m bench.partitions --partitions 10000 --nodes 3                  three replicas of each, on three nodes
python -m bench.partitions --partitions 100000 --nodes 1 --replicas 1    one replica of each, on one node

Of each step it prints the seconds by the clock and the CPU seconds of all nodes: the second says what the step takes
where other programs hold the machine. `gap` is the longest time for which one of some partitions acknowledged nothing.
"""

import argparse
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka import admin as kafka_admin
from confluent_kafka.cimpl import NewTopic

from bench import machine, processes
from bench.brokers import KAVKA, compile_kavka
from bench.cluster import Ticker
from bench.three_brokers import Trio, TrioBroker

#: Of the topics: `many-0`, `many-1`, and so on.
PREFIX: Final = "many"
#: A CreateTopics may ask for so many, as with Apache Kafka: more of them are spread over several topics.
TOPIC_PARTITIONS_MAX: Final = 10_000
CREATE_SECONDS_MAX: Final = 300.0
SETTLE_SECONDS: Final = 15.0
IDLE_SECONDS: Final = 20.0
UNDER_LOAD_SECONDS: Final = 5.0
AFTER_KILL_SECONDS: Final = 15.0
#: Of the first topic's partitions so many are written to, evenly spread, while a node is killed.
WATCHED_MAX: Final = 12
#: So often, which is how finely a gap is told. What writes more often takes more of two cores than what is measured.
WATCHED_A_SECOND: Final = 50


class Steps:
    """Runs the steps one after the other, and prints what each has taken."""

    def __init__(self, cluster: Trio) -> None:
        self.cluster = cluster

    def take(self, what: str, step: Callable[[], object], pids: list[int] | None = None) -> None:
        """`pids` are those of the nodes whose CPU counts, if not all; nodes that end in the step take it with them."""
        meter = machine.Meter(*(self.cluster.pids if pids is None else pids))
        with meter:
            step()
        told(what, meter.cost)


def told(what: str, cost: machine.Cost, more: str = "") -> None:
    cpu = f"cpu {cost.broker.total:6.2f} s" if cost.broker.total else " " * 12
    print(f"{what:44} {cost.wall_seconds:7.2f} s  {cpu}  others {cost.others_cores:4.2f} cores  {more}", flush=True)


def topics(partitions: int) -> dict[str, int]:
    """How many partitions each topic has."""
    begins = range(0, partitions, TOPIC_PARTITIONS_MAX)
    return {f"{PREFIX}-{n}": min(partitions - begin, TOPIC_PARTITIONS_MAX) for n, begin in enumerate(begins)}


def create(cluster: Trio, partitions: int, replicas: int) -> None:
    """Until every node has told a client of all of them, in sync."""
    admin = kafka_admin.AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    waits = {"operation_timeout": CREATE_SECONDS_MAX, "request_timeout": CREATE_SECONDS_MAX}
    for name, count in topics(partitions).items():
        made = admin.create_topics([NewTopic(name, count, replicas)], **waits)
        made[name].result(CREATE_SECONDS_MAX)
    wait_whole(cluster, partitions, replicas)


def wait_whole(cluster: Trio, partitions: int, replicas: int) -> None:
    for name, count in topics(partitions).items():
        cluster.wait_whole(name, count, replicas)


def wait_for_logs(cluster: Trio, logs: int) -> None:
    """Until each node has made its logs: clients are told of a partition before."""
    deadline = time.monotonic() + CREATE_SECONDS_MAX
    while sum(map(logs_of, cluster.members)) < logs:
        if time.monotonic() > deadline:
            raise processes.ClientError(f"not all of {logs} logs are there after {CREATE_SECONDS_MAX:g} s")
        time.sleep(0.2)


def logs_of(member: TrioBroker) -> int:
    return sum(name.startswith(f"{PREFIX}-") for name in os.listdir(member.directory / "data"))


def stand(cluster: Trio) -> str:
    """What all of it holds now."""
    resident = ", ".join(f"{machine.rss_bytes(pid) / 2**20:.0f}" for pid in cluster.pids)
    files = ", ".join(str(len(os.listdir(f"/proc/{pid}/fd"))) for pid in cluster.pids)
    return f"resident {resident} MiB; open files {files}"


def kill(cluster: Trio, partitions: int, replicas: int) -> None:
    """Kill -9 of one node under a little load, and its start, until all is in sync again."""
    topic, count = next(iter(topics(partitions).items()))
    watched = range(0, count, -(-count // WATCHED_MAX))
    ticker = Ticker(cluster.bootstrap, topic, watched, values_a_second=WATCHED_A_SECOND)
    time.sleep(UNDER_LOAD_SECONDS)
    victim = cluster.members[0]
    ticker.reset()
    with machine.Meter(*(member.pid for member in cluster.members[1:])) as meter:
        victim.stop(signal.SIGKILL)
        time.sleep(AFTER_KILL_SECONDS)
    told("kill -9 of one, and a while", meter.cost, f"gap {max(ticker.longest.values()):.2f} s")
    ticker.reset()
    steps = Steps(cluster)
    cluster.launch(victim)
    steps.take("in sync again after", lambda: wait_whole(cluster, partitions, replicas))
    time.sleep(UNDER_LOAD_SECONDS)
    print(f"gap while it comes back: {max(ticker.longest.values()):.2f} s")
    ticker.stop()


def stop_all(cluster: Trio) -> None:
    """All together, as `kavka down` does it. A second signal would end them at once."""
    for pid in cluster.pids:
        os.kill(pid, signal.SIGTERM)
    for member in cluster.members:
        member.wait_until_gone()


def start_all(cluster: Trio, partitions: int, replicas: int) -> None:
    for member in cluster.members:
        cluster.launch(member)
    wait_whole(cluster, partitions, replicas)


def run(cluster: Trio, partitions: int, replicas: int) -> None:
    steps = Steps(cluster)
    cluster.start()
    steps.take("created, known to all", lambda: create(cluster, partitions, replicas))
    steps.take("and all logs made after", lambda: wait_for_logs(cluster, partitions * replicas))
    time.sleep(SETTLE_SECONDS)
    with machine.Meter(*cluster.pids) as meter:
        time.sleep(IDLE_SECONDS)
    share = meter.cost.broker.total / meter.cost.wall_seconds * 100
    told("idle", meter.cost, f"{share:.1f} % of a core; {stand(cluster)}")
    if len(cluster.members) > 1:
        kill(cluster, partitions, replicas)
        print(stand(cluster))
    steps.take("all stopped", lambda: stop_all(cluster), pids=[])
    with machine.Meter() as meter:
        start_all(cluster, partitions, replicas)
    cpu = sum(machine.cpu_of(pid).total for pid in cluster.pids)
    told("all started, in sync everywhere", meter.cost, f"cpu {cpu:.2f} s; {stand(cluster)}")
    time.sleep(SETTLE_SECONDS)
    with machine.Meter(*cluster.pids) as meter:
        time.sleep(IDLE_SECONDS)
    share = meter.cost.broker.total / meter.cost.wall_seconds * 100
    told("idle", meter.cost, f"{share:.1f} % of a core; {stand(cluster)}")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.partitions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where the nodes keep their logs; a temporary one by default")
    parser.add_argument("--nice", type=int, default=0, help="of the nodes against other programs (root)")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    processes.end_all_at_exit()
    compile_kavka()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    root = Path(tempfile.mkdtemp(prefix="kavka-partitions-", dir=chosen.directory))
    cluster = Trio(KAVKA, root, range(1, chosen.nodes + 1))
    cluster.nice = chosen.nice
    try:
        run(cluster, chosen.partitions, chosen.replicas)
    finally:
        processes.stop_all()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
