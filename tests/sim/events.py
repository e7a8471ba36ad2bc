"""What the simulated processes log: the story of a run, and a part of its digest.

An event that carries a traceback is a defect: a broker logs one only for what it did not expect.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kavka_broker.logs import LOGGER_NAME
from kavka_broker.membership.outdated_image import OUTDATED
from tests.sim.loop import PROCESS, SimLoop

STORY_LINES_MAX = 20_000
CHECKOUT: Final = str(Path(__file__).parents[2])
"""Left out of what counts for the digest, which holds in any checkout: a broker logs where its token keys are."""
Listener = Callable[[str, Mapping[str, Any]], None]

#: What no broker may ever have to say here.
NEVER = {"fetch.damaged": "a leader served a batch with a wrong CRC"}

LOGIN_ENDED: Final = "its login does not hold any more"
#: For which else a broker closes a connection here: nobody sends what cannot be. (Whom for a bound, `crowds` judges.)
CLOSED_FOR: Final = (
    "produce with acks=0",
    "idle for",
    "more than max.connections",
    "its address is above",
    LOGIN_ENDED,  # also for a delayed request of a node
)

MISSED_LOGIN: Final = "it has not logged in for"
#: Strangers' connections alone; the second also those whose other end is gone, as by a loss of power.
#: A producer of transactions has given the connection up: it has no other end, where nobody waits for an answer.
GIVEN_UP: Final = "it was given up by the producer"
REFUSED_LOGIN: Final = ("its authentication has failed", MISSED_LOGIN)


class Events(logging.Handler):
    """Takes the place of the broker's own log handlers while a simulation runs."""

    def __init__(self, loop: SimLoop) -> None:
        super().__init__(logging.DEBUG)
        self.loop = loop
        self.counts: Counter[str] = Counter()
        self.strangers: set[str] = set()  # addresses of those who log in with passwords that are none
        self.lines: deque[str] = deque(maxlen=STORY_LINES_MAX)
        self.is_outdated: Callable[[str], bool] = lambda process: False
        # Told of every defect.
        self.failed: Callable[[str], None] = lambda why: None
        # By event: who is told of it, with the process and what it says.
        self.listeners: dict[str, list[Listener]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.INFO and record.getMessage() not in self.listeners:
            return
        fields = " ".join(f"{key}={value}" for key, value in getattr(record, "fields", {}).items())
        who = str(PROCESS.get() or "-")
        self.say(who, f"{record.getMessage()} {fields}", record.levelname)
        self.counts[record.getMessage()] += 1
        if record.getMessage() in NEVER:
            self.failed(f"{NEVER[record.getMessage()]}: {who}: {fields}")
        for listener in [*self.listeners.get(record.getMessage(), ())]:
            listener(who, getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[1] is not None:
            text = logging.Formatter().formatException(record.exc_info)
            self.failed(f"{who}: {record.getMessage()} {fields}\n{text}")

    def say(self, who: str, what: str, level: str = "") -> None:
        """Add a line to the story."""
        self.loop.trace(who, what.replace(CHECKOUT, ""))
        mark = {"WARNING": "!", "ERROR": "!!"}.get(level, "")
        self.lines.append(f"{self.loop.time():10.4f} {who:<12} {mark:<2} {what}")

    def closed(self, process: str, fields: Mapping[str, Any]) -> None:
        """NobodyIsTurnedAway: a request that is as it should be may fail, and gets an answer that says so."""
        client, reason = fields["client"], str(fields["reason"])
        is_stranger = client in self.strangers and reason.startswith(REFUSED_LOGIN)
        is_left = reason.startswith(MISSED_LOGIN) and self.loop.network.has_lost_peer(process, client)
        is_given_up = reason.startswith(GIVEN_UP) and self.loop.network.has_lost_peer(process, client)
        is_sent_away = reason == OUTDATED and self.is_outdated(process)
        if not (is_stranger or is_left or is_given_up or is_sent_away or reason.startswith(CLOSED_FOR)):
            self.failed(f"NobodyIsTurnedAway: {process} has closed a connection: {reason}")

    @contextmanager
    def taking(self) -> Iterator[None]:
        """Take what is logged until the end of the block."""
        logger = logging.getLogger(LOGGER_NAME)
        before = logger.handlers[:], logger.level, logger.propagate
        logger.handlers, logger.propagate = [self], False
        logger.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            logger.handlers, logger.propagate = before[0], before[2]
            logger.setLevel(before[1])
