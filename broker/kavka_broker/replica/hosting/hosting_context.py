"""What the parts of this folder share: whose replicas they host, and what is decided and kept of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.interfaces import Clock
from kavka_broker.loop.timers import Timers
from kavka_broker.storage.log_manager import LogManager


def _raise(error: BaseException) -> NoReturn:
    raise error


@dataclass(frozen=True)
class HostingContext:
    """Replicas of a node, with its image of the metadata and its logs. `crash` is called with a broken invariant;
    without `timers` nothing is tried again.
    """

    node_id: int
    config: BrokerConfig
    metadata: Metadata
    logs: LogManager
    clock: Clock
    timers: Timers | None = None
    crash: Callable[[BaseException], None] = _raise

    @cached_property
    def effective(self) -> EffectiveConfig:
        """The configuration of topics and of this broker, as it is just now."""
        return EffectiveConfig(self.config, self.metadata.configs)
