"""What a proxy changes in the messages that it passes on, and what it must know of them.

- Addresses of brokers in answers become those of the proxy: otherwise a client would go to the brokers themselves. The
  definitions of the messages say where they are: in every struct with a `host` and a `port`.
- ApiVersions names no version that this process cannot read.
- A Fetch of a session names only what has changed since the one before; `FetchSession` knows all of its partitions.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from kavka_broker.protocol.catalog import request_class, response_class
from kavka_broker.protocol.message import Message, Struct
from kavka_broker.protocol.messages import index
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.fetch_request import FetchRequest, FetchTopic
from kavka_pytest.error_answers import is_struct, struct_of

Address = tuple[str, int]

API_VERSIONS: Final = 18
FETCH: Final = 1
FULL_EPOCHS: Final = (-1, 0)
"""Epochs of a Fetch that names all of its partitions: without a session, and the first of one."""


def endpoints(part: Struct) -> Iterator[Any]:
    """All structs in a message that hold the address of a broker."""
    kind = type(part)
    names = {row[1] for row in kind.SCHEMA}
    if {"host", "port"} <= names:
        yield part
    for row in kind.SCHEMA:
        if not is_struct(row):
            continue
        value = getattr(part, row[1])
        for inner in value if isinstance(value, list) else () if value is None else (value,):
            yield from endpoints(inner)


@cache
def may_hold_endpoints(api_key: int) -> bool:
    """Whether answers of an API can hold addresses of brokers. The cache is bounded by the APIs that exist."""
    return api_key in index.RESPONSES and _has_endpoint(response_class(api_key))


def _has_endpoint(kind: type[Struct]) -> bool:
    if {"host", "port"} <= {row[1] for row in kind.SCHEMA}:
        return True
    return any(is_struct(row) and _has_endpoint(struct_of(kind, row)) for row in kind.SCHEMA)


def replace_addresses(answer: Message, replacement: Callable[[Address], Address]) -> None:
    """Put other addresses in place of those of brokers. An empty host says that there is no broker."""
    for endpoint in endpoints(answer):
        if endpoint.host and endpoint.port > 0:
            endpoint.host, endpoint.port = replacement((endpoint.host, endpoint.port))


def limit_versions(answer: ApiVersionsResponse) -> None:
    """Take out the versions that this process cannot read, and the APIs of which none is left."""
    kept = []
    for entry in answer.api_keys:
        if entry.api_key not in index.REQUESTS:
            continue
        low, high = request_class(entry.api_key).VERSIONS
        entry.min_version, entry.max_version = max(entry.min_version, low), min(entry.max_version, high)
        if entry.min_version <= entry.max_version:
            kept.append(entry)
    answer.api_keys = kept


class FetchSession:
    """The partitions of the Fetch session of a connection."""

    def __init__(self) -> None:
        self._topics: dict[tuple[str, bytes], dict[int, Any]] = {}

    def whole(self, request: FetchRequest) -> FetchRequest:
        """The request with all partitions of its session."""
        if request.session_epoch in FULL_EPOCHS:
            self._topics = {}
        for topic in request.topics:
            known = self._topics.setdefault((topic.topic, topic.topic_id), {})
            known.update({part.partition: part for part in topic.partitions})
        for gone in request.forgotten_topics_data:
            known = self._topics.get((gone.topic, gone.topic_id), {})
            for partition in gone.partitions:
                known.pop(partition, None)
        request.topics = [
            FetchTopic(topic=name, topic_id=topic_id, partitions=list(parts.values()))
            for (name, topic_id), parts in self._topics.items()
            if parts
        ]
        return request
