"""Records are decoded by a registry that others wrote, Apicurio's, by `kavka consume` and for the console's page."""

import json
import struct
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import confluent_kafka
import pytest

from kavka_cli import main
from kavka_cli.schema_registry.decoding import Decoder
from kavka_cli.schema_registry.registry_client import RegistryClient
from kavka_operator.domain.access import OPEN
from kavka_operator.live_views.records import Query, read_records
from kavka_pytest.in_process import KafkaInProcess
from tests.support.commands import run_here
from tests.support.servers import free_port
from tests.support.waiting import until_outside
from tools.schema_registry import PATH, registry_jar

avro_io = pytest.importorskip("avro.io")
pytest.importorskip("grpc_tools")
pytestmark = [pytest.mark.java, pytest.mark.slow]

MONEY = 'syntax = "proto3"; package money; message Money { int64 cents = 1; }'
ORDER_PROTO = """
syntax = "proto3";
package orders;
import "money.proto";
import "google/protobuf/timestamp.proto";
message Order {
  int32 id = 1;
  money.Money price = 2;
  google.protobuf.Timestamp at = 3;
  message Line { string what = 1; }
}
"""
ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
AVRO_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "note", "type": ["null", "string"]},
    {"name": "raw", "type": "bytes"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"id": {"type": "integer"}}
}  # fmt: skip


def avro(schema: object, value: object) -> bytes:
    from avro.schema import parse

    out = BytesIO()
    avro_io.DatumWriter(parse(json.dumps(schema))).write(value, avro_io.BinaryEncoder(out))
    return out.getvalue()


def answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/subjects", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry that runs."""
    port, jar, home = free_port(), registry_jar(), tmp_path_factory.mktemp("registry")
    options = (f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", "-Xmx256m")
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(["java", *options, "-jar", str(jar)], cwd=home, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}{PATH}"
        until_outside(lambda: answers(url), what="the registry answers")
        yield url
    finally:
        process.kill()
        process.wait()


def register(registry: str, subject: str, kind: str, schema: object, *references: tuple[str, str]) -> int:
    """Register a schema; its id. `references` are names and subjects, each of whose first version is meant."""
    named = [{"name": name, "subject": other, "version": 1} for name, other in references]
    text = schema if isinstance(schema, str) else json.dumps(schema)
    body = json.dumps({"schema": text, "schemaType": kind, "references": named}).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with urlopen(Request(f"{registry}/subjects/{subject}/versions", body, headers), timeout=30) as answer:
        return int(json.load(answer)["id"])


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + payload


def test_records_of_every_kind_are_decoded(registry: str, tmp_path: Path) -> None:
    register(registry, "address", "AVRO", ADDRESS)
    register(registry, "money", "PROTOBUF", MONEY)
    fields = [*AVRO_FIELDS, {"name": "to", "type": "shop.Address"}]
    order = {"type": "record", "name": "Order", "namespace": "shop", "fields": fields}
    whole = {**order, "fields": [*AVRO_FIELDS[:3], {"name": "at", "type": "long"}, {"name": "to", "type": ADDRESS}]}
    by_avro = register(registry, "orders-value", "AVRO", order, ("shop.Address", "address"))
    by_proto = register(registry, "protos-value", "PROTOBUF", ORDER_PROTO, ("money.proto", "money"))
    by_json = register(registry, "jsons-value", "JSON", JSON_SCHEMA)
    value = {"id": 7, "note": "tea", "raw": b"\xff", "at": 1_700_000_000_000, "to": {"city": "Prag"}}
    with KafkaInProcess(tmp_path) as kafka:
        topic = kafka.topic()
        producer = confluent_kafka.Producer({"bootstrap.servers": str(kafka)})
        producer.produce(topic, framed(by_avro, avro(whole, value)), key="plain")
        producer.produce(topic, framed(by_proto, b"\x00\x08\x05\x12\x02\x08\x63\x1a\x02\x08\x01"))
        producer.produce(topic, framed(by_proto, b"\x04\x00\x00\x0a\x04line"))
        producer.produce(topic, framed(by_json, b'{"id": 1}'))
        producer.produce(topic, framed(12_345, b"unknown"))
        producer.produce(topic, framed(by_avro, b"\x02"))
        producer.produce(topic, "a text")
        assert producer.flush(60) == 0
        words = ("consume", "--bootstrap", str(kafka), "--topic", topic, "--registry", registry)
        code, said = run_here(main, *words)
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        assert code == 0, said
        assert [line["value"] for line in lines[:4]] == [
            {**value, "raw": {"base64": "/w=="}, "at": "2023-11-14T22:13:20+00:00"},
            {"id": 5, "price": {"cents": "99"}, "at": "1970-01-01T00:00:01Z"},
            {"what": "line"},
            {"id": 1},
        ]  # fmt: skip
        assert [line.get("valueSchema") for line in lines] == [
            f"AVRO {by_avro}", f"PROTOBUF {by_proto}", f"PROTOBUF {by_proto}", f"JSON {by_json}", None, None, None
        ]  # fmt: skip
        assert lines[0]["key"] == "plain"
        assert lines[4]["valueProblem"].endswith("has no schema 12345")
        assert f"is not of schema {by_avro}" in lines[5]["valueProblem"]
        assert lines[6]["value"] == "a text"
        assert said.count("not decoded: ") == 2
        _, said = run_here(main, *words, "--grep", '"city": "Prag"', "-o", "value")
        assert [json.loads(line)["id"] for line in said.splitlines() if line.startswith("{")] == [7]
        decoder = Decoder(RegistryClient(registry))
        found = read_records(str(kafka), OPEN, Query(topic, value=b"cents"), decoder=decoder)
        assert [(record["valueSchema"], record["problems"]) for record in found["records"]] == [
            (f"PROTOBUF {by_proto}", [])
        ]
