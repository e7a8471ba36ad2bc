"""Events with fields, on the standard library's logging.

    log = get("replica")
    log.info("partition.truncated", topic="orders", partition=3, to_offset=17)

The name of an event is fixed text, so that it can be searched and counted: a noun, and a past participle that tells
what became of it, with `not_` before it where something did not come to pass. What varies stands in the fields. How
lines look (key=value on a terminal, JSON for a collector) is decided once, in `runtime`. Fields never hold secrets
or the contents of records.
"""

import logging
from typing import Final

LOGGER_NAME = "kavka"


class EventLog:
    """A logger of events. Below the enabled level a call costs one comparison."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: object) -> None:
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._log(logging.ERROR, event, fields)

    def exception(self, event: str, error: BaseException, **fields: object) -> None:
        """Log an error with its traceback."""
        self._log(logging.ERROR, event, fields, error)

    def _log(self, level: int, event: str, fields: dict[str, object], error: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"fields": fields}, exc_info=error)


#: Levels by Kafka's names, and the numbers that they have here.
LEVELS: Final = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}


def levels() -> dict[str, str]:
    """Return the level of every logger of this process, by Kafka's name for it; the first is above the others."""
    named = sorted(name for name in logging.root.manager.loggerDict if name.startswith(f"{LOGGER_NAME}."))
    return {name: _level_of(logging.getLogger(name).getEffectiveLevel()) for name in (LOGGER_NAME, *named)}


def _level_of(number: int) -> str:
    return min(LEVELS, key=lambda level: abs(LEVELS[level] - number))


def set_level(name: str, level: str | None) -> None:
    """Set the level of a logger, or with None have it follow the one above it."""
    logging.getLogger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def get(area: str) -> EventLog:
    """Return the log of one area of the broker: `net`, `replica`, `controller` ..."""
    return EventLog(logging.getLogger(f"{LOGGER_NAME}.{area}"))
