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
from kavka_broker.core.config.broker_table import BROKER_KEYS
from kavka_broker.core.config.coordinator_table import COORDINATOR_KEYS
from kavka_broker.core.config.cordoned import check_cordoned
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
from kavka_broker.core.config.listeners import Listener, parse_listeners, protocol_map
from kavka_broker.core.config.security_table import SECURITY_KEYS
from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.core.config.topic_table import TOPIC_KEYS

if TYPE_CHECKING:
    from kavka_broker.core.config import key_types as names

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
MEBIBYTE: Final = 1 << 20
#: Hosts to listen on, and none to connect to.
EVERYWHERE: Final = ("", "0.0.0.0")

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


def definition_of(name: str) -> Definition | None:
    """The definition of a key, also of a listener's; None for a key that is unknown or not read."""
    if (said := listener_key(name)) is not None:
        return replace(KEYS[said[1]], name=name)
    return KEYS.get(name)


def check_cleaner(name: str, size_bytes: int, threads: int) -> None:
    """Check that each thread of the cleaner has room for a map of offsets. Raises ConfigError about `name`."""
    if not threads or size_bytes // threads <= MEBIBYTE:
        raise ConfigError(
            name, f"{size_bytes} bytes for {threads} threads; each needs more than {MEBIBYTE}, and one at least"
        )


