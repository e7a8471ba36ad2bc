"""What a config may be altered to while brokers run, beyond what its own definition says.

Apache Kafka's rules: values that go only with others, keys that grow or shrink at most by half, bounds that brokers set
for groups. The controller judges by what it knows, which is what was altered; of a broker's file it knows nothing and
takes Kafka's defaults.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kavka_broker.core.config.broker import KEYS, definition_of
from kavka_broker.core.config.broker_bounds import check_cleaner, check_per_ip
from kavka_broker.core.config.cordoned import check_cordoned
from kavka_broker.core.config.definition import REQUIRED, ConfigError
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.unserved_configs import LOGINS_OF_NODES, SECURED, plain_name

FROM_BROKER: Final = -2  # of a local retention: the same as that of the whole log

#: Keys that Apache Kafka applies while it runs, and this broker reads when it starts.
READ_AT_START: Final = ("listener.security.protocol.map", "listeners", *SECURED, *LOGINS_OF_NODES)
#: Numbers of threads; Apache Kafka changes such a number by half or to the double at most.
THREADS: Final = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)

Said = Mapping[str, str]


def check_altered(name: str, value: str, said: Said, before: Said) -> None:
    """Check that a broker config may be altered to this value. Raises ConfigError.

    `said` is all that is altered for the broker with this value in it, `before` the same without it.
    """
    if name in READ_AT_START:
        raise ConfigError(name, "is read when a broker starts; write it into the broker's file")
    definition = definition_of(name)
    assert definition is not None, f"{name} is not known"
    parsed = definition.parse(value)
    if name in THREADS:
        _check_threads(name, parsed, before)
    if (rule := RULES.get(plain_name(name))) is not None:
        rule(name, parsed, said)
    if name.endswith(".assignment.interval.ms"):
        kind = name.removesuffix(".assignment.interval.ms")
        _check_within(name, parsed, f"{kind}.min.assignment.interval.ms", f"{kind}.max.assignment.interval.ms", said)


def check_group(values: Said) -> None:
    """Check the configs of a group against the bounds that its brokers set. Raises ConfigError."""
    for name, text in values.items():
        if name not in GROUP_KEYS:
            raise ConfigError(name, "is not a config of a group")
        parsed = GROUP_KEYS[name].parse(text)
        kind, _, rest = name.replace(".num.", ".").partition(".")
        _check_within(name, parsed, f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}", {})


def _value(name: str, said: Said) -> Any:
    """The altered value of a key, otherwise its default."""
    definition = KEYS[name]
    assert definition.default is not REQUIRED, f"{name} has no default"
    return definition.parse(said[name]) if name in said else definition.default


def _check_within(name: str, value: Any, lowest: str, highest: str, said: Said) -> None:
    if lowest in KEYS and value < (low := _value(lowest, said)):
        raise ConfigError(name, f"{value} is below {lowest}={low}; write {low} or more")
    if highest in KEYS and value > (high := _value(highest, said)):
        raise ConfigError(name, f"{value} is above {highest}={high}; write at most {high}")


def _check_threads(name: str, count: int, before: Said) -> None:
    now = _value(name, before)
    if not now // 2 <= count <= now * 2:
        raise ConfigError(name, f"{now} -> {count} is too much at once; write {max(now // 2, 1)} to {now * 2}")


def _at_least(low: int) -> Callable[[str, Any, Said], None]:
    def check(name: str, value: Any, _: Said) -> None:
        """Raises ConfigError where the value is too low."""
        if value < low:
            raise ConfigError(name, f"{value} is not allowed; write {low} or more")

    return check


def _retention(name: str, value: int, _: Said) -> None:
    if value == 0:
        raise ConfigError(name, "0 would delete every record; write -1 forever, or 1 or more")


def _local_retention(name: str, value: int, said: Said) -> None:
    whole = name.replace(".local", "")
    held = _value(whole, said)
    if held is None:
        held = KEYS["log.retention.hours"].default * 3_600_000
    if value != FROM_BROKER and held >= 0 and not 0 <= value <= held:
        raise ConfigError(name, f"{value} is more than {whole}={held}; write at most that, or {FROM_BROKER}")


def _per_ip(name: str, value: int, said: Said) -> None:
    check_per_ip(name, value, said.get("max.connections.per.ip.overrides"))


def _cleaner(name: str, _: Any, said: Said) -> None:
    check_cleaner(name, _value("log.cleaner.dedupe.buffer.size", said), _value("log.cleaner.threads", said))


def _cordoned(_: str, value: tuple[str, ...], __: Said) -> None:
    check_cordoned(value)


def _reporters(name: str, value: tuple[str, ...], _: Said) -> None:
    if strange := [item for item in value if item not in KEYS[name].default]:
        raise ConfigError(
            name, f"{', '.join(strange)}: no broker here loads classes; metrics are at kavka.admin.listener"
        )


RULES: Final[Mapping[str, Callable[[str, Any, Said], None]]] = {
    "cordoned.log.dirs": _cordoned,
    "log.cleaner.dedupe.buffer.size": _cleaner,
    "log.cleaner.threads": _cleaner,
    "log.local.retention.bytes": _local_retention,
    "log.local.retention.ms": _local_retention,
    "log.retention.ms": _retention,
    "log.roll.jitter.ms": _at_least(0),
    "log.roll.ms": _at_least(1),
    "max.connection.creation.rate": _at_least(1),
    "max.connections": _at_least(1),
    "max.connections.per.ip": _per_ip,
    "metric.reporters": _reporters,
}
assert KEYS.keys() >= {*RULES, *THREADS, *READ_AT_START}, "a rule is about no key"
