"""Records by schemas of a registry: the wire format, what a registry answers, and values that would become too much."""

import base64
import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_cli.schema_registry import registry_client
from kavka_cli.schema_registry.decoding import READERS_MAX, Decoder, plain
from kavka_cli.schema_registry.lines import LineDecoding
from kavka_cli.schema_registry.registry_client import Reference, RegistryClient, RegistryError, Schema, SchemaError
from kavka_cli.schema_registry.wire_format import INDEXES_MAX, WireFormatError, message_indexes, unframe
from kavka_operator.live_views.decoded import Decoded, as_json


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">i", schema_id) + payload


def zigzag(number: int) -> bytes:
    number, out = (number << 1) ^ (number >> 63), bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


class FakeClient:
    """A registry in memory, which counts what it is asked."""

    def __init__(self, *schemas: Schema) -> None:
        self.schemas = {schema.id: schema for schema in schemas}
        self.asked: list[int] = []

    def schema(self, schema_id: int) -> Schema:
        self.asked.append(schema_id)
        if schema_id not in self.schemas:
            raise SchemaError(f"no schema {schema_id}")
        return self.schemas[schema_id]


def decoder(*schemas: Schema) -> tuple[Decoder, FakeClient]:
    client = FakeClient(*schemas)
    return Decoder(client), client  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data", [None, b"", b"\0\0\0\0", b'{"a": 1}', b"\x01\0\0\0\x07x", (7).to_bytes(8, "big"), b"\0\xff\0\0\x07x"]
)
def test_other_bytes_are_not_of_the_wire_format(data: bytes | None) -> None:
    assert unframe(data) is None
    assert decoder()[0].decode(data) is None


@given(st.integers(1, 2**31 - 1), st.binary(max_size=20))
def test_the_id_and_the_payload_are_told_apart(schema_id: int, payload: bytes) -> None:
    assert unframe(framed(schema_id, payload)) == (schema_id, payload)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=INDEXES_MAX), st.binary(max_size=10))
def test_the_path_to_a_message_is_read(path: list[int], body: bytes) -> None:
    data = zigzag(len(path)) + b"".join(map(zigzag, path)) + body
    assert message_indexes(data) == (tuple(path), body)
    assert message_indexes(b"\0" + body) == ((0,), body)


@pytest.mark.parametrize("data", [b"", b"\x04\x00", b"\xff\xff\xff\xff\xff\x01", zigzag(INDEXES_MAX + 1), zigzag(-1)])
def test_a_path_that_is_none_is_an_error(data: bytes) -> None:
    with pytest.raises(WireFormatError):
        message_indexes(data)


def test_json_is_decoded_and_a_schema_is_fetched_once() -> None:
    decoding, client = decoder(Schema(7, "JSON", "{}"))
    found = [decoding.decode(framed(7, b'{"a": [1]}')) for _ in range(3)]
    assert [(one.value, one.schema) for one in found if one] == [({"a": [1]}, "JSON 7")] * 3
    assert client.asked == [7]


def test_what_cannot_be_decoded_has_its_reason() -> None:
    decoding, _ = decoder(Schema(7, "JSON", "{}"), Schema(8, "THRIFT", "?"))
    problems = [decoding.decode(framed(number, b"")) for number in (7, 8, 9)]
    assert [one.problem for one in problems if one] == [
        "is not of schema 7: JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "schema 8 is of THRIFT, which is not known here",
        "no schema 9",
    ]  # fmt: skip


def test_schemas_that_are_kept_have_a_bound() -> None:
    decoding, client = decoder(*(Schema(number, "JSON", "{}") for number in range(1, READERS_MAX + 2)))
    for number in (*range(1, READERS_MAX + 1), 1, READERS_MAX + 1, 1, 2):
        decoding.decode(framed(number, b"1"))
    assert client.asked == [*range(1, READERS_MAX + 1), READERS_MAX + 1, 2]


def test_a_schema_that_is_not_there_is_asked_for_again_after_a_while() -> None:
    now = [0.0]
    client = FakeClient()
    decoding = Decoder(client, clock=lambda: now[0])  # type: ignore[arg-type]
    for moment in (0.0, 0.0, registry_client.RETRY_SECONDS - 0.1, registry_client.RETRY_SECONDS):
        now[0] = moment
        assert decoding.decode(framed(9, b"")) == Decoded(problem="no schema 9")
    assert client.asked == [9, 9]
    for number in range(1, READERS_MAX + 9):
        decoding.decode(framed(100 + number, b""))
    assert len(decoding.missing) == READERS_MAX


