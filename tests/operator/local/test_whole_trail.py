"""From resources to the report: three brokers with logins over TLS, access rules and an audit trail; five users with
clients of three makers; and every number of the report is what the clients counted.
"""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import duckdb
import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.errors import TopicAuthorizationFailedError

from kavka_audit.completeness.clients import CountedConsumer, CountedProducer, Teller
from kavka_audit.completeness.offset_ranges import BUCKET_MS, bucket_of
from kavka_audit.completeness.reports import TOPIC as COUNTS_TOPIC
from tests.conformance.security.test_kafka_users import of_librdkafka
from tests.operator.local.support import wait_until
from tests.operator.local.test_secured import Secured
from tests.support.programs import kafka_tool
from tools.ktool import command

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.extended]

SHOP_RECORDS, JAVA_RECORDS, PYTHON_RECORDS, LOADER_RECORDS, REFUSED_RECORDS = 3_000, 700, 800, 60, 9
RATE = 100_000
BROKERS = 3
LOADER_SIZE = 25_000
CLOSED_MS = bucket_of(int(time.time() * 1000)) - 3 * BUCKET_MS + 5
"""A moment in a bucket that is closed whenever the test runs."""

TOPIC = """---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {{name: {name}}}
spec: {{clusterRef: {{name: quickstart}}, partitions: {partitions}, replicationFactor: 3}}
"""
USER = """---
apiVersion: kavka.dev/v1alpha1
kind: KafkaUser
metadata: {{name: {name}}}
spec:
  clusterRef: {{name: quickstart}}
  acls:
    - {{resource: {{type: Topic, name: {topic}}}, operations: [{operations}]}}
    - {{resource: {{type: Group, name: {name}-, patternType: Prefixed}}, operations: [Read]}}
{more}"""
COUNTS = "    - {resource: {type: Topic, name: __audit_counts}, operations: [Write, Describe]}\n"
TOPICS = {"orders": 6, "rides": 3, "songs": 3, "bulk": 1, "vault": 3}
USERS = {
    "shop": ("orders", "Write, Read, Describe", COUNTS),
    "java": ("rides", "Write, Read, Describe", ""),
    "python": ("songs", "Write, Read, Describe", ""),
    "loader": ("bulk", "Write, Describe", f"  quotas: {{producerByteRate: {RATE}}}\n"),
    "stranger": ("vault", "Describe", ""),
}
AUDITOR = """
apiVersion: kavka.dev/v1alpha1
kind: KafkaUser
metadata: {name: auditor}
spec:
  clusterRef: {name: quickstart}
  acls:
    - {resource: {type: Topic, name: __audit_events}, operations: [Read, Describe]}
    - {resource: {type: Topic, name: __audit_counts}, operations: [Read]}
    - {resource: {type: Topic, name: orders}, operations: [Read]}
    - {resource: {type: Group, name: kavka-audit}, operations: [Read]}
    - {resource: {type: Topic, name: "*"}, operations: [Describe, DescribeConfigs]}
    - {resource: {type: Cluster}, operations: [Describe, DescribeConfigs]}
"""
RULES = sum(len(operations.split(",")) + 1 for _, operations, _ in USERS.values()) + 2  # and two for counts


@dataclass(slots=True)
class Counted:
    """What the clients have counted themselves."""

    throttles_seconds: list[float] = field(default_factory=list)
    refused: int = 0


