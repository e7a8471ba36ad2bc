"""Requests with very many elements, made from the schema of any API."""

from typing import Any

from kavka_broker.protocol.compiler.layout import Layout, Place, of_message
from kavka_broker.protocol.message import Message
from kavka_broker.request.registry import Api


def large(api: Api, elements: int) -> Message:
    """A request of the newest version: so many elements has its first array, each with a name of its own, and each of
    those within has one.
    """
    message = _filled(of_message(api.request, api.versions[1]), elements, 0)
    assert isinstance(message, Message)
    return message


def _filled(layout: Layout, count: int, number: int) -> Any:
    return layout.kind(**{place.attribute: _value_of(layout, place, count, number) for place in layout.places})


def _value_of(layout: Layout, place: Place, count: int, number: int) -> Any:
    if place.is_array:
        return [_value_of(layout, place.element, 1, index + number) for index in range(count)]
    if place.is_struct:
        return _filled(layout.nested(place.type), count, number)
    match place.type:
        case "string":
            return f"n{number}"
        case "uuid":
            return number.to_bytes(16, "big")
        case "bytes" | "records":
            return b""
        case "bool":
            return False
        case "float64":
            return 1.0
    return number if place.attribute in {"partition_index", "index", "partition"} else 0
