"""The audit trail of a broker, read by a real client: refusals and logins are told, and a tampered copy is found."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kavka_broker.core.audit.chain import Chain, Entry, Kind
from kavka_broker.core.audit.cloud_events import entry_of, headers_of
from kavka_broker.core.audit.keys import HmacKey
from kavka_broker.core.audit.verification import Fault, verify
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, PASSWORDS, of_librdkafka, settings
from tests.conformance.security.test_users_and_rules import AUTHORIZER, produced
from tests.support.programs import kafka_tool
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tests.unit.operator.person import run

TOPIC = "__audit_events"
KEY = HmacKey(b"0123456789abcdef" * 4)
POLL_SECONDS = 0.2


@pytest.fixture
def sasl_port() -> int:
    return free_port()


def start_audited(directory: Path, sasl_port: int) -> Server:
    """A broker with users, rules and an audit trail."""
    key = directory / "audit.key"
    key.write_bytes(KEY.secret + b"\n")
    return start_kavka(
        directory / "broker",
        {
            **settings(free_port(), sasl_port, free_port()),
            **AUTHORIZER,
            "kavka.audit.key.file": str(key),
            "num.partitions": "1",
        },
    )


@pytest.fixture
def server(tmp_path: Path, sasl_port: int) -> Iterator[Server]:
    found = start_audited(tmp_path, sasl_port)
    yield found
    found.kill()


def trail(server: Server) -> list[Entry]:
    """What stands in the audit topic now."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "audit",
            "enable.partition.eof": True,
            "enable.auto.commit": False,  # closing asks no coordinator, which may not be there
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    entries = []
    while (message := consumer.poll(60.0)) is not None:
        if (error := message.error()) is not None:
            assert error.code() in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART), error
            break
        headers: Any = message.headers()
        entries.append(entry_of(headers, message.value()))
    consumer.close()
    return entries


def events(server: Server, class_uid: int) -> list[dict[str, Any]]:
    found = [json.loads(entry.value) for entry in trail(server) if entry.kind is Kind.EVENT]
    return [event for event in found if event["class_uid"] == class_uid]


def refusals(server: Server) -> list[dict[str, Any]]:
    return [event for event in events(server, 6003) if event["action_id"] == 2]


def test_a_refusal_and_logins_are_told_and_a_tampered_copy_is_found(
    server: Server, sasl_port: int, tmp_path: Path
) -> None:
    create_topic(server, "orders")
    refused = produced(sasl_port, "orders", "bob")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    until_outside(lambda: bool(refusals(server)))
    denied = refusals(server)[0]
    assert denied["actor"]["user"]["name"] == "bob"
    assert denied["resources"] == [{"type": "topic", "name": "orders"}]
    assert next(event["user"]["name"] for event in events(server, 3002)) == "bob"
    assert not any(password in str(trail(server)) for password in PASSWORDS.values())

    server.stop()
    server.start()
    until_outside(lambda: any(entry.kind is Kind.END for entry in trail(server)))
    first = trail(server)[0].source
    entries = [entry for entry in trail(server) if entry.source == first]
    verdict = verify(entries, [KEY])
    assert verdict.damage is None
    assert verdict.is_ended
    assert verdict.proved == len(entries)

    key_file = str(tmp_path / "audit.key")
    code, said = run("audit", "verify", "--bootstrap", server.bootstrap, "--key-file", key_file)
    assert code == 0, said
    assert f"{first}: sound: {len(entries)} entries, {verdict.events} events, 0 lost" in said
    other = tmp_path / "other.key"
    other.write_bytes(b"x" * 32)
    code, said = run("audit", "verify", "--bootstrap", server.bootstrap, "--key-file", str(other))
    assert code == 1, said
    assert f"{first}: UNSIGNED: its heads are signed by {KEY.id}, no key of which was given" in said
    code, said = run(
        "audit", "verify", "--bootstrap", server.bootstrap, "--key-file", str(other), "--key-file", key_file
    )
    assert code == 0, said

    foreign = ("--key-file", key_file, "--cluster-id", "another")
    code, said = run("audit", "verify", "--bootstrap", server.bootstrap, *foreign)
    assert code == 1, said
    assert f"{first}: DAMAGED: foreign at sequence 0: the head names the cluster '{verdict.cluster}'" in said
    code, said = run(
        "audit", "verify", "--bootstrap", server.bootstrap, "--key-file", key_file, "--cluster-id", verdict.cluster
    )
    assert code == 0, said

    place = next(index for index, entry in enumerate(entries) if b"bob" in entry.value)
    flipped = replace(entries[place], value=entries[place].value.replace(b"bob", b"eve"))
    damage = verify([*entries[:place], flipped, *entries[place + 1 :]], [KEY]).damage
    assert damage is not None
    assert (damage.fault, damage.sequence) == (Fault.FLIPPED, place)
    damage = verify(entries[:place] + entries[place + 1 :], [KEY]).damage
    assert damage is not None
    assert (damage.fault, damage.sequence) == (Fault.DROPPED, place)


def verified(server: Server, key_file: Path) -> tuple[int, dict[str, str]]:
    """The exit code of a verification, and the words of each chain."""
    code, said = run("audit", "verify", "--bootstrap", server.bootstrap, "--key-file", str(key_file))
    return code, dict(line.split(": ", 1) for line in said.splitlines())