class Scene:
    """The cluster as a person has it, and what its users are told in their Secrets."""

    def __init__(self, kavka: Secured) -> None:
        self.kavka = kavka
        self.authority = str(kavka.certificates / "ca.crt")
        self.secrets: dict[str, dict[str, str]] = {}

    def up(self, config: str) -> None:
        file = self.kavka.secured(brokers=BROKERS, config=config)
        given = file.read_text().replace("spec:\n  nodePools", "spec:\n  audit: {}\n  nodePools", 1)
        topics = "".join(TOPIC.format(name=name, partitions=count) for name, count in TOPICS.items())
        users = "".join(
            USER.format(name=name, topic=topic, operations=operations, more=more)
            for name, (topic, operations, more) in USERS.items()
        )
        file.write_text(f"{given}\n{topics}{users}")
        self.kavka.up(file)
        names = [f"kvu/{name}" for name in USERS] + [f"kvt/{name}" for name in TOPICS]
        code, said = self.kavka.run("wait", *names, "--for", "condition=Ready", "--timeout=120s")
        assert code == 0, said + self.kavka.said
        self.secrets = {user: self._secret(user) for user in USERS}

    def place(self, user: str) -> Path:
        """Where the Secret of a user is, once it says where to begin."""
        place = Path(json.loads(self.kavka.run("get", "kvu", user, "-o", "json")[1])["status"]["secret"])
        wait_until((place / "bootstrap.servers").exists, "addresses stand in the Secret")
        return place

    def _secret(self, user: str) -> dict[str, str]:
        place = self.place(user)
        return {path.name: path.read_text() for path in place.iterdir() if not path.name.startswith(".")}

    def librdkafka(self, user: str, **more: Any) -> dict[str, Any]:
        return of_librdkafka(self.secrets[user], **{"ssl.ca.location": self.authority, "client.id": user, **more})

    def java(self, user: str) -> tuple[str, ...]:
        """The options by which Apache Kafka's tools are this user: the Secret's file, and who is trusted."""
        secret, path = self.secrets[user], self.kavka.directory / f"{user}.properties"
        trust = f"ssl.truststore.type=PEM\nssl.truststore.location={self.authority}\n"
        trust += f"client.id={user}\nenable.idempotence=false\n"
        path.write_text(f"{secret['client.properties']}\n{trust}")
        return ("--bootstrap-server", secret["bootstrap.servers"], "--command-config", str(path))

    def python(self, user: str) -> dict[str, Any]:
        secret = self.secrets[user]
        return {
            "bootstrap_servers": secret["bootstrap.servers"].split(","),
            "security_protocol": secret["security.protocol"],
            "sasl_mechanism": secret["sasl.mechanism"],
            "sasl_plain_username": secret["username"],
            "sasl_plain_password": secret["password"],
            "ssl_cafile": self.authority,
            "client_id": user,
        }


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    kavka = Secured(tmp_path)
    try:
        yield Scene(kavka)
    finally:
        kavka.end()


def shop(scene: Scene) -> None:
    """A producer and a group of librdkafka, which tell what they wrote and read."""
    tellers = [Teller(Producer(scene.librdkafka("shop")), tier, "shop-1") for tier in ("producer", "consumer")]
    producer = CountedProducer(Producer(scene.librdkafka("shop", **{"enable.idempotence": True})), tellers[0])
    for number in range(SHOP_RECORDS):
        producer.produce("orders", b"v" * 100, str(number).encode(), timestamp=CLOSED_MS)
        producer.poll(0)
    assert producer.flush(60) == 0
    settings = scene.librdkafka("shop", **{"group.id": "shop-1", "auto.offset.reset": "earliest"})
    consumer = CountedConsumer(Consumer(settings), tellers[1])
    consumer.subscribe(["orders"])
    for _ in range(SHOP_RECORDS):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
    consumer.close()
    for teller in tellers:
        teller.close()


def java(scene: Scene) -> None:
    """Apache Kafka's console clients."""
    options = scene.java("java")
    kafka_tool("console-producer", *options, "--topic", "rides", stdin="".join(f"{n}\n" for n in range(JAVA_RECORDS)))
    words = ("--topic", "rides", "--group", "java-1", "--from-beginning", "--max-messages", str(JAVA_RECORDS))
    said = kafka_tool("console-consumer", *options, *words)
    assert len([line for line in said.splitlines() if line.isdigit()]) == JAVA_RECORDS


def python(scene: Scene) -> None:
    """A producer and a consumer of kafka-python."""
    producer = kafka.KafkaProducer(**scene.python("python"))
    sent = [producer.send("songs", b"la" * 20) for _ in range(PYTHON_RECORDS)]
    producer.flush()
    assert all(future.get(60) for future in sent)
    producer.close()
    more = {"group_id": "python-1", "auto_offset_reset": "earliest", "consumer_timeout_ms": 60_000}
    consumer = kafka.KafkaConsumer("songs", **scene.python("python"), **more)
    for _ in range(PYTHON_RECORDS):
        assert next(consumer).value == b"la" * 20
    consumer.close()


def loader(scene: Scene, counted: Counted) -> None:
    """A producer that is held back by its limit, and is told so."""

    def throttled(event: Any) -> None:
        if event.throttle_time > 0:
            counted.throttles_seconds.append(event.throttle_time)

    one_each = {"linger.ms": 0, "batch.num.messages": 1, "max.in.flight": 1, "throttle_cb": throttled}
    producer = Producer(scene.librdkafka("loader", **one_each))
    for _ in range(LOADER_RECORDS):
        producer.produce("bulk", b"x" * LOADER_SIZE)
        producer.poll(0)
    assert producer.flush(120) == 0
    producer.poll(1)


