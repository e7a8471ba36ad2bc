"""The cordon of a broker (KIP-1066)."""

from kavka_broker.core.config.cordoned import EVERY, KEY
from kavka_operator.domain.plan import CordonNode
from kavka_operator.kafka.broker_settings import Send, alter


def cordon(send: Send, action: CordonNode) -> None:
    """Cordon a broker, or take its cordon away. Raises KafkaError."""
    alter(send, action.node, {KEY: EVERY if action.is_on else None})
