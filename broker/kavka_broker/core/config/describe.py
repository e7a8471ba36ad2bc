"""A config as DescribeConfigs shows it: what counts, where that comes from, and what it stands before.

A value may be said in several places. The most particular one counts; the others are its synonyms, in order, and an
operator sees by them what would hold if the first were deleted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import dropwhile

from kavka_broker.core.config.broker import KEYS, SYNONYMS, BrokerConfig, definition_of, listener_key
from kavka_broker.core.config.client_metrics_table import CLIENT_METRICS_KEYS
from kavka_broker.core.config.definition import REQUIRED, ConfigType, Definition, Mode, render
from kavka_broker.core.config.dynamic import READ_AT_START
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.topic import with_overrides
from kavka_broker.core.config.topic_table import TOPIC_KEYS


class Source(IntEnum):
    """The place where a value was set, with the numbers of the protocol."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value and the place where it was set."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Described:
    """One config of one resource. The value of a secret is None."""

    name: str
    value: str | None
    source: Source
    synonyms: tuple[Synonym, ...]
    type: ConfigType = ConfigType.UNKNOWN
    sensitive: bool = False
    read_only: bool = False

    def __post_init__(self) -> None:
        assert not self.sensitive or self.value is None, f"the value of {self.name} would be shown"
        assert not self.synonyms or self.synonyms[0].source is self.source, f"another place counts than {self.synonyms}"


@dataclass(frozen=True, slots=True)
class Layers:
    """The configuration of a broker by place: its file, and what was altered for it and for all brokers."""

    config: BrokerConfig
    own: Mapping[str, str]
    every_broker: Mapping[str, str]

    @property
    def effective(self) -> BrokerConfig:
        return self.config.altered(self.every_broker, self.own)

    def said(self, name: str) -> tuple[Synonym, ...]:
        """Every place that sets a broker config, the one that counts first."""
        definition = definition_of(name)
        of_listener = listener_key(name)
        names = SYNONYMS.get(name, (name,)) if of_listener is None else (name, of_listener[1])
        sensitive = definition is None or definition.sensitive
        found = [
            Synonym(synonym, None if sensitive else layer[synonym], source)
            for layer, source in (
                (self.own, Source.DYNAMIC_BROKER),
                (self.every_broker, Source.DYNAMIC_DEFAULT_BROKER),
                (self.config.given, Source.STATIC_BROKER),
            )
            for synonym in names
            if synonym in layer
        ]
        found += [
            Synonym(synonym, None if sensitive else value, Source.DEFAULT)
            for synonym in names
            if (value := _default(synonym)) is not None
        ]
        # A coarser unit shows only behind a place that sets the key itself, as in Apache Kafka.
        return tuple(dropwhile(lambda synonym: synonym.name != name, found))


def describe_topic(overrides: Mapping[str, str], layers: Layers) -> Iterator[Described]:
    """Describe every config of a topic; an internal one where the topic sets it."""
    values = with_overrides(layers.effective.log_config, overrides)
    for name, definition in TOPIC_KEYS.items():
        if definition.internal and name not in overrides:
            continue
        value = render(getattr(values, name.replace(".", "_")))
        synonyms = layers.said(definition.synonym) if definition.synonym is not None else ()
        if name in overrides:
            synonyms = (Synonym(name, value, Source.TOPIC), *synonyms)
        source = synonyms[0].source if synonyms else Source.DEFAULT
        yield Described(name, value, source, synonyms, definition.type)


def describe_broker(layers: Layers) -> Iterator[Described]:
    """Describe every config of a broker, those of one listener alone, and unknown keys wherever they are set."""
    effective = layers.effective
    for name, definition in sorted(KEYS.items()):
        synonyms = layers.said(name)
        if not definition.internal or (synonyms and synonyms[0].source is not Source.DEFAULT):
            yield _described(name, definition, effective.text(name), synonyms)
    names = {**layers.config.given, **layers.every_broker, **layers.own}
    of_listeners = _of_listeners(names)
    for name, definition in of_listeners.items():
        synonyms = layers.said(name)
        yield _described(name, definition, synonyms[0].value, synonyms)
    for name in sorted(names.keys() - KEYS.keys() - of_listeners.keys()):
        synonyms = layers.said(name)
        yield Described(name, None, synonyms[0].source, synonyms, sensitive=True, read_only=True)


def describe_every_broker(layers: Layers) -> Iterator[Described]:
    """Describe what was altered for all brokers."""
    for name, value in sorted(layers.every_broker.items()):
        unknown = Definition(name, ConfigType.PASSWORD, None, mode=Mode.CLUSTER_WIDE)
        definition = KEYS.get(name) or _of_listeners([name]).get(name, unknown)
        shown = None if definition.sensitive else value
        synonym = Synonym(name, shown, Source.DYNAMIC_DEFAULT_BROKER)
        yield _described(name, definition, value, (synonym,))


def describe_group(overrides: Mapping[str, str], layers: Layers) -> Iterator[Described]:
    """Describe every config of a group. A key that the group does not set has the value of the broker's own key."""
    effective = layers.effective
    for name, definition in GROUP_KEYS.items():
        stand_in = f"group.{name}"
        if stand_in in KEYS:
            value, synonyms = effective.text(stand_in), layers.said(stand_in)
        else:
            value = render(definition.default)
            synonyms = (Synonym(name, value, Source.DEFAULT),)
        if name in overrides:
            value = overrides[name]
            synonyms = (Synonym(name, value, Source.GROUP), *synonyms)
        yield Described(name, value, synonyms[0].source, synonyms, definition.type)


def describe_client_metrics(overrides: Mapping[str, str]) -> Iterator[Described]:
    """Describe every config of a subscription to client metrics, whether there is one of this name or not."""
    for name, definition in CLIENT_METRICS_KEYS.items():
        if name in overrides:
            parsed = definition.parse(overrides[name])
            value = render(tuple(dict.fromkeys(parsed)) if isinstance(parsed, tuple) else parsed)
            synonyms: tuple[Synonym, ...] = (Synonym(name, value, Source.CLIENT_METRICS),)
        else:  # unlike the other kinds of resources, as in Apache Kafka
            value, synonyms = render(definition.default), ()
        source = synonyms[0].source if synonyms else Source.DEFAULT
        yield Described(name, value, source, synonyms, definition.type)


def _described(name: str, definition: Definition, value: str | None, synonyms: tuple[Synonym, ...]) -> Described:
    return Described(
        name,
        None if definition.sensitive else value,
        synonyms[0].source if synonyms else Source.DEFAULT,
        synonyms,
        definition.type,
        definition.sensitive,
        read_only=definition.mode is Mode.READ_ONLY or name in READ_AT_START,
    )


def _of_listeners(names: Iterable[str]) -> dict[str, Definition]:
    """Return the definitions of those keys that are set for one listener alone. Apache Kafka describes them as
    read-only, although they may be altered.
    """
    keys = {name: definition_of(name) for name in sorted(names) if listener_key(name) is not None}
    return {name: replace(found, mode=Mode.READ_ONLY) for name, found in keys.items() if found is not None}


def _default(name: str) -> str | None:
    definition = KEYS.get(name)
    if definition is None or definition.default is REQUIRED:
        return None
    return render(definition.default)
