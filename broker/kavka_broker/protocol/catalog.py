"""Message classes by the number that names them on the wire; the name of a class says in which module it is.

Modules are imported when their number is first seen: a broker needs a quarter of what Kafka defines.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import index

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def message_class(name: str, package: str = "") -> type[Message]:
    """The class of an entry of the index, in a package below `messages`. The cache is bounded by the index's size."""
    module = _WORD_START.sub("_", name).lower()
    path = ".".join(filter(None, ("kavka_broker.protocol.messages", package, module)))
    kind = getattr(import_module(path), name)
    assert isinstance(kind, type)
    assert issubclass(kind, Message)
    return kind


def request_class(api_key: int) -> type[Message]:
    """The class of a request. Raises KeyError for a key that Kafka does not have."""
    return message_class(index.REQUESTS[api_key])


def response_class(api_key: int) -> type[Message]:
    """The class of a response. Raises KeyError for a key that Kafka does not have."""
    return message_class(index.RESPONSES[api_key])


def metadata_record_class(key: int) -> type[Message]:
    """The class of a metadata record. Raises KeyError for a key that Kafka does not have."""
    return message_class(index.METADATA_RECORDS[key], "metadata")
