"""Kafka's own settings in a resource: known names and values that can stand, by the broker's tables.

A server takes an unknown name silently, so that a typing error in `retention.ms` shows months later. A resource does
not: the name must be known, or the nearest known one is proposed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from kavka_broker.core.config.broker import KEYS as BROKER_KEYS
from kavka_broker.core.config.broker import SYNONYMS
from kavka_broker.core.config.definition import ConfigError, Definition, Mode
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from kavka_broker.core.config.unserved_configs import check_secured, empty_promise
from kavka_operator.api.error_messages import nearest

DEFAULTS_OF_TOPICS = frozenset(
    definition.synonym for definition in TOPIC_KEYS.values() if definition.synonym in BROKER_KEYS
)
BROKER_NAMES = {
    name: definition.synonym
    for name, definition in TOPIC_KEYS.items()
    if definition.synonym and name not in BROKER_KEYS
}
"""By the name of a topic's setting: the broker's setting that stands in for it."""
TOPIC_NAMES = {
    unit: name
    for name, definition in TOPIC_KEYS.items()
    if definition.synonym
    for unit in (definition.synonym, *SYNONYMS.get(definition.synonym, ()))
    if unit not in TOPIC_KEYS and unit in BROKER_KEYS
}
"""By the name of a broker's setting: the topic's setting that it stands in for."""
OPEN_PREFIXES = ("listener.name.",)
OF_SECURITY = re.compile(
    r"listener\.name\.(nodes|controller)\..*|(listener\.name\.[^.]+\.)?(ssl\.(keystore|truststore)\..*"
    r"|ssl\.client\.auth|ssl\.key\.password|sasl\.enabled\.mechanisms)|listener\.name\.[^.]+\.[^.]+\.sasl\..*"
    r"|authorizer\.class\.name|super\.users|allow\.everyone\.if\.no\.acl\.found"
)
"""Settings of a secured cluster that follow from its other fields."""


def topic_faults(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Faults in the settings of a topic, as (name, words)."""
    return _faults(config, TOPIC_KEYS, "topic", TOPIC_NAMES)


def broker_faults(
    config: Mapping[str, str], protocols: Iterable[str] = ("PLAINTEXT",), *, is_secured: bool = False
) -> Iterator[tuple[str, str]]:
    """Faults in the settings of a cluster, as (name, words). `protocols` are those that its listeners speak."""
    yield from _faults(config, BROKER_KEYS, "broker", BROKER_NAMES)
    yield from _empty_promises(config, protocols)
    for name in config:
        if is_secured and OF_SECURITY.fullmatch(name.lower()):
            yield name, "follows from spec.listeners, spec.tls and spec.authorization; take it out"


def dynamic(name: str) -> bool:
    """Whether brokers take a change of this setting without a restart: it is the default of a topic's setting."""
    return name in DEFAULTS_OF_TOPICS and BROKER_KEYS[name].mode is Mode.CLUSTER_WIDE


def same_value(name: str, first: str, second: str) -> bool:
    """Whether two spellings of a topic's setting mean the same ("compact, delete" and "compact,delete")."""
    if first == second or name not in TOPIC_KEYS:
        return first == second
    try:
        return bool(TOPIC_KEYS[name].parse(first) == TOPIC_KEYS[name].parse(second))
    except ConfigError:
        return False


def _empty_promises(config: Mapping[str, str], protocols: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Settings with which a broker of this version does not start, because it would not do what they promise."""
    for name, value in config.items():
        if (problem := empty_promise(name, value, config)) is not None:
            yield name, problem
            continue
        try:
            check_secured({name: value}, protocols)
        except ConfigError as error:
            yield name, error.problem


def _faults(
    config: Mapping[str, str], known: Mapping[str, Definition], owner: str, other_names: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Faults as (name, words). `other_names` are those under which a setting is known elsewhere: of two that look alike
    the nearer one may do something else, as `log.retention.ms` in the place of `delete.retention.ms`.
    """
    for name, value in config.items():
        if name.startswith(OPEN_PREFIXES):
            continue
        if name not in known:
            meant = other_names.get(name) or nearest(name, list(known))
            fix = f'did you mean "{meant}"?' if meant else "take it out"
            yield name, f"is not a setting of a {owner}; {fix}"
            continue
        try:
            known[name].parse(value)
        except ConfigError as error:
            yield name, error.problem
