"""From a schema to the text of its module.

The output is a function of the schemas alone: constants only, no names that depend on the order of the jars,
and lines that are as full as they may be, since each installation carries them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kavka_broker.protocol.message import usual
from tools.generate_messages.schema import Field, Schema, Struct, snake

INT_TYPES = frozenset({"int8", "int16", "uint16", "int32", "uint32", "int64"})
PYTHON_TYPES = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "bytes"}
ONE_LINE_WIDTH = 116


def module(schema: Schema) -> str:
    """The module of a message. Its kind, key and versions stand in its class alone."""
    structs = "\n\n\n".join(render_struct(struct, schema) for struct in schema.structs)
    return f'''"""{schema.name}."""

from kavka_broker.protocol.message import {", ".join(imports(schema, structs))}


{structs}
'''


def imports(schema: Schema, text: str) -> list[str]:
    names = {"Message"}
    names |= {name for name in ("EMPTY", "Records", "ZERO") if f" = {name}" in text or f": {name}" in text}
    names |= {"frozen"} if "DEFAULT_" in text else set()
    names |= {"Struct"} if len(schema.structs) > 1 else set()
    return sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))


def render_struct(struct: Struct, schema: Schema) -> str:
    """One class: slots, schema, `__init__`; with a shared default instance after it where one is needed."""
    is_message = struct.name == schema.name
    lines = [f"class {struct.name}({'Message' if is_message else 'Struct'}):"]
    lines += class_data(schema) if is_message else []
    names = [field.attribute for field in struct.fields]
    lines += names_tuple("__slots__", names)
    if struct.fields:
        lines += ["    SCHEMA = (", *(line for field in struct.fields for line in rows(field)), "    )", ""]
        lines += constructor(struct)
    if needs_default(struct, schema):
        lines += ["", "", f"{default_name(struct.name)} = frozen({struct.name})"]
    return "\n".join(lines)


def class_data(schema: Schema) -> list[str]:
    lines = [f'    KIND = "{schema.kind}"']
    lines += [f"    API_KEY = {schema.api_key}"] if schema.api_key is not None else []
    lines += [f"    VERSIONS = {schema.versions}"]
    lines += [f"    FLEXIBLE_FROM = {schema.flexible_from}"] if schema.flexible_from is not None else []
    return lines + (["    LATEST_UNSTABLE = True"] if schema.latest_unstable else [])


def names_tuple(target: str, names: list[str]) -> list[str]:
    quoted = [json.dumps(name) for name in names]
    line = f"    {target} = ({', '.join(quoted)}{',' if len(names) == 1 else ''})"
    if len(line) <= ONE_LINE_WIDTH:
        return [line]
    return [f"    {target} = (", *filled(quoted), "    )"]


def filled(items: Sequence[str]) -> list[str]:
    """Lines of items with commas behind them, each as full as it may be: one item a line would be more to install."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) + 2 > ONE_LINE_WIDTH:
            lines.append("")
        lines[-1] += f" {item}," if lines[-1] else f"        {item},"
    return lines


def rows(field: Field) -> list[str]:
    """A field's row of the schema, on two lines where one is too long, without what `usual` says at its end."""
    default = b"" if field.type == "uuid" else field.default
    who = (field.name, field.attribute, field.type)
    cells = (field.nullable, field.tagged, field.tag, default, field.ignorable, field.flexible)
    ends = usual(field.type)
    told = max((place for place, pair in enumerate(zip(cells, ends, strict=True), 1) if differ(*pair)), default=0)
    what = (field.versions, *cells[:told])
    head, tail = (", ".join(map(constant, cells)) for cells in (who, what))
    if len(head) + len(tail) < ONE_LINE_WIDTH - 10:
        return [f"        ({head}, {tail}),"]
    return [f"        ({head},", f"         {tail}),"]


def differ(cell: object, end: object) -> bool:
    """Whether a cell has to be told: 0, False and 0.0 are equal, and not the same."""
    return (type(cell), cell) != (type(end), end)


