"""Several nodes as processes on loopback: a cluster for tests that speak to it as clients do.

    with cluster(tmp_path) as nodes:                           # 1, 2, 3: broker and controller each
    with cluster(tmp_path, combined(3), static=True)           # the same with controller.quorum.voters
    with cluster(tmp_path, apart(controllers=1, brokers=3))    # controllers from 100 on

A node keeps its addresses and its directory through kills and restarts. KAVKA_TEST_SERVER=apache-kafka runs the same on
Apache Kafka.
"""

import base64
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tests.support.servers import (
    CLUSTER_ID,
    LOG4J,
    POLL_SECONDS,
    Server,
    ServerError,
    format_directory,
    format_kavka,
    free_port,
    is_apache_kafka,
)
from tests.support.wire import LOOK_SECONDS_MAX, brokers_named
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

WAIT_SECONDS_MAX: Final = 150.0  # a survey asks each broker in turn, and a busy machine has three lanes of tests
BOTH: Final = "broker,controller"
FIRST_CONTROLLER: Final = 100
SETTINGS: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, slots=True)
class Place:
    """One node to be: its id, its roles, and where it will listen."""

    node_id: int
    roles: str = BOTH
    rack: str | None = None
    port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    inside_port: int = field(default_factory=free_port)  # of a listener of brokers alone, where the settings name one

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def directory_id(self) -> str:
        """The id of its log directory, as Kafka writes ids."""
        return base64.urlsafe_b64encode(b"log directory " + self.node_id.to_bytes(2, "big")).decode().rstrip("=")


def combined(count: int = 3) -> list[Place]:
    """Nodes that are broker and controller each, in a rack of their own."""
    return [Place(number, rack=f"rack-{number}") for number in range(1, count + 1)]


def apart(controllers: int, brokers: int) -> list[Place]:
    """Controllers from 100 on, and brokers from 1 on."""
    return [Place(FIRST_CONTROLLER + number, "controller") for number in range(controllers)] + [
        Place(number, "broker", f"rack-{number}") for number in range(1, brokers + 1)
    ]


@dataclass(slots=True)
class Nodes:
    """The nodes by id, started or not."""

    places: Sequence[Place]
    servers: dict[int, Server] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{place.port}" for place in self.places if place.is_broker)

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(f"127.0.0.1:{place.controller_port}" for place in self.places if place.is_controller)

    def __getitem__(self, node_id: int) -> Server:
        return self.servers[node_id]

    @property
    def broker_ids(self) -> list[int]:
        return [place.node_id for place in self.places if place.is_broker]

    def start(self, *node_ids: int) -> None:
        """Start these, or all, side by side, and wait until every broker among them answers and takes part: one that
        only answers is still fenced, and is given no partition.
        """
        chosen = [place for place in self.places if not node_ids or place.node_id in node_ids]
        for place in chosen:
            self.servers[place.node_id].launch()
        for place in chosen:
            if place.is_broker:
                self.servers[place.node_id].wait_ready()
        for place in chosen:
            if place.is_broker:
                self.wait(f"broker {place.node_id} takes part", partial(self._takes_part, place))

    def _takes_part(self, place: Place) -> bool:
        try:
            return place.node_id in brokers_named(self.servers[place.node_id].address, LOOK_SECONDS_MAX)
        except OSError:
            return False

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.servers[node_id].kill()

    def end(self) -> None:
        for server in self.servers.values():
            server.kill()

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        """Ask again until it is true."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {node_id}\n{server.last_lines()}" for node_id, server in self.servers.items())
                raise ServerError(f"not within {WAIT_SECONDS_MAX:g} s: {what}\n{logs}")
            time.sleep(POLL_SECONDS)


@contextmanager
def cluster(
    directory: Path,
    places: Sequence[Place] | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    static: bool = False,
    started: bool = True,
    late: Collection[int] = (),
    options: Sequence[str] = (),
) -> Iterator[Nodes]:
    """Formatted nodes, started unless told otherwise, killed at the end. `static`: by controller.quorum.voters.

    Controllers that are `late` are formatted without a vote, and all with these `options`.
    """
    chosen = combined() if places is None else places
    nodes = prepare(directory, chosen, settings or {}, static=static, late=late, options=options)
    try:
        if started:
            nodes.start()
        yield nodes
    finally:
        nodes.end()


def prepare(
    directory: Path,
    places: Sequence[Place],
    settings: Mapping[str, str],
    *,
    static: bool = False,
    late: Collection[int] = (),
    options: Sequence[str] = (),
) -> Nodes:
    nodes = Nodes(places)
    for place in places:
        home = directory / f"node-{place.node_id}"
        home.mkdir(parents=True)
        config = write_properties(home, place, places, settings, static=static)
        program = format_node(home, place, places, config, static=static, late=late, options=options)
        nodes.servers[place.node_id] = Server([*program, str(config)], ("127.0.0.1", place.port), home)
    return nodes


def write_properties(
    home: Path, place: Place, places: Sequence[Place], settings: Mapping[str, str], *, static: bool
) -> Path:
    controllers = [one for one in places if one.is_controller]
    inside = settings.get("inter.broker.listener.name", "PLAINTEXT")
    listeners = [f"PLAINTEXT://127.0.0.1:{place.port}"] if place.is_broker else []
    if place.is_broker and inside != "PLAINTEXT":
        listeners.append(f"{inside}://127.0.0.1:{place.inside_port}")
    if place.is_controller:
        listeners.append(f"CONTROLLER://127.0.0.1:{place.controller_port}")
    values = {
        "process.roles": place.roles,
        "node.id": str(place.node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(home / "data"),
        **SETTINGS,
        **settings,
    }
    if place.is_broker:
        values["inter.broker.listener.name"] = inside
    if place.rack is not None:
        values["broker.rack"] = place.rack
    if static:
        values["controller.quorum.voters"] = ",".join(
            f"{controller.node_id}@127.0.0.1:{controller.controller_port}" for controller in controllers
        )
    else:
        values["controller.quorum.bootstrap.servers"] = ",".join(
            f"127.0.0.1:{controller.controller_port}" for controller in controllers
        )
    if not is_apache_kafka():
        values.setdefault("kavka.admin.listener", "")
    path = home / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def format_node(
    home: Path,
    place: Place,
    places: Sequence[Place],
    config: Path,
    *,
    static: bool,
    late: Collection[int] = (),
    options: Sequence[str] = (),
) -> list[str]:
    """Format the directory; returns the command that runs the node, without the path of its configuration."""
    first = [one for one in places if one.is_controller and one.node_id not in late]
    voters = ",".join(f"{one.node_id}@127.0.0.1:{one.controller_port}:{one.directory_id}" for one in first)
    how = [] if static else ["--initial-controllers", voters] if place in first else ["--no-initial-controllers"]
    how += options
    if not is_apache_kafka():
        format_kavka(config, *how)
        return [sys.executable, "-m", "kavka_broker", "run", "--config"]
    logging = home / "log4j2.properties"
    logging.write_text(LOG4J)
    program = [*java("384M"), f"-Dlog4j2.configurationFile={logging}", f"-Dkafka.logs.dir={home}", "-cp", class_path()]
    format_directory([*program, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config), *how], home)
    return [*program, "kafka.Kafka"]
