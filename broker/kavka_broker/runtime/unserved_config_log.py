"""One line in the log for each config that somebody alters while the broker runs and that nothing here reads."""

from collections.abc import Sequence

from kavka_broker.core.config.unserved_configs import PROMISES, plain_name, topic_without_effect, without_effect
from kavka_broker.core.metadata.image.configs import Configs, ResourceType
from kavka_broker.logs import get
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord

log = get("runtime")


def tell_altered(configs: Configs, node_id: int) -> None:
    """Log the names of configs altered before this broker started. Another product's controller may have taken some."""
    for name in without_effect((*configs.all_brokers(), *configs.broker(node_id))):
        log.warning("config.unserved", key=name, promise=plain_name(name) in PROMISES)


def tell(records: Sequence[Message], node_id: int) -> None:
    """Log the names of configs that these records alter."""
    for record in records:
        if type(record) is not ConfigRecord or record.value is None:
            continue
        if record.resource_type == ResourceType.TOPIC and topic_without_effect((record.name,)):
            log.warning("config.unserved", topic=record.resource_name, key=record.name)
        elif _is_ours(record, node_id) and without_effect((record.name,)):
            log.warning("config.unserved", key=record.name, promise=plain_name(record.name) in PROMISES)


def _is_ours(record: ConfigRecord, node_id: int) -> bool:
    return record.resource_type == ResourceType.BROKER and record.resource_name in ("", str(node_id))
