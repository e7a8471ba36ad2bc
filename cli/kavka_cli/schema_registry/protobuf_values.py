"""Reads Protobuf messages by their `.proto`, with Google's library and compiler.

A schema is the text of the file, or its descriptor in base64, which is what Confluent's serializer for Python registers
and some registries give back as it is.

The compiler runs as a process of its own, for a bounded time: it is C++, and a schema comes from elsewhere. So do names
of files. Python is isolated (`-I`) and is in no directory with such files, from which it would import.
"""

import base64
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path, PurePosixPath
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Final

import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory

from kavka_cli.schema_registry.registry_client import REFERENCES_MAX, Schema
from kavka_cli.schema_registry.wire_format import WireFormatError, message_indexes

COMPILE_SECONDS_MAX: Final = 20.0
MAIN: Final = f"kavka-{token_hex(8)}.proto"
"""The name of the schema's own file, which none that it imports can have."""
WORDS_MAX: Final = 300
OF_GOOGLE: Final = re.compile(r"google/protobuf/(any|duration|empty|field_mask|struct|timestamp|type|wrappers)\.proto")
"""Files that come with the library."""


class UncompiledError(ValueError):
    """A schema that the compiler does not take; the message is the compiler's."""


def protobuf_reader(schema: Schema) -> Callable[[bytes], Any]:
    """Make the function that reads a message with its indexes. Raises UncompiledError."""
    main, *others = serialized(schema) or compiled(schema)
    pool = descriptor_pool.DescriptorPool()
    for file in (*others, main):
        pool.Add(file)

    def read(payload: bytes) -> Any:
        path, body = message_indexes(payload)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(name_at(main, path)))
        found = kind.FromString(body)
        return json_format.MessageToDict(found, preserving_proto_field_name=True, descriptor_pool=pool)

    return read


def name_at(file: Any, path: tuple[int, ...]) -> str:
    """The full name of the message at a path of indexes. Raises WireFormatError."""
    found, names = file.message_type, [file.package] if file.package else []
    for index in path:
        if not 0 <= index < len(found):
            raise WireFormatError(f"the schema has no message {index}")
        names.append(found[index].name)
        found = found[index].nested_type
    return ".".join(names)


def serialized(schema: Schema) -> list[Any]:
    """The descriptors of a schema in base64 and of what it imports, of which each stands behind those that it imports,
    but the schema first; none where it is text. Raises UncompiledError.
    """
    main = _descriptor(schema.text, MAIN)
    if main is None:
        return []
    named = {reference.name: reference.text for reference in schema.references}
    found: dict[str, Any] = {}
    _add_imports(main, named, found)
    return [main, *found.values()]


def _descriptor(text: str, name: str) -> Any:
    """The descriptor in a text; None where it is a `.proto`."""
    try:
        found = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, message.DecodeError):
        return None
    found.name = name
    return found


def _add_imports(file: Any, named: Mapping[str, str], found: dict[str, Any]) -> None:
    for name in file.dependency:
        if name in found:
            continue
        if len(found) > REFERENCES_MAX:
            raise UncompiledError(f"it imports more than {REFERENCES_MAX} files")
        if OF_GOOGLE.fullmatch(name):
            own = import_module(name.replace("/", ".").removesuffix(".proto") + "_pb2").DESCRIPTOR
            inner = descriptor_pb2.FileDescriptorProto()
            own.CopyToProto(inner)
        else:
            inner = _descriptor(named[name], name) if name in named else None
        if inner is None:
            raise UncompiledError(f'the registry does not tell of "{name}", which it imports')
        _add_imports(inner, {other: text for other, text in named.items() if other != name}, found)
        found[name] = inner


def compiled(schema: Schema) -> list[Any]:
    """The descriptors of a schema's text and of what it imports, in the order of `serialized`. Raises
    UncompiledError.
    """
    with TemporaryDirectory(prefix="kavka-proto-") as home:
        sources, out = Path(home) / "sources", Path(home) / "descriptors"
        for name, text in ((MAIN, schema.text), *((other.name, other.text) for other in schema.references)):
            _write(sources, name, text)
        places = ("-I", str(files(grpc_tools) / "_proto"), "-I", str(sources))  # the library's own files come first
        words = (*places, "--include_imports", f"--descriptor_set_out={out}", MAIN)
        try:
            ran = subprocess.run(
                [sys.executable, "-I", "-m", "grpc_tools.protoc", *words],
                cwd="/", capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS_MAX,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UncompiledError(f"it does not compile within {COMPILE_SECONDS_MAX:.0f} s") from None
        if ran.returncode != 0:
            raise UncompiledError(" ".join((ran.stderr or "it does not compile").split())[:WORDS_MAX])
        files_of = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
        return sorted(files_of, key=lambda file: file.name != MAIN)


def _write(home: Path, name: str, text: str) -> None:
    """Write a file of the schema; its name comes from the registry, and must stay in the directory."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.suffix != ".proto" or "\0" in name:
        raise UncompiledError(f'a reference has the name "{name}"')
    place = home / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
