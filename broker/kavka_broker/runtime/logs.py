"""How log lines look: key=value for people, one JSON object a line for collectors.

    11:42:07.031 INFO    replica    partition.truncated topic=orders partition=3 to_offset=17

Names and fields come from `kavka_broker.logs`. What a client has sent (ids, topics) ends up in fields, so a value can
neither break out of its line nor fill a disk: all but plain words is quoted, long values are cut, and of what can be
brought about without end some lines pass. A field whose name sounds like a secret is hidden, in case
somebody logs one by mistake.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.logs import LOGGER_NAME

VALUE_CHARACTERS_MAX = 1000
LINES_MAX = 20
PERIOD_SECONDS = 10.0
#: Events that a client or another node can bring about without end.
OF_OTHERS = ("authentication.failed", "connection.closed", "connection.not_made", "fetch.not_allowed")
HIDDEN = "[hidden]"
SECRET_NAME = re.compile(r"password|secret|credential|jaas|private_key|(^|_)token$", re.IGNORECASE)
PLAIN_WORD = re.compile(r"[\w.:/@%+*<>,\[\]()-]+")


def configure(config: BrokerConfig) -> None:
    """Set up the logs of this process, as `kavka.log.format` and `kavka.log.level` say."""
    install(sys.stderr, config["kavka.log.format"], config["kavka.log.level"])


def install(stream: TextIO, style: str, level: str) -> None:
    """Install one handler for everything; libraries log from warnings on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if style == "json" else KeyValues())
    handler.addFilter(Flood())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER_NAME).setLevel(level.upper())


class Flood(logging.Filter):
    """Keeps back events that others bring about as often as they like: of each, `LINES_MAX` lines pass in a period. The
    first line of a later one says how many were withheld.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}  # by event: when its period began, and its lines since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line passes."""
        if record.msg not in OF_OTHERS:
            return True
        now = self._clock()
        began, count = self._counts.get(record.msg, (now, 0))
        if now - began >= PERIOD_SECONDS:
            if count > LINES_MAX:
                record.fields = {**getattr(record, "fields", {}), "withheld": count - LINES_MAX}
            began, count = now, 0
        self._counts[record.msg] = began, count + 1
        return count < LINES_MAX


class KeyValues(logging.Formatter):
    """A line for people; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        time = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03}"
        fields = "".join(f" {name}={text_of(value)}" for name, value in fields_of(record).items())
        line = f"{time} {record.levelname:<7} {area_of(record):<10} {event_of(record)}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """A line for a collector. The four names that every line has cannot be taken by a field."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time_ms": int(record.created * 1000),
            "level": record.levelname.lower(),
            "area": area_of(record),
            "event": event_of(record),
        }
        for name, value in fields_of(record).items():
            line.setdefault(name, value if isinstance(value, bool | int | float) else cut(str(value)))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, "fields", {})
    return {name: HIDDEN if SECRET_NAME.search(name) else value for name, value in fields.items()}


def area_of(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{LOGGER_NAME}.")


def event_of(record: logging.LogRecord) -> str:
    """Return the event's name; a library's message is quoted, since it may be any text."""
    message = record.getMessage()
    return message if hasattr(record, "fields") else text_of(message)


def text_of(value: object) -> str:
    text = cut(str(value))
    return text if PLAIN_WORD.fullmatch(text) else json.dumps(text, ensure_ascii=not text.isprintable())


def cut(text: str) -> str:
    if len(text) <= VALUE_CHARACTERS_MAX:
        return text
    return f"{text[:VALUE_CHARACTERS_MAX]}... ({len(text)} characters)"
