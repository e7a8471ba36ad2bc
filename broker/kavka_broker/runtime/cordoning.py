"""Cordons log directories as the configuration says (KIP-1066): new logs go elsewhere, and the controller is told."""

from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.cordoned import cordoned
from kavka_broker.core.metadata.image.features import CORDONED_SINCE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.membership.lifecycle import Lifecycle
from kavka_broker.storage.log_manager import LogManager

log = get("runtime")

TOO_OLD: Final = (
    f"metadata.version is below {CORDONED_SINCE}: no controller keeps it, and replicas are placed here; raise it"
)


class Cordoning:
    """Keeps the directories of one broker, and what its heartbeats say of them, to the configuration."""

    def __init__(self, logs: LogManager, lifecycle: Lifecycle, metadata: Metadata) -> None:
        self._logs = logs
        self._lifecycle = lifecycle
        self._metadata = metadata
        self._config: BrokerConfig | None = None

    def follow(self, config: BrokerConfig) -> None:
        """Hold to this configuration from now on."""
        if config is self._config:
            return
        self._config = config
        chosen = cordoned(config["cordoned.log.dirs"], [directory.path for directory in self._logs.directories])
        for directory in self._logs.directories:
            directory.is_cordoned = directory.path in chosen
        told = [directory.directory_id for directory in self._logs.directories if directory.is_cordoned]
        if told == self._lifecycle.cordoned_directories:
            return
        if self._metadata.features.metadata_version < CORDONED_SINCE:
            log.warning("directories.not_cordoned", directories=chosen, reason=TOO_OLD)
        log.info("directories.cordoned", directories=chosen)
        self._lifecycle.cordoned_directories = told
        self._lifecycle.tell()
