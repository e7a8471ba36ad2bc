"""An audit trail and its clients: what they counted, runs that are made now, and the tables of the newest."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from e2e import needs
from e2e.cluster_namespace import Scene
from e2e.kubectl import SECONDS_MAX, until
from tests.kube.objects import pool, quota, volumes
from tests.support.control_plane import Json

RECORDS, SIZE = 3_000, 200
HELD_BACK, QUOTA_BYTES = 60, 1_000
NODE = pool("nodes", replicas=1, storage=volumes({"name": "data", "size": "1Gi"}))
CONFIG = {"kavka.audit.interval.ms": "1000"}
RUN_SECONDS_MAX = 1_200
"""A run of Spark compiles much, on processors that it shares with the node."""
ANALYTICS: Json = {
    "schedule": "0 0 1 1 *",  # at New Year
    "storage": {"volume": {"size": "1Gi"}},
    "resources": {"cpu": "250m", "memory": "1Gi"},
}
FLIGHTS, OLD = "flights", "old"


@dataclass(slots=True)
class Clients:
    """Clients on this machine, and what they were told. `who` says to one of a name how it reaches the brokers."""

    who: Callable[[str], dict[str, Any]]
    written: int = 0
    held_back: int = 0
    delays_ms: list[int] = field(default_factory=list)

    def prepare(self) -> None:
        """Make two topics, and delete one of them."""
        admin = AdminClient(self.who("importer"))
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in (FLIGHTS, OLD)]).values():
            made.result(SECONDS_MAX)
        admin.delete_topics([OLD])[OLD].result(SECONDS_MAX)

    def write(self, count: int) -> None:
        """Produce as many records, all of which are kept."""
        faults = self._send(count, "importer")
        assert faults == [None] * count
        self.written += count

    def be_held_back(self) -> None:
        """Produce more than the quota of this client lets through, one record a request."""
        faults = self._send(HELD_BACK, "loader", each=True)
        assert faults == [None] * HELD_BACK
        self.held_back += HELD_BACK
        assert self.delays_ms

    def read(self) -> None:
        """Consume all that was written."""
        consumer = Consumer({**self.who("reader"), "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe([FLIGHTS])
        found = 0

        def is_done() -> bool:
            nonlocal found
            found += sum(message.error() is None for message in consumer.consume(500, 1.0))
            return found >= self.written

        until(is_done)
        consumer.close()
        assert found == self.written

    def _send(self, count: int, name: str, *, each: bool = False) -> list[Any]:
        """Produce; the fault of each record, None where it was kept."""
        faults: list[Any] = []
        producer = Producer({**self.who(name), "acks": "all", "throttle_cb": self._throttled})
        for _ in range(count):
            producer.produce(FLIGHTS, b"v" * SIZE, on_delivery=lambda fault, _: faults.append(fault))
            producer.poll(0)
            if each:
                assert producer.flush(SECONDS_MAX) == 0
        assert producer.flush(SECONDS_MAX) == 0
        return faults

    def _throttled(self, event: Any) -> None:
        self.delays_ms.append(round(event.throttle_time * 1000))


def play(scene: Scene, clients: Clients) -> None:
    """Have clients make topics, write and read, and one of them meet its quota."""
    clients.prepare()
    scene.make(quota("loader", entity={"clientId": {"name": "loader"}}, limits={"producerByteRate": QUOTA_BYTES}))
    scene.until_ready("clientquotas", "loader")
    clients.write(RECORDS)
    clients.read()
    clients.be_held_back()


def run(scene: Scene, name: str) -> tuple[str, str]:
    """Begin a run now, as the page of documentation says, and wait for its end: Complete or Failed, and its words."""
    scene.ask("create", "job", name, "--from=cronjob/main-audit")

    def ended() -> str:
        status = json.loads(scene.ask("get", "job", name, "--output", "json")).get("status", {})
        ends = (found["type"] for found in status.get("conditions", ()) if found["type"] in {"Complete", "Failed"})
        return next(ends, "")

    until(ended, RUN_SECONDS_MAX)
    return ended(), scene.ask("logs", f"job/{name}", "--container", "audit")


def lake(scene: Scene) -> Path:
    """The directory that this Kubernetes gives as the volume of the analytics."""
    volume = scene.ask("get", "pvc", "main-audit", "--output", "jsonpath={.spec.volumeName}")
    return needs.volumes() / volume / "audit"


def table(scene: Scene, name: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    return answer(lake(scene), name)


def answer(place: Path, name: str) -> list[dict[str, Any]]:
    """The rows of an answer below a directory."""
    found = duckdb.connect().read_parquet(str(place / "tables" / f"{name}.parquet"))
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def counted(place: Path) -> tuple[int, int, int]:
    """What the answers say: records of the importer, those of the loader, and milliseconds that the loader waited."""
    delays = answer(place, "throttle_incidents")
    written = dict.fromkeys(("importer", "loader"), 0)
    for row in answer(place, "top_talkers"):
        if (row["operation"], row["topic"]) == ("WRITE", FLIGHTS):
            written[row["client_id"]] += row["records"]
    waited_ms = sum(row["throttle_time_ms"] for row in delays if row["client_id"] == "loader")
    return written["importer"], written["loader"], waited_ms


def until_told(scene: Scene, name: str, clients: Clients, place: Path | None = None) -> str:
    """Run until the answers say what clients counted, as a trail is written a moment later; what the last run said.
    They are in the volume of the analytics, or below a directory.
    """
    said: list[str] = []
    wanted = (clients.written, clients.held_back, sum(clients.delays_ms))

    def is_told() -> bool:
        end, words = run(scene, f"{name}-{len(said)}")
        assert end == "Complete", words
        said.append(words)
        found = counted(place or lake(scene))
        assert all(part <= most for part, most in zip(found, wanted, strict=True)), (found, wanted)
        return found == wanted

    until(is_told)
    return said[-1]


def analytics(scene: Scene) -> Json:
    """What the cluster's status says of the runs."""
    found: Json = scene.status().get("analytics", {})
    return found
