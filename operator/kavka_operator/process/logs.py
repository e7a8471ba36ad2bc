"""The operator's log: a line of JSON an event, as its brokers write theirs."""

import json
import logging
import sys
from datetime import UTC, datetime

FIELDS = ("cluster", "words")
LEVELS = {"kafka": logging.CRITICAL, "kopf": logging.WARNING}
"""The least level of libraries. kafka-python tells of each connection several times, without the cluster's name; the
operator tells once which cluster does not answer, and why.
"""


class Lines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, str] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= {name: str(getattr(record, name)) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def to_stderr() -> None:
    """Write the log to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(capture=True)
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)