def test_half_a_pair_of_a_text_is_printed() -> None:
    found = decoder(Schema(7, "JSON", "{}"))[0].decode(framed(7, b'{"\\ud800": "\\ud800"}'))
    assert found is not None
    assert as_json(found).encode() == b'{"?": "?"}'
    assert "a number of" in str(decoder(Schema(7, "JSON", "{}"))[0].decode(framed(7, b"9" * 3_000)))


def test_a_reason_is_told_once_also_where_values_alone_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LineDecoding(decoder(Schema(7, "JSON", "{}"))[0])
    values = [
        lines.value_text(SimpleNamespace(value=data)) for data in (framed(9, b""), framed(9, b""), framed(7, b"1"))
    ]
    assert values == [None, None, "1"]
    assert capsys.readouterr().err == "not decoded: no schema 9\n"


def test_values_are_what_json_has() -> None:
    assert json.dumps(plain({"a": [float("nan"), b"\xff", b"x", 1.5, (None, True)]})) == (
        '{"a": ["nan", {"base64": "/w=="}, "x", 1.5, [null, true]]}'
    )


@pytest.mark.parametrize(
    "url",
    ["", "ada:cret@h:8081", "htps://ada:cret@h", "file:///etc/passwd", "http://", "http://[::1", "http://u:cr/et@h"],
)
def test_what_is_no_address_of_a_registry_is_an_error(url: str) -> None:
    with pytest.raises(RegistryError, match="not the URL of a registry") as caught:
        RegistryClient(url)
    assert "cr" not in str(caught.value)


def test_the_password_of_a_registry_is_in_no_message() -> None:
    client = RegistryClient("http://ada:se%40cret@127.0.0.1:1/path/")
    assert client.url == "http://127.0.0.1:1/path"
    with pytest.raises(RegistryError, match="does not answer") as caught:
        client.schema(1)
    assert "cret" not in str(caught.value)


def test_a_registry_that_is_down_is_asked_again_after_a_while() -> None:
    now, asked = [0.0], []

    def refused(*_: Any, **__: Any) -> Any:
        asked.append(1)
        raise ConnectionRefusedError

    client = RegistryClient("http://127.0.0.1:1", clock=lambda: now[0], open_url=refused)
    for moment in (0.0, 1.0, registry_client.RETRY_SECONDS - 0.1, registry_client.RETRY_SECONDS):
        now[0] = moment
        with pytest.raises(RegistryError):
            client.schema(1)
    assert len(asked) == 2


def nested(depth: int) -> dict[str, Any]:
    """A record of two records of two records ..., none of which has a byte."""
    inner: Any = "null"
    for number in range(depth):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{number - 1}" if number else "null"}]
        inner = {"type": "record", "name": f"R{number}", "fields": fields}
    return dict(inner)


def amplified(depth: int) -> dict[str, Any]:
    """An array whose elements take a byte, and are very many values."""
    fields = [{"name": "i", "type": "int"}, {"name": "x", "type": nested(depth)}]
    return {"type": "array", "items": {"type": "record", "name": "T", "fields": fields}}


NULLS = {"type": "array", "items": "null"}


@pytest.mark.parametrize("schema", [NULLS, nested(30), amplified(14)], ids=["nulls", "nested", "amplified"])
def test_few_bytes_become_no_more_than_a_bound(schema: Any) -> None:
    avro_values = pytest.importorskip("kavka_cli.schema_registry.avro_values")
    read = avro_values.avro_reader(Schema(7, "AVRO", json.dumps(schema)), parts_max=500)
    with pytest.raises(avro_values.TooMuchError, match="more than 500 values"):
        read(b"\xd0\x0f" + bytes(1_001))