def stranger(scene: Scene, counted: Counted) -> None:
    """A user that may see a topic, and nothing more: each maker's client is told."""

    def told(error: KafkaError | None, _: Message) -> None:
        counted.refused += error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED

    producer = Producer(scene.librdkafka("stranger"))
    producer.produce("vault", b"x", partition=0, on_delivery=told)  # another would be refused by the library itself
    assert producer.flush(60) == 0
    writer = kafka.KafkaProducer(**scene.python("stranger"), enable_idempotence=False)
    for _ in range(REFUSED_RECORDS):
        with pytest.raises(TopicAuthorizationFailedError):
            writer.send("vault", b"x", partition=1).get(60)
        counted.refused += 1
    writer.close()
    words = command("console-producer", *scene.java("stranger"), "--topic", "vault")
    said = subprocess.run(words, input="x\n", capture_output=True, text=True, check=False, timeout=120).stderr
    assert said.count("TopicAuthorizationException") == 1, said
    counted.refused += 1


class Report:
    """The tables of the newest run."""

    def __init__(self, scene: Scene) -> None:
        self.directory = scene.kavka.directory / "audit"
        code, self.said = scene.kavka.run("audit", "run", "--directory", str(self.directory))
        assert code == 0, self.said

    def table(self, name: str) -> list[dict[str, Any]]:
        found = duckdb.read_parquet(str(self.directory / "tables" / f"{name}.parquet"))
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def use(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """The use of topics by people: principal, operation, topic."""
        return {
            (row["principal"].removeprefix("User:"), row["operation"], row["topic"]): row
            for row in self.table("top_talkers")
            if row["topic"] in TOPICS
        }


def sizes(scene: Scene) -> dict[str, int]:
    """The bytes of each topic in one copy, as Apache Kafka's tool adds them up."""
    address = ("--bootstrap-server", f"127.0.0.1:{scene.kavka.nodes_port}")
    own = scene.kavka.certificates / "operator" / "client.properties"
    said = kafka_tool(
        "log-dirs", *address, "--command-config", str(own), "--describe", "--topic-list", ",".join(TOPICS)
    )
    found: Counter[str] = Counter()
    for broker in json.loads(said.splitlines()[-1])["brokers"]:
        for place in broker["logDirs"]:
            for partition in place["partitions"]:
                found[partition["partition"].rpartition("-")[0]] += partition["size"]
    return {topic: size // BROKERS for topic, size in found.items()}


WRITTEN = {
    ("shop", "orders"): SHOP_RECORDS,
    ("java", "rides"): JAVA_RECORDS,
    ("python", "songs"): PYTHON_RECORDS,
    ("loader", "bulk"): LOADER_RECORDS,
}


def has_told_all(report: Report, counted: Counted) -> bool:
    """Whether the trail has got as far as the clients."""
    use = report.use()
    held = sum(row["requests"] for row in report.table("throttle_incidents"))
    return (
        all(use.get((user, "WRITE", topic), {}).get("records") == count for (user, topic), count in WRITTEN.items())
        and all((user, "READ", topic) in use for user, topic in WRITTEN if user != "loader")
        and sum(row["times"] for row in report.table("denied_operations")) >= counted.refused
        and held >= len(counted.throttles_seconds)
    )


def test_every_number_of_the_report_is_what_clients_counted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.up('{kavka.audit.interval.ms: "1000"}')
    admin = AdminClient(scene.kavka.as_operator())
    admin.create_topics([NewTopic(COUNTS_TOPIC, 3, 3)])[COUNTS_TOPIC].result(60)
    counted, reports = Counted(), list[Report]()
    with ThreadPoolExecutor() as pool:
        acts = [pool.submit(act, scene) for act in (shop, java, python)]
        acts += [pool.submit(act, scene, counted) for act in (loader, stranger)]
    for act in acts:
        act.result()

    def told() -> bool:
        reports.append(Report(scene))
        return has_told_all(reports[-1], counted)

    wait_until(told, "the trail has told what the clients did")
    report = reports[-1]
    use, size = report.use(), sizes(scene)
    wrote = {(user, topic): row for (user, operation, topic), row in use.items() if operation == "WRITE"}
    assert {key: row["records"] for key, row in wrote.items()} == WRITTEN
    assert {topic: row["bytes"] for (_, topic), row in wrote.items()} == {
        topic: count for topic, count in size.items() if topic != "vault"
    }
    read = {user: row["bytes"] for (user, operation, _), row in use.items() if operation == "READ"}
    assert (read["shop"], read["java"]) == (size["orders"], size["rides"])
    assert read["python"] >= size["songs"]  # kafka-python fetches some batches twice, and is sent them twice
    assert set(read) == {"shop", "java", "python"}

    (refusal,) = report.table("denied_operations")
    assert (refusal["principal"], refusal["operation"], refusal["resource"]) == ("User:stranger", "WRITE", "vault")
    assert refusal["times"] == counted.refused
    incidents = report.table("throttle_incidents")
    assert {(row["principal"], row["quota_type"], row["quota_limit"]) for row in incidents} == {
        ("User:loader", "produce", RATE)
    }
    assert sum(row["requests"] for row in incidents) == len(counted.throttles_seconds) > 0
    assert sum(row["throttle_time_ms"] for row in incidents) == round(1000 * sum(counted.throttles_seconds))
    assert max(row["throttle_time_ms_max"] for row in incidents) == round(1000 * max(counted.throttles_seconds))

    verdicts = {
        (row["topic"], row["tier"], row["name"]): (row["expected"], row["missing"], row["duplicates"])
        for row in report.table("completeness")
        if row["is_closed"]
    }
    whole = (SHOP_RECORDS, 0, 0)
    assert verdicts == {("orders", "log", ""): whole, ("orders", "consumer", "shop-1"): whole}
    assert {row["completeness"] for row in report.table("topic_completeness")} == {1.0}
    pairs = {(row["writer"], row["reader"], row["topic"]) for row in report.table("lineage") if row["topic"] in TOPICS}
    assert pairs == {(f"User:{user}", f"User:{user}", topic) for user, topic in WRITTEN if user != "loader"}
    changes = report.table("config_changes")
    made = [row["resource_type"] for row in changes if row["operation"] == "CREATE"]
    assert made.count("acl") == RULES, changes
    assert report.table("audit_gaps") == report.table("unused_grants") == []
    code, said = scene.kavka.run("audit", "verify", "--key-file", str(scene.kavka.cluster / "audit.key"))
    assert code == 0, said
    assert (said.count(": sound: "), said.count(" 0 lost,")) == (3, 3), said
    assert leaked(scene) == []
    monkeypatch.setenv("SSL_CERT_FILE", scene.authority)
    asked_as_the_auditor(scene)


def asked_as_the_auditor(scene: Scene) -> None:
    """A run is nobody else than a KafkaUser with least rights, by its Secret as it stands, as a CronJob's runs are."""
    file, directory = scene.kavka.directory / "auditor.yaml", scene.kavka.directory / "own"
    file.write_text(AUDITOR)
    assert scene.kavka.run("apply", "-f", str(file))[0] == 0
    code, said = scene.kavka.run("wait", "kvu/auditor", "--for", "condition=Ready", "--timeout=120s")
    assert code == 0, said + scene.kavka.said
    config = scene.place("auditor") / "client.properties"
    code, said = scene.kavka.run("audit", "run", "--command-config", str(config), "--directory", str(directory))
    assert code == 0, said
    assert "not told" not in said
    whole = duckdb.read_parquet(str(directory / "tables" / "top_talkers.parquet"))
    assert whole.filter("topic = 'orders' AND operation = 'WRITE'").project("records").fetchall() == [(SHOP_RECORDS,)]


def leaked(scene: Scene) -> list[str]:
    """What shows a secret outside of the files that are for it: figures, words, logs, topics, tables, the report."""
    kavka = scene.kavka
    private = (kavka.certificates / "operator" / "tls.key").read_text().splitlines()[1]
    hidden = [secret["password"] for secret in scene.secrets.values()]
    hidden += [json.loads(secret["kavka.json"])["key"] for secret in scene.secrets.values()]
    hidden += [private, (kavka.cluster / "audit.key").read_text().strip()]
    assert all(len(each) >= 32 for each in hidden)
    offsets = json.loads((kavka.cluster / "members.json").read_text())["portOffsets"].values()
    told = {"what up says": kavka.said} | {
        f"metrics of the node at {offset}": figures(kavka.metrics_port + offset) for offset in offsets
    }
    asked: list[tuple[str, ...]] = [("get", kind, "-o", "json") for kind in ("kvc", "kvt", "kvu")]
    asked += [("describe", "kvu", "loader"), ("explain", "quota", "--user", "loader"), ("doctor",)]
    for words in asked:
        told[" ".join(words)] = kavka.run(*words)[1]
    assert all(told.values())
    allowed = [kavka.cluster / "secrets", kavka.certificates, kavka.cluster / "audit.key"]
    for path in kavka.directory.rglob("*"):
        is_for_it = path.suffix == ".properties" or any(each in (path, *path.parents) for each in allowed)
        if path.is_file() and not is_for_it:
            told[str(path)] = path.read_bytes().decode("latin-1")
    assert any(name.endswith("report.html") for name in told)
    assert "loader" in "".join(text for name, text in told.items() if name.startswith("metrics of")), "users are named"
    return [name for name, text in told.items() if any(each in text for each in hidden)]


def figures(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return str(answer.read().decode())
