"""Kafka's message schemas, read from its jars.

The jars carry each schema as JSON with comments. Only facts are taken: names, types, versions, tags and defaults;
the sentences of the `about` entries are left where they are. Version ranges are cut to the versions in which the
message is valid, so that "0+" of a message valid in 3 to 13 reads (3, 13).
"""

from __future__ import annotations

import json
import keyword
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tools.kafka_jars import NEWER_VERSION, VERSION

Versions = tuple[int, int]
Default = int | float | bool | str | bytes | None

PACKAGES = {
    "clients": "",
    "metadata": "metadata",
    "group-coordinator": "group",
    "transaction-coordinator": "transaction",
    "share-coordinator": "share",
    "storage": "storage",
    "raft": "raft",
}
"""The jar (kafka-NAME-VERSION.jar) and the package under `messages` its schemas go to."""

NEWER = re.compile(r"(ApiVersions|DeleteGroups|TxnOffsetCommit)(Request|Response)")
"""Messages that the broker serves as the newest Apache Kafka has them. A change that serves one more adds it here."""

LEFT_OUT = re.compile(r"Remote(LogSegment|Partition)\w*Record")
"""Messages of tiered storage (KIP-405), by name: the broker serves none of them. A change that serves one takes it out
of here."""

VERSION_MAX = 32767
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
ZERO_UUID = bytes(16)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, as the schema gives it."""

    name: str
    type: str
    versions: Versions
    nullable: Versions | None
    tagged: Versions | None
    tag: int | None
    default: Default
    ignorable: bool
    flexible: Versions | None

    @property
    def attribute(self) -> str:
        return snake(self.name)

    @property
    def struct(self) -> str | None:
        """The name of the struct this field holds, alone or in an array."""
        element = self.type.removeprefix("[]")
        return element if element[0].isupper() else None

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct's fields in the order of the wire."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A message with its structs."""

    package: str
    name: str
    kind: str
    api_key: int | None
    versions: Versions
    flexible_from: int | None
    latest_unstable: bool
    structs: tuple[Struct, ...]
    """The nested structs, each before its first use; the message itself is the last."""
    is_too_new: bool = False
    """Whether it is the newest Apache Kafka's, and the broker serves no message of its name, or another one."""

    @property
    def module(self) -> str:
        return snake(self.name)

    @property
    def is_left_out(self) -> bool:
        return self.is_too_new or LEFT_OUT.fullmatch(self.name) is not None


def snake(name: str) -> str:
    """TopicId -> topic_id."""
    word = WORD_START.sub("_", name).lower()
    return word + "_" if keyword.iskeyword(word) else word


def read_jars(jars: Path, newer: Path) -> list[Schema]:
    """Every schema of Kafka that is valid in some version, in a fixed order; also those of requests that the newest
    Apache Kafka alone has, or has in more versions.
    """
    schemas = [
        found
        for jar, package in PACKAGES.items()
        for found in schemas_in(jars / f"kafka-{jar}-{VERSION}.jar", package)
        if NEWER.fullmatch(found.name) is None
    ]
    versions_of = {found.name: found.versions for found in schemas}
    for found in schemas_in(newer / f"kafka-clients-{NEWER_VERSION}.jar", PACKAGES["clients"]):
        if NEWER.fullmatch(found.name):
            schemas.append(found)
        elif found.kind == "request" and versions_of.get(found.name) != found.versions:
            schemas.append(replace(found, is_too_new=True))
    return sorted(schemas, key=lambda message: (message.package, message.name))


def schemas_in(jar: Path, package: str) -> Iterator[Schema]:
    """Every schema of one jar that is valid in some version."""
    for text in resources(jar):
        source = json.loads(text)
        if source["validVersions"] != "none":
            yield schema(package, source)


def resources(jar: Path) -> Iterator[str]:
    """The schemas of one jar, without their comments."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".json") and re.search(r"\b(message|metadata)/", name):
                yield COMMENT.sub("", archive.read(name).decode("utf-8"))


def schema(package: str, source: dict[str, Any]) -> Schema:
    """Read one schema, its structs flattened."""
    valid = versions(source["validVersions"])
    assert valid is not None
    structs: dict[str, list[dict[str, Any]]] = {
        each["name"]: each["fields"] for each in source.get("commonStructs", [])
    }
    gather(source["fields"], structs)
    structs[source["name"]] = source["fields"]
    flexible = versions(source.get("flexibleVersions", "none"), valid)
    read = {name: Struct(name, tuple(field(each, valid) for each in fields)) for name, fields in structs.items()}
    return Schema(
        package=package,
        name=source["name"],
        kind=source["type"],
        api_key=source.get("apiKey"),
        versions=valid,
        flexible_from=flexible[0] if flexible else None,
        latest_unstable=source.get("latestVersionUnstable", False),
        structs=tuple(in_order_of_use(read, source["name"])),
    )


def gather(fields: list[dict[str, Any]], structs: dict[str, list[dict[str, Any]]]) -> None:
    """Add the structs that are written inside these fields."""
    for each in fields:
        if nested := each.get("fields"):
            structs[each["type"].removeprefix("[]")] = nested
            gather(nested, structs)


def in_order_of_use(structs: dict[str, Struct], last: str) -> Iterator[Struct]:
    """The structs that `last` needs, each after those it needs itself."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[Struct]:
        if name not in done:
            done.add(name)
            for each in structs[name].fields:
                if each.struct:
                    yield from visit(each.struct)
            yield structs[name]

    return visit(last)


def field(source: dict[str, Any], valid: Versions) -> Field:
    """Read one field; a field that is never valid in a supported version is kept with its range as written."""
    written = versions(source.get("versions") or source.get("taggedVersions") or "0+")
    assert written is not None
    kind = source["type"]
    nullable = versions(source.get("nullableVersions", "none"), valid)
    return Field(
        name=source["name"],
        type=kind,
        versions=cut(written, valid) or written,
        nullable=nullable,
        tagged=versions(source.get("taggedVersions", "none"), valid),
        tag=source.get("tag"),
        default=default(kind, source.get("default")),
        ignorable=source.get("ignorable", False),
        flexible=flexible_override(source.get("flexibleVersions"), valid),
    )


def flexible_override(text: str | None, valid: Versions) -> Versions | None:
    """The flexible versions of a field that has its own; an empty range where it has none at all."""
    if text is None:
        return None
    return versions(text, valid) or (VERSION_MAX, VERSION_MAX)


def default(kind: str, text: Any) -> Default:
    """The default of a field. An array's or a struct's is None for null and b"" for an empty one."""
    if text == "null":
        return None
    if kind.startswith("[]") or kind[0].isupper():
        return b""
    match kind:
        case "string":
            return str(text or "")
        case "bool":
            return str(text).lower() == "true"
        case "bytes":
            return b""
        case "records":
            return None
        case "uuid":
            return ZERO_UUID
        case "float64":
            return float(text or 0)
        case _:
            return int(str(text or "0"), 0)


def versions(text: str, valid: Versions = (0, VERSION_MAX)) -> Versions | None:
    """The range behind "3", "3+", "3-5" or "none", within the valid one."""
    if text == "none":
        return None
    low, _, high = text.replace("+", f"-{VERSION_MAX}").partition("-")
    return cut((int(low), int(high or low)), valid)


def cut(versions: Versions, valid: Versions) -> Versions | None:
    low, high = max(versions[0], valid[0]), min(versions[1], valid[1])
    return (low, high) if low <= high else None