def test_an_avro_schema_has_a_bound() -> None:
    avro_values = pytest.importorskip("kavka_cli.schema_registry.avro_values")
    fields = [{"name": f"f{number}", "type": "int"} for number in range(avro_values.SCHEMA_CHARACTERS_MAX // 20)]
    wide = {"type": "record", "name": "W", "fields": fields}
    found = decoder(Schema(7, "AVRO", json.dumps(wide)))[0].decode(framed(7, b"\0"))
    assert found is not None
    assert "are the most that are read" in found.problem


def test_a_decimal_has_a_bound() -> None:
    pytest.importorskip("avro")
    amount = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    decoding, _ = decoder(Schema(7, "AVRO", json.dumps(amount)))
    for payload, words in (
        (b"\x04\x01\x00", ""),
        (b"\xd0\x0f" + bytes(1_000), ""),
        (b"\xa0\x1f" + bytes(2_000), "2,000 bytes"),
    ):
        found = decoding.decode(framed(7, payload))
        assert found is not None
        assert words in found.problem
        assert bool(words) == bool(found.problem)


def test_bytes_alone_have_no_length() -> None:
    pytest.importorskip("avro")
    found = decoder(Schema(7, "AVRO", '"bytes"'))[0].decode(framed(7, b"\x06abc"))
    assert found is not None
    assert found.value == "\x06abc"


def test_a_value_nested_too_deeply_is_a_problem_and_no_crash() -> None:
    pytest.importorskip("avro")
    chain = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
    decoding, _ = decoder(Schema(7, "AVRO", json.dumps(chain)))
    found = decoding.decode(framed(7, b"\x02" * 100_000 + b"\0"))
    assert found is not None
    assert "RecursionError" in found.problem
    assert decoding.decode(framed(7, b"\x02\x00")) == decoding.decode(framed(7, b"\x02\x00"))


@pytest.mark.parametrize("name", ["../evil.proto", "/etc/evil.proto", "a/../../evil.proto", "", "grpc_tools.py", "x"])
def test_a_reference_stays_in_its_directory(name: str) -> None:
    pytest.importorskip("grpc_tools")
    schema = Schema(7, "PROTOBUF", 'syntax = "proto3"; message A { int32 a = 1; }', (Reference(name, "x"),))
    found = decoder(schema)[0].decode(framed(7, b"\0\x08\x01"))
    assert found is not None
    assert "a reference has the name" in found.problem


def test_the_compiler_runs_no_file_of_a_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("kavka_cli.schema_registry.protobuf_values")
    (tmp_path / "grpc_tools.py").write_text("raise SystemExit('it was run')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    names = ("schema.proto", "descriptors/grpc_tools.proto")
    others = tuple(Reference(name, 'syntax = "proto3"; message Other { int32 other = 1; }') for name in names[:1])
    schema = Schema(7, "PROTOBUF", 'syntax = "proto3"; import "schema.proto"; message A { int32 a = 1; }', others)
    found = decoder(schema)[0].decode(framed(7, b"\0\x08\x05"))
    assert found is not None
    assert (found.value, found.problem) == ({"a": 5}, "")
    assert module.MAIN not in names


def test_a_protobuf_schema_that_does_not_compile_has_the_words_of_the_compiler() -> None:
    pytest.importorskip("grpc_tools")
    decoding, _ = decoder(Schema(7, "PROTOBUF", 'syntax = "proto3"; message A { Missing a = 1; }'))
    found = decoding.decode(framed(7, b"\0\x08\x01"))
    assert found is not None
    assert '"Missing" is not defined' in found.problem


def test_a_protobuf_schema_may_be_its_descriptor() -> None:
    pytest.importorskip("grpc_tools")
    from google.protobuf import descriptor_pb2

    money = descriptor_pb2.FileDescriptorProto(name="other", package="m", syntax="proto3")
    money.message_type.add(name="Money").field.add(name="cents", number=1, type=5, label=1)
    order = descriptor_pb2.FileDescriptorProto(name="order", package="o", syntax="proto3")
    order.dependency.extend(["money.proto", "google/protobuf/timestamp.proto"])
    fields = order.message_type.add(name="Order").field
    fields.add(name="price", number=1, type=11, label=1, type_name=".m.Money")
    fields.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    texts = [base64.b64encode(file.SerializeToString()).decode() for file in (order, money)]
    payload = b"\0\x0a\x02\x08\x07\x12\x02\x08\x05"
    found = decoder(Schema(7, "PROTOBUF", texts[0], (Reference("money.proto", texts[1]),)))[0].decode(
        framed(7, payload)
    )
    assert found is not None
    assert (found.value, found.problem) == ({"price": {"cents": 7}, "at": "1970-01-01T00:00:05Z"}, "")
    lacking = decoder(Schema(7, "PROTOBUF", texts[0]))[0].decode(framed(7, payload))
    assert lacking is not None
    assert 'does not tell of "money.proto"' in lacking.problem
