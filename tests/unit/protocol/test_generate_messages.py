import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tools.generate_messages import render
from tools.generate_messages.__main__ import TARGET, files
from tools.generate_messages.schema import default, field, resources, schema, snake, versions

SCHEMA: dict[str, Any] = {
    "apiKey": 99,
    "type": "request",
    "name": "PaintRequest",
    "validVersions": "2-4",
    "flexibleVersions": "4+",
    "commonStructs": [
        {"name": "Brush", "versions": "0+", "fields": [{"name": "Width", "type": "int8", "versions": "0+"}]}
    ],
    "fields": [
        {
            "name": "Rooms",
            "type": "[]Room",
            "versions": "0+",
            "fields": [{"name": "Brush", "type": "Brush", "versions": "0+"}],
        },
        {
            "name": "From",
            "type": "string",
            "versions": "3+",
            "nullableVersions": "4+",
            "default": "null",
            "about": "prose",
        },
    ],
}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("TopicId", "topic_id"), ("ISR", "isr"), ("V3AndBelowProducerId", "v3_and_below_producer_id"), ("From", "from_")],
)
def test_names_become_snake_case(name: str, wanted: str) -> None:
    assert snake(name) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("none", None), ("3", (3, 3)), ("0+", (2, 9)), ("5-7", (5, 7)), ("8-12", (8, 9)), ("0-1", None)],
)
def test_versions_are_cut_to_the_valid_ones(text: str, wanted: tuple[int, int] | None) -> None:
    assert versions(text, (2, 9)) == wanted


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("int32", "0x7fffffff", 2**31 - 1),
        ("int64", -1, -1),
        ("bool", "false", False),
        ("string", None, ""),
        ("string", "null", None),
        ("[]int32", None, b""),
        ("records", None, None),
        ("uuid", None, bytes(16)),
    ],
)
def test_defaults_are_those_of_kafka(kind: str, text: Any, wanted: Any) -> None:
    assert default(kind, text) == wanted


def test_a_tagged_field_without_versions_has_those_of_its_tag() -> None:
    read = field({"name": "Late", "type": "int8", "taggedVersions": "1+", "tag": 0}, (0, 3))
    assert read.versions == read.tagged == (1, 3)


def test_structs_come_before_their_use() -> None:
    assert [struct.name for struct in schema("", SCHEMA).structs] == ["Brush", "Room", "PaintRequest"]


def test_a_module_says_facts_and_runs() -> None:
    text = render.module(schema("", SCHEMA))
    assert text.startswith('"""PaintRequest."""')
    assert "prose" not in text
    names: dict[str, Any] = {"__name__": "paint_request"}
    exec(compile(text, "paint_request", "exec"), names)
    kind = names["PaintRequest"]
    assert (kind.KIND, kind.API_KEY, kind.VERSIONS, kind.FLEXIBLE_FROM) == ("request", 99, (2, 4), 4)
    request = kind(rooms=[names["Room"]()])
    assert request.rooms[0].brush.width == 0
    assert request.from_ is None


@pytest.mark.parametrize("name", ["PaintRequest", "StreamsPaintRequest", "PaintStreamsRequest"])
def test_a_request_has_a_module_or_its_versions_are_in_the_index(name: str) -> None:
    read = schema("", {**SCHEMA, "name": name})
    written = files([read])
    index = written[TARGET / "index.py"]
    assert (TARGET / f"{read.module}.py" in written) != read.is_left_out
    assert (f'99: ("{name}", (2, 4))' in index) == read.is_left_out
    assert (f'99: "{name}",' in index) != read.is_left_out


def test_comments_in_schemas_are_skipped(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "some.jar", "w") as jar:
        jar.writestr("common/message/Some.json", '// licence\n{\n  // why\n  "name": "Some"\n}\n')
        jar.writestr("META-INF/other.json", "{}")
    assert [json.loads(text) for text in resources(tmp_path / "some.jar")] == [{"name": "Some"}]
