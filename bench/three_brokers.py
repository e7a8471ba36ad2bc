"""Brokers of one product on this machine, three if nothing else is said, each in a rack of its own, as one quorum.

Apache Kafka's nodes get the same server.properties as Kavka's; sessions and intervals are each product's defaults,
because how soon a death is noticed is one of the things that are measured.
"""

import base64
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import admin as kafka_admin

from bench import processes, wire
from bench.brokers import CLUSTER_ID, KAVKA, LOG4J, Broker, Product
from tools.kafka_jars import class_path

NODE_IDS: Final = (1, 2, 3)
WHOLE_SECONDS_MAX: Final = 180.0
LOOK_AGAIN_SECONDS: Final = 0.02
#: A look follows after so many times what the one before took.
LOOKS_APART: Final = 4
#: Of one partition with three replicas, in an answer to Metadata.
METADATA_BYTES_MAX: Final = 64


def directory_id(node_id: int) -> str:
    return base64.urlsafe_b64encode(b"bench directory" + bytes([node_id])).decode().rstrip("=")


class TrioBroker(Broker):
    """One of the three."""

    def __init__(self, product: Product, directory: Path, node_id: int) -> None:
        super().__init__(product, directory)
        self.node_id = node_id
        self.controller_port = processes.free_port()
        self.admin_port = processes.free_port()

    @property
    def voter(self) -> str:
        return f"{self.node_id}@127.0.0.1:{self.controller_port}:{directory_id(self.node_id)}"

    def prepare(self, members: Sequence["TrioBroker"]) -> None:
        """Write the configuration and format the directory."""
        self.directory.mkdir(parents=True)
        config = self.directory / "server.properties"
        config.write_text(properties(self, members))
        (self.directory / "log4j2.properties").write_text(LOG4J.format(directory=self.directory))
        voters = ",".join(member.voter for member in members)
        processes.run(format_command(self.product, config, voters))


def properties(member: TrioBroker, members: Sequence[TrioBroker]) -> str:
    controllers = ",".join(f"127.0.0.1:{other.controller_port}" for other in members)
    listeners = f"PLAINTEXT://127.0.0.1:{member.port},CONTROLLER://127.0.0.1:{member.controller_port}"
    return f"""\
process.roles=broker,controller
node.id={member.node_id}
broker.rack=rack-{member.node_id}
controller.quorum.bootstrap.servers={controllers}
listeners={listeners}
advertised.listeners={listeners}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={member.directory}/data
offsets.topic.replication.factor={len(members)}
transaction.state.log.replication.factor={len(members)}
transaction.state.log.min.isr={min(2, len(members))}
min.insync.replicas={min(2, len(members))}
log.segment.delete.delay.ms=1000
kavka.admin.listener=127.0.0.1:{member.admin_port}
"""


def format_command(product: Product, config: Path, voters: str) -> list[str]:
    if product is KAVKA:
        program = [sys.executable, "-m", "kavka_broker", "format", "--config", str(config), "--cluster-id", CLUSTER_ID]
    else:
        java = ["java", f"-Dlog4j2.configurationFile={config.parent / 'log4j2.properties'}", "-cp", class_path()]
        program = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)]
    return [*program, "--initial-controllers", voters]


class Trio:
    """The three, as one thing to ask; or as many as there are `node_ids`."""

    def __init__(self, product: Product, directory: Path, node_ids: Sequence[int] = NODE_IDS) -> None:
        self.product = product
        self.name = product.name
        self.nice = 0  # of the brokers against other programs
        self.members = [TrioBroker(product, directory / f"node-{node_id}", node_id) for node_id in node_ids]
        for member in self.members:
            member.prepare(self.members)

    @property
    def bootstrap(self) -> str:
        return ",".join(member.bootstrap for member in self.members)

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self.members]

    def start(self) -> None:
        # Alone none of them serves: all are started before anyone is waited for.
        for member in self.members:
            self.launch(member)
        for member in self.members:
            member.wait_until_it_answers()
        self.wait_registered()

    def launch(self, member: TrioBroker) -> None:
        """Start one, and wait for nothing."""
        member.launch()
        if self.nice:
            processes.favour(self.nice, member.pid)

    def stop(self) -> None:
        for member in self.members:
            member.stop(signal.SIGKILL)

    def admin(self) -> kafka_admin.AdminClient:
        return kafka_admin.AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def wait_registered(self) -> None:
        admin = self.admin()
        deadline = time.monotonic() + WHOLE_SECONDS_MAX
        while len(admin.list_topics(timeout=WHOLE_SECONDS_MAX).brokers) < len(self.members):
            if time.monotonic() > deadline:
                raise processes.ClientError(f"{self.name}: not all three have registered")
            time.sleep(LOOK_AGAIN_SECONDS)

    def leader_of_most(self, topic: str) -> TrioBroker:
        found = self.admin().list_topics(topic, WHOLE_SECONDS_MAX).topics[topic].partitions.values()
        leaders = [partition.leader for partition in found]
        most = max((member.node_id for member in self.members), key=leaders.count)
        return next(member for member in self.members if member.node_id == most)

    def wait_whole(self, topic: str, partitions: int, replicas: int = len(NODE_IDS)) -> None:
        """Until every partition has a leader and all replicas in sync, in the eyes of every node."""
        deadline = time.monotonic() + WHOLE_SECONDS_MAX
        for member in self.members:
            began = time.monotonic()
            while not is_whole(member.port, topic, partitions, replicas):
                if time.monotonic() > deadline:
                    raise processes.ClientError(f"{self.name}: {topic} is not whole after {WHOLE_SECONDS_MAX:g} s")
                # Whoever asks for ten thousand partitions again and again is the load that it measures.
                time.sleep(max(LOOK_AGAIN_SECONDS, LOOKS_APART * (time.monotonic() - began)))
                began = time.monotonic()


def is_whole(port: int, topic: str, partitions: int, replicas: int) -> bool:
    """Asked with a bare socket: a client library waits between its attempts to connect, up to ten seconds."""
    try:
        with wire.Connection(port, bytes_max=wire.FETCH_BYTES_MAX + partitions * METADATA_BYTES_MAX) as connection:
            found = wire.in_sync_counts(connection.ask(wire.metadata_frame(topic)))
    except (OSError, wire.WireError):
        return False
    return len(found) == partitions and all(count == replicas for count in found)
