"""Configs that were altered while the cluster runs: of topics, of brokers (one, or all by default), of
groups, of subscriptions to client metrics.

What is here are overrides in their written form, checked when they were altered. What a topic's effective config is
says `core.config.topic`.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ResourceType(IntEnum):
    """Kinds of resources that have configs, with the numbers of the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """A resource that has configs. A broker's name is its id; the empty name stands for all brokers."""

    type: int
    name: str


class Configs:
    """Overrides by resource and key. Those of a resource are replaced and never changed, so that copies share them."""

    def __init__(self) -> None:
        self._by_resource: dict[Resource, Mapping[str, str]] = {}

    def of(self, resource: Resource) -> Mapping[str, str]:
        return self._by_resource.get(resource, NOTHING)

    def topic(self, name: str) -> Mapping[str, str]:
        return self.of(Resource(ResourceType.TOPIC, name))

    def broker(self, node_id: int) -> Mapping[str, str]:
        return self.of(Resource(ResourceType.BROKER, str(node_id)))

    def all_brokers(self) -> Mapping[str, str]:
        """Configs for every broker that has none of its own."""
        return self.of(Resource(ResourceType.BROKER, ""))

    def group(self, group_id: str) -> Mapping[str, str]:
        return self.of(Resource(ResourceType.GROUP, group_id))

    def client_metrics(self) -> dict[str, Mapping[str, str]]:
        """Configs of every subscription to client metrics, by name."""
        kind = ResourceType.CLIENT_METRICS
        return {name: self.of(Resource(kind, name)) for name in self.resources(kind)}

    def resources(self, kind: int) -> list[str]:
        """Names of the resources of a type that have an override."""
        return sorted(resource.name for resource in self._by_resource if resource.type == kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configs) and self._by_resource == other._by_resource

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> "Configs":
        copy = Configs()
        copy._by_resource = dict(self._by_resource)
        return copy

    def replay(self, record: ConfigRecord) -> None:
        resource = Resource(record.resource_type, record.resource_name)
        overrides = {**self.of(resource)}
        if record.value is not None:
            overrides[record.name] = record.value
        else:
            overrides.pop(record.name, None)
        if overrides:
            self._by_resource[resource] = overrides
        else:
            self._by_resource.pop(resource, None)

    def forget_topic(self, name: str) -> None:
        """Forget the configs of a topic that was deleted."""
        self._by_resource.pop(Resource(ResourceType.TOPIC, name), None)

    def records(self) -> Iterator[ConfigRecord]:
        for resource in sorted(self._by_resource):
            for name, value in sorted(self._by_resource[resource].items()):
                yield ConfigRecord(resource.type, resource.name, name, value)
