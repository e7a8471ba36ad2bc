"""The configuration of one broker, typed, from a properties file and what was altered at run time.

Later words win: Kafka's default, the file, the cluster-wide dynamic default, the dynamic config of this broker. A value
that cannot stand is refused at start with the key, the value and the fix; an unknown key is kept and named
in `unknown`, as Kafka does, so that a file written for a newer broker still starts an older one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, overload

from kavka_broker.core.authorization.settings import OWN_KEYS
from kavka_broker.core.config.broker_bounds import check_connections, check_directories, check_logs, check_waits
from kavka_broker.core.config.broker_table import BROKER_KEYS
from kavka_broker.core.config.coordinator_table import COORDINATOR_KEYS
from kavka_broker.core.config.definition import (
    REQUIRED,
    ConfigError,
    ConfigType,
    Definition,
    Mode,
    OneOf,
    Range,
    Secret,
    http_address,
    render,
)
from kavka_broker.core.config.group_bounds import check_consumer_groups, check_share_groups, check_streams_groups
from kavka_broker.core.config.listeners import Listeners, protocol_map
from kavka_broker.core.config.security_table import SECURITY_KEYS
from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.core.config.topic_table import TOPIC_KEYS

if TYPE_CHECKING:
    from kavka_broker.core.config import key_types as names

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000

#: Keys whose empty value says nothing: a file that has one was meant to say something.
NEVER_EMPTY: Final = (
    "advertised.listeners",
    "group.consumer.assignors",
    "group.share.assignors",
    "group.coordinator.rebalance.protocols",
    "inter.broker.listener.name",
    "log.dirs",
)

#: Kavka's own keys; all of them begin with "kavka.", so none can meet one of Kafka's.
KAVKA_KEYS: Final = {
    "kavka.admin.listener": Definition("kavka.admin.listener", ConfigType.STRING, "", served=True),
    "kavka.audit.buffer.events": Definition(
        "kavka.audit.buffer.events", ConfigType.INT, 20_000, check=Range(10_000, 1_000_000), served=True
    ),
    "kavka.audit.failure.policy": Definition(
        "kavka.audit.failure.policy", ConfigType.STRING, "permit", check=OneOf(("permit", "reject")), served=True
    ),
    "kavka.audit.interval.ms": Definition(
        "kavka.audit.interval.ms", ConfigType.INT, 60_000, check=Range(1_000, 600_000), served=True
    ),
    "kavka.audit.key.file": Definition("kavka.audit.key.file", ConfigType.STRING, "", served=True),
    "kavka.event.loop": Definition(
        "kavka.event.loop", ConfigType.STRING, "uvloop", check=OneOf(("uvloop", "asyncio")), served=True
    ),
    "kavka.group.lag.interval.ms": Definition(
        "kavka.group.lag.interval.ms", ConfigType.INT, 15_000, check=Range(1), served=True
    ),
    "kavka.group.rebalance.heartbeat.interval.ms": Definition(
        "kavka.group.rebalance.heartbeat.interval.ms", ConfigType.INT, 500, check=Range(0), served=True
    ),
    "kavka.log.format": Definition(
        "kavka.log.format", ConfigType.STRING, "text", check=OneOf(("text", "json")), served=True
    ),
    "kavka.log.level": Definition(
        "kavka.log.level", ConfigType.STRING, "info", check=OneOf(("debug", "info", "warning", "error")), served=True
    ),
    "kavka.login.timeout.ms": Definition("kavka.login.timeout.ms", ConfigType.INT, 30_000, check=Range(1), served=True),
    "kavka.log.stray.retention.ms": Definition(
        "kavka.log.stray.retention.ms", ConfigType.LONG, 7 * 24 * HOUR_MS, check=Range(0), served=True
    ),
    "kavka.quota.first.burst.ms": Definition(
        "kavka.quota.first.burst.ms", ConfigType.INT, None, check=Range(1), served=True
    ),
    "kavka.metrics.names": Definition(
        "kavka.metrics.names", ConfigType.LIST, (), check=OneOf(("confluent", "strimzi")), served=True
    ),
    "kavka.telemetry.otlp.endpoint": Definition(
        "kavka.telemetry.otlp.endpoint", ConfigType.STRING, "", check=http_address, served=True
    ),
    "kavka.transaction.connection.verification.enable": Definition(
        "kavka.transaction.connection.verification.enable", ConfigType.BOOLEAN, True, served=True
    ),
}

#: Throttles of replication: altered while a broker runs (KIP-73). Apache Kafka passes over one in a broker's file; here
#: it holds, until it is altered. Shown once they are set.
THROTTLE_KEYS: Final = {
    name: Definition(
        name, ConfigType.LONG, LONG_MAX, check=Range(0), mode=Mode.CLUSTER_WIDE, internal=True, served=True
    )
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}

KEYS: Final[Mapping[str, Definition]] = {
    **BROKER_KEYS,
    **COORDINATOR_KEYS,
    **SECURITY_KEYS,
    **KAVKA_KEYS,
    **THROTTLE_KEYS,
}

assert all(name.startswith("kavka.") for name in KAVKA_KEYS), "Kafka may have a key of any other name"
assert len(KEYS) == sum(map(len, (BROKER_KEYS, COORDINATOR_KEYS, SECURITY_KEYS, KAVKA_KEYS, THROTTLE_KEYS))), (
    "a key is in two tables"
)
assert all(definition.synonym in (None, *KEYS) for definition in TOPIC_KEYS.values()), "a topic's key stands for none"

#: Keys that say the same in a coarser unit, the finest first; the first that is set counts.
SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


assert all(KEYS.keys() >= {name, *units} for name, units in SYNONYMS.items()), "a coarser unit is no key"
assert all(units[0] == name for name, units in SYNONYMS.items()), "a key does not come before its coarser units"

OF_A_LISTENER: Final = "listener.name."
#: Keys that may be set for one listener alone, and that this version reads there.
LISTENER_KEYS: Final = ("max.connections", "max.connection.creation.rate")
assert KEYS.keys() >= set(LISTENER_KEYS), "a listener has a key that no broker has"


def listener_key(name: str) -> tuple[str, str] | None:
    """The listener's name and the plain key in it; None unless this version reads the key for one listener."""
    listener, _, key = name.removeprefix(OF_A_LISTENER).partition(".")
    return (listener.upper(), key) if name.startswith(OF_A_LISTENER) and key in LISTENER_KEYS else None


