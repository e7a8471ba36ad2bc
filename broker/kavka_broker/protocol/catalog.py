"""Message classes by the number that names them on the wire.

Modules are imported when their number is first seen: a broker needs a quarter of what Kafka defines.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import index


@cache
def message_class(module: str, name: str) -> type[Message]:
    """An entry of the index. The cache is bounded by its size."""
    kind = getattr(import_module(f"kavka_broker.protocol.messages.{module}"), name)
    assert isinstance(kind, type)
    assert issubclass(kind, Message)
    return kind


def request_class(api_key: int) -> type[Message]:
    """The class of a request. Raises KeyError for a key that Kafka does not have."""
    return message_class(*index.REQUESTS[api_key])


def response_class(api_key: int) -> type[Message]:
    """The class of a response. Raises KeyError for a key that Kafka does not have."""
    return message_class(*index.RESPONSES[api_key])


def metadata_record_class(key: int) -> type[Message]:
    """The class of a metadata record. Raises KeyError for a key that Kafka does not have."""
    return message_class(*index.METADATA_RECORDS[key])