def forge(conf: dict[str, Any]) -> KafkaError | None:
    """Write an entry that nobody has signed, as a node would; the error, None where it is there."""
    found: list[KafkaError | None] = []
    producer = Producer({**conf, "client.id": "__admin_client"})
    entry = Chain("9-9").event(b"{}", 0)
    producer.produce(
        TOPIC, entry.value, b"9-9", 0, headers=[*headers_of(entry)], on_delivery=lambda error, _: found.append(error)
    )
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    return found[0]


def test_a_killed_broker_is_proved_by_its_next_start_and_a_forger_is_found(tmp_path: Path, sasl_port: int) -> None:
    """Signed by a private key, and verified by the public one."""
    private, public = tmp_path / "audit.pem", tmp_path / "public.pem"
    key = Ed25519PrivateKey.generate()
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    ports = settings(free_port(), sasl_port, free_port())
    audit = {"kavka.audit.key.file": str(private), "num.partitions": "1"}
    server = start_kavka(tmp_path / "broker", {**ports, **AUTHORIZER, **audit})
    try:
        create_topic(server, "orders")
        assert produced(sasl_port, "orders", "bob") is not None
        until_outside(lambda: bool(refusals(server)))
        server.kill()
        server.start()
        until_outside(lambda: trail(server)[-1].source != trail(server)[0].source)
        first, second = dict.fromkeys(entry.source for entry in trail(server))
        code, words = verified(server, public)
        assert code == 0, words
        assert words.keys() == {first, second}
        assert words[first].startswith("sound: ")
        assert words[first].endswith("not ended")
        assert "not proved" not in words[first], "the next start vouches for all of it"

        rule = ("--add", "--allow-principal", "User:bob", "--operation", "Write", "--topic", "*")
        kafka_tool("acls", "--bootstrap-server", server.bootstrap, *rule)
        until_outside(lambda: produced(sasl_port, "orders", "bob") is None)
        refused = forge(of_librdkafka(sasl_port, "bob", PASSWORDS["bob"]))
        assert refused is not None
        assert refused.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
        assert forge({"bootstrap.servers": server.bootstrap}) is None, "a super user may"
        code, words = verified(server, public)
        assert code == 1
        assert words["9-9"].startswith("UNSIGNED: it has no signed head; 1 entries")
        assert words[first].startswith("sound: ")
    finally:
        server.kill()


def test_a_failed_login_is_told_without_a_name(server: Server, sasl_port: int) -> None:
    consumer = Consumer(of_librdkafka(sasl_port, "alice", "a wrong guess", **{"group.id": "g"}))
    consumer.subscribe(["orders"])
    consumer.poll(POLL_SECONDS)

    def told() -> bool:
        consumer.poll(POLL_SECONDS)
        return any(event["status_id"] == 2 for event in events(server, 3002))

    until_outside(told)
    consumer.close()
    failed = next(event for event in events(server, 3002) if event["status_id"] == 2)
    assert failed["user"] == {"name": "unknown", "type_id": 0}
    assert "a wrong guess" not in str(trail(server))


def test_changes_are_told_with_what_was_before_and_without_secrets(server: Server) -> None:
    """Topics, configs, rules, quotas and users, by Kafka's own tools."""
    address = ("--bootstrap-server", server.bootstrap)
    kafka_tool("topics", *address, "--create", "--topic", "orders", "--partitions", "1")
    topic = ("--alter", "--entity-type", "topics", "--entity-name", "orders")
    for value in ("60000", "90000"):
        kafka_tool("configs", *address, *topic, "--add-config", f"retention.ms={value}")
    user = ("--alter", "--entity-type", "users", "--entity-name", "carol")
    kafka_tool("configs", *address, *user, "--add-config", "SCRAM-SHA-256=[password=a-new-secret]")
    kafka_tool("configs", *address, *user, "--add-config", "producer_byte_rate=1024")
    rule = ("--add", "--allow-principal", "User:carol", "--operation", "Read", "--topic", "orders")
    kafka_tool("acls", *address, *rule)
    kafka_tool("topics", *address, "--delete", "--topic", "orders")

    def changes() -> list[tuple[Any, ...]]:
        allowed = [event for event in events(server, 6003) if event["action_id"] == 1]
        found = [(event["api"]["operation"], event["resources"][0]) for event in allowed]
        return [(done, resource["type"], resource["name"], resource.get("data")) for done, resource in found]

    until_outside(lambda: ("DELETE", "topic", "orders", None) in changes())
    told = changes()
    assert ("CREATE", "topic", "orders", None) in told
    altered = {"key": "retention.ms", "value": "90000", "previous": "60000"}
    assert ("ALTER_CONFIGS", "topic", "orders", altered) in told
    limit = {"key": "producer_byte_rate", "value": "1024", "previous": None}
    assert ("ALTER_CONFIGS", "client_quota", "user=carol", limit) in told
    assert any(kind == "acl" and "User:carol" in name and "READ topic" in name for _, kind, name, _ in told)
    assert any(kind == "user" and name == "carol" for _, kind, name, _ in told)
    assert "a-new-secret" not in str(trail(server))