def check_per_ip(name: str, count: int, overrides: Any) -> None:
    """Check that anybody may connect. Raises ConfigError about `name`."""
    if count == 0 and not overrides:
        raise ConfigError(name, "0 lets nobody in; write 1 or more, or let some in by max.connections.per.ip.overrides")


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

    @property
    def rack(self) -> str | None:
        return self["broker.rack"]

    @cached_property
    def log_dirs(self) -> tuple[str, ...]:
        """Log directories: `log.dirs`, otherwise `log.dir`."""
        return self["log.dirs"] or self["log.dir"]

    @cached_property
    def metadata_log_dir(self) -> str:
        """The directory of `__cluster_metadata-0`: the first log directory unless set otherwise."""
        return self["metadata.log.dir"] or self.log_dirs[0]

    @cached_property
    def protocols(self) -> dict[str, str]:
        """The security protocols by the names of listeners, of this node and of others."""
        key = "listener.security.protocol.map"
        protocols = protocol_map(key, self._values[key].split(","))
        if key not in self.given:
            # No protocol map is set: a controller listener may then have any name, and is plain text.
            for name in self["controller.listener.names"]:
                protocols.setdefault(name.upper(), "PLAINTEXT")
        return protocols

    def protocol_of(self, name: str) -> str:
        """The security protocol of a listener, of this node or of others. Raises ConfigError where it is not known."""
        if name not in self.protocols:
            raise ConfigError("listener.security.protocol.map", f"does not tell the protocol of {name}; add {name}:SSL")
        return self.protocols[name]

    @cached_property
    def all_listeners(self) -> tuple[Listener, ...]:
        """Every listener that this process opens."""
        return parse_listeners("listeners", self["listeners"], self.protocols)

    @cached_property
    def controller_listener_names(self) -> tuple[str, ...]:
        return tuple(name.upper() for name in self["controller.listener.names"])

    @cached_property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners for clients and other brokers."""
        return tuple(listener for listener in self.all_listeners if listener.name not in self.controller_listener_names)

    @cached_property
    def controller_listeners(self) -> tuple[Listener, ...]:
        """The controller listeners that this process opens, if it is a controller."""
        return tuple(listener for listener in self.all_listeners if listener.name in self.controller_listener_names)

    @cached_property
    def _advertised(self) -> tuple[Listener, ...] | None:
        given = self["advertised.listeners"]
        return parse_listeners("advertised.listeners", given, self.protocols) if given else None

    @cached_property
    def advertised_listeners(self) -> tuple[Listener, ...]:
        """Listeners that clients are told, by name. An unset one is the listener itself."""
        listeners = self.listeners if self._advertised is None else self._advertised
        return tuple(listener for listener in listeners if listener.name not in self.controller_listener_names)

    @cached_property
    def advertised_controllers(self) -> tuple[Listener, ...]:
        """Listeners where other nodes find this controller: as advertised, otherwise where it listens."""
        advertised = {listener.name: listener for listener in self._advertised or ()}
        return tuple(
            advertised.get(listener.name)
            or replace(listener, host="localhost" if listener.host in EVERYWHERE else listener.host)
            for listener in self.controller_listeners
        )

    @cached_property
    def inter_broker_listener_name(self) -> str:
        name = self["inter.broker.listener.name"]
        return name.upper() if name else self["security.inter.broker.protocol"]

    @cached_property
    def per_listener(self) -> dict[str, dict[str, int]]:
        """The values of `listener.name.X.KEY`, by key and listener: most configurations set none of them."""
        values: dict[str, dict[str, int]] = {key: {} for key in LISTENER_KEYS}
        for name, value in self._values.items():
            if (said := listener_key(name)) is not None:
                listener, key = said
                values[key][listener] = int(value)
        return values

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
        self._check_logs()
        self._check_listeners()
        self._check_connections()
        self._check_waits()
        check_consumer_groups(self.whole)
        check_share_groups(self.whole)
        check_streams_groups(self.whole)

    def _check_given(self) -> None:
        for name in NEVER_EMPTY:
            if name in self.given and not self._values[name]:
                raise ConfigError(name, "is empty; leave the key out for its default")
        if self["broker.id"] != self.node_id:
            raise ConfigError("broker.id", f"{self['broker.id']} is not node.id={self.node_id}; leave broker.id out")

    def _check_connections(self) -> None:
        size, queued = self["socket.request.max.bytes"], self["queued.max.request.bytes"]
        if 0 < queued < size:
            raise ConfigError("queued.max.request.bytes", f"{queued} holds not even one request; write {size} or more")
        check_per_ip("max.connections.per.ip", self["max.connections.per.ip"], self["max.connections.per.ip.overrides"])
        delay_ms, idle_ms = self["connection.failed.authentication.delay.ms"], self["connections.max.idle.ms"]
        if 0 <= idle_ms <= delay_ms:
            raise ConfigError("connections.max.idle.ms", f"{idle_ms} is too short; write {delay_ms + 1} or more")

    def _check_waits(self) -> None:
        wait_ms = self["replica.fetch.wait.max.ms"]
        for name in ("replica.lag.time.max.ms", "replica.socket.timeout.ms"):
            if wait_ms > self.whole(name):
                raise ConfigError("replica.fetch.wait.max.ms", f"is above {name}; write a smaller value")
        interval, session = self["broker.heartbeat.interval.ms"], self["broker.session.timeout.ms"]
        if interval * 2 > session:
            raise ConfigError("broker.heartbeat.interval.ms", f"{interval} leaves no second chance within {session} ms")
        for name in ("election", "fetch", "request"):
            key = f"controller.quorum.{name}.timeout.ms"
            if not self.whole(key):
                raise ConfigError(key, "0 leaves no time for an answer; write 1 or more")

    def _check_logs(self) -> None:
        retention_ms = self.milliseconds("log.retention.ms")
        if retention_ms == 0 or retention_ms < -1:
            raise ConfigError("log.retention.ms", "keeps nothing; write -1 forever, or 1 or more")
        for name, least in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
            if (value := self.milliseconds(name)) < least:
                raise ConfigError(name, f"{value} is not allowed; write {least} or more")
        if threads := self["log.cleaner.threads"]:
            check_cleaner("log.cleaner.dedupe.buffer.size", self["log.cleaner.dedupe.buffer.size"], threads)
        if not self.log_dirs:
            raise ConfigError("log.dirs", "is empty; write at least one directory")
        if len(set(self.log_dirs)) < len(self.log_dirs):
            raise ConfigError("log.dirs", "names a directory twice; name each only once")
        check_cordoned(self["cordoned.log.dirs"], self.log_dirs)

    def _check_listeners(self) -> None:
        if not self.roles:
            raise ConfigError("process.roles", "is empty; write broker, controller or broker,controller")
        names = [listener.name for listener in self.all_listeners]
        if not names:
            raise ConfigError("listeners", "is empty; write for example PLAINTEXT://:9092,CONTROLLER://:9093")
        for name in self.controller_listener_names:
            if "controller" in self.roles and name not in names:
                raise ConfigError("controller.listener.names", f"{name} is not among listeners; add {name}://:9093")
        if "broker" in self.roles:
            self._check_advertised(names)

    def _check_advertised(self, names: list[str]) -> None:
        if not self.listeners:
            raise ConfigError("listeners", "has only controller listeners; add one for clients, PLAINTEXT://:9092")
        advertised = {listener.name for listener in self.advertised_listeners}
        for name in advertised - set(names):
            raise ConfigError("advertised.listeners", f"{name} is not among listeners; add it there or remove it")
        if self.inter_broker_listener_name not in advertised:
            name = self.inter_broker_listener_name
            raise ConfigError("inter.broker.listener.name", f"{name} is not advertised; choose of {sorted(advertised)}")
        for listener in self._advertised or self.listeners:
            if listener.host == "0.0.0.0":
                raise ConfigError("advertised.listeners", f"{listener} is no address to connect to; name the host")
