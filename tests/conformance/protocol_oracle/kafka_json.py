"""A message as the JSON that Apache Kafka's JsonConverters read and write."""

from base64 import b64encode
from typing import Any

from kavka_broker.protocol.compiler.layout import Layout, Place, of_message
from kavka_broker.protocol.message import Message, Struct
from kavka_broker.protocol.uuids import ZERO, to_text


def to_json(message: Message, version: int) -> Any:
    return struct_to_json(of_message(type(message), version), message)


def struct_to_json(layout: Layout, struct: Struct) -> dict[str, Any]:
    names = {row[1]: row[0][0].lower() + row[0][1:] for row in layout.kind.SCHEMA}
    tagged = [place for place in layout.tagged if not is_default(layout, place, getattr(struct, place.attribute))]
    return {
        names[place.attribute]: value_to_json(layout, place, getattr(struct, place.attribute))
        for place in (*layout.places, *tagged)
    }


def value_to_json(layout: Layout, place: Place, value: Any) -> Any:
    if value is None:
        return None
    if place.is_array:
        return [value_to_json(layout, place.element, each) for each in value]
    if place.is_struct:
        return struct_to_json(layout.nested(place.type), value)
    match place.type:
        case "uuid":
            return to_text(value)
        case "bytes":
            return b64encode(value).decode()
        case "records":
            return ""  # the converters say nothing about what they hold
        case _:
            return value


def is_default(layout: Layout, place: Place, value: Any) -> bool:
    if place.default is None:
        return value is None
    if place.is_array:
        return bool(value == [])
    if place.is_struct:
        return bool(value == layout.nested(place.type).kind())
    return bool(value == (ZERO if place.type == "uuid" else place.default))


def holds_records(value: Any) -> bool:
    """Whether the JSON leaves out records: it cannot be read back."""
    match value:
        case dict():
            return any(is_record(*item) or holds_records(item[1]) for item in value.items())
        case list():
            return any(map(holds_records, value))
        case _:
            return False


def is_record(name: str, value: Any) -> bool:
    return name in {"records", "unalignedRecords"} and value == ""
