"""Whether librdkafka is let in by a broker, and what it was told if not, however long either takes.

A request that times out says neither: a slow broker looks like one that refuses. So it is asked again until it has
answered, or the client has been told of an error that decides.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.waiting import until_outside

LOOK_SECONDS: Final = 2.0


def is_of_login(error: KafkaError) -> bool:
    return error.code() == KafkaError._AUTHENTICATION


def is_of_connection(error: KafkaError) -> bool:
    """Whether every connection was ended: no more is told of a broker that does not take a certificate."""
    return error.code() == KafkaError._ALL_BROKERS_DOWN


def refusals(settings: Mapping[str, Any], decides: Callable[[KafkaError], bool] = is_of_login) -> list[str]:
    """The errors that turned a client away; none where it was let in."""
    told, answered = list[KafkaError](), list[object]()
    watched: dict[str, Any] = {**settings, "error_cb": told.append}
    admin = AdminClient(watched)

    def is_decided() -> bool:
        with suppress(KafkaException):
            answered.append(admin.list_topics(timeout=LOOK_SECONDS))
        admin.poll(0)
        return bool(answered) or any(map(decides, told))

    until_outside(is_decided)
    return [] if answered else [error.str() for error in told if decides(error)]
