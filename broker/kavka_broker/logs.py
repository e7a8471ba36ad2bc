"""Events with fields, on the standard library's logging.

    log = get("replica")
    log.info("partition.truncated", topic="orders", partition=3, to_offset=17)

The name of an event is fixed text, so that it can be searched and counted: a noun, and a past participle that tells
what became of it, with `not_` before it where something did not come to pass. What varies stands in the fields. How
lines look (key=value on a terminal, JSON for a collector) is decided once, in `runtime`. Fields never hold secrets
or the contents of records.
"""

import logging

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


def get(area: str) -> EventLog:
    """Return the log of one area of the broker: `net`, `replica`, `controller` ..."""
    return EventLog(logging.getLogger(f"{LOGGER_NAME}.{area}"))
