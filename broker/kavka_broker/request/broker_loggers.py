"""The levels of a node's own loggers, as `kafka-configs --entity-type broker-loggers` shows and alters them (KIP-412).

A node answers for itself alone, and forgets what was altered when it ends, as in Apache Kafka. Its loggers are `kavka`
and one for each area (`kavka.replica`), which follows `kavka` until it is set. A resource changes whole or not at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kavka_broker import logs
from kavka_broker.core.config.definition import ConfigType
from kavka_broker.core.config.describe import Described, Source
from kavka_broker.core.metadata.decide.configs import Operation
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.request.broker import Broker

log = logs.get("api")

CONFIGS_MAX: Final = 1_000
"""Loggers that one request may name; there are some twenty."""


def describe_loggers() -> Iterator[Described]:
    """Describe the level of every logger of this process."""
    for name, level in logs.levels().items():
        yield Described(name, level, Source.BROKER_LOGGER, (), ConfigType.STRING)


def is_about_loggers(request: IncrementalAlterConfigsRequest) -> bool:
    """Whether a request alters loggers and nothing else: then the node that is asked decides it."""
    kinds = {resource.resource_type for resource in request.resources}
    return kinds == {ResourceType.BROKER_LOGGER}


def check_own(name: str, broker: Broker) -> None:
    """Raises BrokerError where another node is named, or where the audit trail has no room for what is altered."""
    own = broker.quorum.node_id
    if name != str(own):
        problem = f'this is broker {own}, not "{name}"; ask that broker'
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)


def alter_loggers(name: str, configs: Sequence[AlterableConfig], broker: Broker, *, validate_only: bool) -> None:
    """Alter the levels of loggers of this node. Raises BrokerError, and has altered nothing then."""
    check_own(name, broker)
    if len(configs) > CONFIGS_MAX:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{len(configs)} loggers; a node has fewer")
    known = logs.levels()
    changes = dict(_changes(configs, known))
    if validate_only:
        return
    for logger, level in changes.items():
        logs.set_level(logger, level)
        log.warning("log_level.altered", logger=logger, level=level or known[logs.LOGGER_NAME])


def _changes(configs: Iterable[AlterableConfig], known: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    for config in configs:
        if config.name not in known:
            problem = f'there is no logger "{config.name[:100]}"; the loggers are {", ".join(known)}'
            raise BrokerError(ErrorCode.INVALID_CONFIG, problem)
        match config.config_operation:
            case Operation.SET:
                level = (config.value or "").upper()
                if level not in logs.LEVELS:
                    problem = f"{config.name}: a level is one of {', '.join(logs.LEVELS)}"
                    raise BrokerError(ErrorCode.INVALID_CONFIG, problem)
                yield config.name, level
            case Operation.DELETE:
                if config.name == logs.LOGGER_NAME:
                    problem = f"{config.name} is above all other loggers and needs a level; set one"
                    raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
                yield config.name, None
            case _:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "a level is no list: set it, or delete it")
