"""What holds for a broker right now: its file, and over it what was altered for all brokers and for this one."""

from collections.abc import Mapping

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.topic import LogConfig, with_overrides
from kavka_broker.core.metadata.image.configs import Configs


class EffectiveConfig:
    """Effective configs that follow the image; laid together again only when one was altered."""

    def __init__(self, config: BrokerConfig, configs: Configs) -> None:
        self._config = config
        self._configs = configs
        self._altered: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self._effective = config

    @property
    def broker(self) -> BrokerConfig:
        altered = (self._configs.all_brokers(), self._configs.broker(self._config.node_id))
        if altered != self._altered:
            self._altered = (dict(altered[0]), dict(altered[1]))
            self._effective = self._config.altered(*self._altered)
        return self._effective

    def topic(self, name: str) -> LogConfig:
        """The config of a topic's logs."""
        return with_overrides(self.broker.log_config, self._configs.topic(name))