def constructor(struct: Struct) -> list[str]:
    arguments = [f"{field.attribute}: {annotation(field)} = {argument_default(field)}" for field in struct.fields]
    line = f"    def __init__(self, {', '.join(arguments)}) -> None:"
    if len(line) > ONE_LINE_WIDTH:
        lines = [
            "    def __init__(",
            "        self,",
            *filled(arguments),
            "    ) -> None:",
        ]
    else:
        lines = [line]
    return lines + [f"        self.{field.attribute} = {assigned(field)}" for field in struct.fields]


def annotation(field: Field) -> str:
    if field.type == "records":
        return "Records"
    element = field.type.removeprefix("[]")
    kind = "int" if element in INT_TYPES else PYTHON_TYPES.get(element, element)
    kind = f"list[{kind}]" if field.is_array else kind
    return f"{kind} | None" if field.nullable or field.default is None else kind


def argument_default(field: Field) -> str:
    if field.default is None:
        return "None"
    if field.is_array:
        return "EMPTY"
    if field.struct:
        return default_name(field.struct)
    return "ZERO" if field.type == "uuid" else constant(field.default)


def assigned(field: Field) -> str:
    if field.is_array and field.default is not None:
        return f"[] if {field.attribute} is EMPTY else {field.attribute}"
    return field.attribute


def needs_default(struct: Struct, schema: Schema) -> bool:
    return any(
        field.type == struct.name and field.default is not None for other in schema.structs for field in other.fields
    )


def constant(value: object) -> str:
    """The value as a formatter writes it."""
    return json.dumps(value) if isinstance(value, str) else repr(value).replace("b''", 'b""')


def default_name(struct: str) -> str:
    """LeaderIdAndEpoch -> DEFAULT_LEADER_ID_AND_EPOCH."""
    return f"DEFAULT_{snake(struct).upper()}"


def index(schemas: list[Schema]) -> str:
    """The message of each kind and key; of requests that are left out the name and the versions."""
    kept = [schema for schema in schemas if not schema.is_left_out]
    tables = "\n".join([*(table(title, kind, package, kept) for title, kind, package in TABLES), left_out(schemas)])
    return f'''"""Which message an API key or a record key stands for. Generated; not edited by hand."""

from __future__ import annotations

from typing import Final

{tables}'''


TABLES = (
    ("REQUESTS", "request", ""),
    ("RESPONSES", "response", ""),
    ("METADATA_RECORDS", "metadata", "metadata"),
    ("GROUP_KEYS", "coordinator-key", "group"),
    ("GROUP_VALUES", "coordinator-value", "group"),
    ("TRANSACTION_KEYS", "coordinator-key", "transaction"),
    ("TRANSACTION_VALUES", "coordinator-value", "transaction"),
    ("SHARE_KEYS", "coordinator-key", "share"),
    ("SHARE_VALUES", "coordinator-value", "share"),
)


def table(title: str, kind: str, package: str, schemas: list[Schema]) -> str:
    chosen = [schema for schema in schemas if schema.kind == kind and schema.package == package]
    rows = sorted((message.api_key or 0, message.name) for message in chosen)
    lines = [f'    {key}: "{name}",' for key, name in rows]
    return "\n".join([f"{title}: Final[dict[int, str]] = {{", *lines, "}", ""])


def left_out(schemas: list[Schema]) -> str:
    """The requests of Kafka that have no module, or whose module does not have all of their versions."""
    chosen = [schema for schema in schemas if schema.is_left_out and schema.kind == "request"]
    rows = {message.api_key or 0: f'("{message.name}", {message.versions})' for message in chosen}
    lines = [f"    {key}: {row}," for key, row in sorted(rows.items())]
    head = "LEFT_OUT: Final[dict[int, tuple[str, tuple[int, int]]]] = {"
    what = "Requests of Kafka that have no module, or one of fewer versions, and their versions."
    return "\n".join([head, *lines, "}", f'"""{what}"""', ""])


def package_head(package: str) -> str:
    what = f"the schemas of Kafka's {package} jar" if package else "Kafka's messages, one module each"
    by = "Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand."
    return f'"""{what[0].upper()}{what[1:]}.\n\n{by}\n"""\n'
