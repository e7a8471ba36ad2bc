"""Errors of the Kafka client, turned into words in one place."""

import contextlib
from collections.abc import Generator

import kafka.errors

from kavka_operator.kafka.admin import AdminError, ThrottledError


def raise_for(code: int, message: str | None) -> None:
    """Raise the library's error for an error code."""
    if code:
        error = kafka.errors.for_code(code)
        raise error(message) if message else error()


@contextlib.contextmanager
def in_words(doing: str) -> Generator[None]:
    """Word errors of the client by what was being done. Raises AdminError."""
    try:
        yield
    except kafka.errors.ThrottlingQuotaExceededError as error:
        raise ThrottledError(f"could not {doing}: {error}") from error
    except (kafka.errors.KafkaError, OSError) as error:
        words = str(error) or type(error).__name__
        retriable = bool(getattr(error, "retriable", True))
        raise AdminError(f"could not {doing}: {words}", retriable=retriable) from error