def listener_bounds(values: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """The values of `listener.name.X.KEY`, by key and listener."""
    bounds: dict[str, dict[str, int]] = {key: {} for key in LISTENER_KEYS}
    for name, value in values.items():
        if (said := listener_key(name)) is not None:
            listener, key = said
            bounds[key][listener] = int(value)
    return bounds


def definition_of(name: str) -> Definition | None:
    """The definition of a key, also of a listener's; None for a key that is unknown or not read."""
    if (said := listener_key(name)) is not None:
        return replace(KEYS[said[1]], name=name)
    return KEYS.get(name)


class BrokerConfig:
    """Typed values by Kafka's names: `config["log.segment.bytes"]`. Never changes; `altered` makes another."""

    def __init__(self, given: Mapping[str, str], values: Mapping[str, Any]) -> None:
        self.given = dict(given)
        self._values = dict(values)

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Parse a whole broker's configuration. Raises ConfigError."""
        values = {name: definition.default for name, definition in KEYS.items()}
        for name, text in properties.items():
            if (definition := definition_of(name)) is not None:
                values[name] = definition.parse(text)
        for name, value in values.items():
            if value is REQUIRED:
                raise ConfigError(name, "is missing; every server needs it")
        given = dict(properties)
        if "broker.id" not in given:
            # The older name of node.id; some tools still ask for it.
            given["broker.id"], values["broker.id"] = given["node.id"], values["node.id"]
        config = cls(given, values)
        config._check()
        return config

    def altered(self, *overrides: Mapping[str, str]) -> BrokerConfig:
        """Lay dynamic values over this configuration, the last the strongest.

        A dynamic value that cannot be read is passed over: it was valid when it was written, and a broker has to start.
        """
        values = dict(self._values)
        for override in overrides:
            for name, text in override.items():
                if (definition := definition_of(name)) is not None:
                    with suppress(ConfigError):
                        values[name] = definition.parse(text)
        return BrokerConfig(self.given, values)

    @overload
    def __getitem__(self, name: names.Boolean) -> bool: ...
    @overload
    def __getitem__(self, name: names.Whole) -> int: ...
    @overload
    def __getitem__(self, name: names.OptionalWhole) -> int | None: ...
    @overload
    def __getitem__(self, name: names.Double) -> float: ...
    @overload
    def __getitem__(self, name: names.Text) -> str: ...
    @overload
    def __getitem__(self, name: names.OptionalText) -> str | None: ...
    @overload
    def __getitem__(self, name: names.List) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, name: names.OptionalList) -> tuple[str, ...] | None: ...
    @overload
    def __getitem__(self, name: names.OptionalSecret) -> Secret | None: ...
    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def whole(self, name: str) -> int:
        """The value of an integer key whose name is put together in code."""
        value = self._values[name]
        assert isinstance(value, int), f"{name} is no whole number"
        return value

    def text(self, name: str) -> str | None:
        """The value as a properties file has it; None for no value. Secrets are not hidden here."""
        return render(self._values[name])

    @property
    def unknown(self) -> tuple[str, ...]:
        """Keys that were given and are unknown. Keys of a listener (`listener.name.`...) are not among them."""
        known = (*KEYS, *OWN_KEYS) if self["authorizer.class.name"] else (*KEYS,)
        return tuple(name for name in self.given if name not in known and not name.startswith(OF_A_LISTENER))

    @property
    def node_id(self) -> int:
        return self["node.id"]

    @property
    def roles(self) -> tuple[str, ...]:
        return self["process.roles"]

    @cached_property
    def log_dirs(self) -> tuple[str, ...]:
        """Log directories: `log.dirs`, otherwise `log.dir`."""
        return self["log.dirs"] or self["log.dir"]

    @cached_property
    def metadata_log_dir(self) -> str:
        """The directory of `__cluster_metadata-0`: the first log directory unless set otherwise."""
        return self["metadata.log.dir"] or self.log_dirs[0]

    @cached_property
    def listeners(self) -> Listeners:
        """The listeners of this node. Raises ConfigError where its map of protocols cannot be read."""
        key: Final = "listener.security.protocol.map"
        controllers = tuple(name.upper() for name in self["controller.listener.names"])
        protocols = protocol_map(key, self[key].split(","))
        if key not in self.given:
            # No protocol map is set: a controller listener may then have any name, and is plain text.
            protocols |= {name: "PLAINTEXT" for name in controllers if name not in protocols}
        own = self["inter.broker.listener.name"]
        return Listeners(
            opened_texts=self["listeners"],
            advertised_texts=self["advertised.listeners"],
            controller_names=controllers,
            inter_broker_name=own.upper() if own else self["security.inter.broker.protocol"],
            protocols=protocols,
            bounds=listener_bounds(self._values),
        )

    def milliseconds(self, name: str) -> int:
        """A duration that may also be given in a coarser unit (`log.retention.hours`)."""
        for synonym in SYNONYMS[name]:
            value: int | None = self._values[synonym]
            if value is not None:
                unit = HOUR_MS if synonym.endswith(".hours") else MINUTE_MS if synonym.endswith(".minutes") else 1
                return value if value < 0 else value * unit
        raise AssertionError(f"{name} has no default")

    @cached_property
    def log_config(self) -> LogConfig:
        """The configuration of a topic without overrides."""
        values: dict[str, Any] = {}
        for name, definition in TOPIC_KEYS.items():
            if (synonym := definition.synonym) is not None:
                value = self.milliseconds(synonym) if synonym in SYNONYMS else self._values[synonym]
                values[name.replace(".", "_")] = value
        return LogConfig(**values)

    def _check(self) -> None:
        """Check rules that span several keys. Raises ConfigError."""
        self._check_given()
        check_logs(self.milliseconds, self.whole)
        check_directories(self.log_dirs, self["cordoned.log.dirs"])
        self.listeners.check(self.roles)
        check_connections(self.whole, self["max.connections.per.ip.overrides"])
        check_waits(self.whole)
        check_consumer_groups(self.whole)
        check_share_groups(self.whole)
        check_streams_groups(self.whole)

    def _check_given(self) -> None:
        for name in NEVER_EMPTY:
            if name in self.given and not self._values[name]:
                raise ConfigError(name, "is empty; leave the key out for its default")
        if self["broker.id"] != self.node_id:
            raise ConfigError("broker.id", f"{self['broker.id']} is not node.id={self.node_id}; leave broker.id out")
