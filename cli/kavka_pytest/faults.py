"""The fault plan of a test: `kafka.faults`.

A test adds faults, the proxy in front of the brokers asks for each request which of them plays (`fault_plan`), and at
the end of the test the plugin takes all away and fails the test where one has never played.
"""

import difflib
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import index
from kavka_pytest.fault_plan import Action, Decision, Place, Request, Rule, decide, usual_place

API_KEYS: Final = {name.removesuffix("Request"): key for key, name in index.REQUESTS.items()}
PLACES: Final = {"top": Place.TOP, "parts": Place.PARTS}


@dataclass(frozen=True, slots=True)
class Played:
    """A fault that was played, and for which request."""

    fault: str
    api: str
    version: int
    client_id: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.api} v{self.version} of client {self.client_id or '(without an id)'}"


class Faults:
    """The faults of a test. Each method adds one; they hold until the test ends, or until `clear`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._counts: dict[int, int] = {}
        self._played: list[Played] = []
        self._has_played: set[int] = set()
        self._cleared: list[Callable[[], object]] = []

    @property
    def played(self) -> list[Played]:
        """The faults that have been played since the test began, in order."""
        with self._lock:
            return list(self._played)

    @property
    def unplayed(self) -> list[str]:
        """The faults that have not been played, with the number of requests that they have counted."""
        with self._lock:
            return [
                f"{rule}: {_came(self._counts.get(number, 0))}"
                for number, rule in enumerate(self._rules)
                if number not in self._has_played
            ]

    def answer(
        self,
        api: str,
        error: str,
        *,
        nth: int = 1,
        times: int | None = 1,
        client_id: str | None = None,
        where: str = "",
    ) -> None:
        """Answer the nth request, and `times` from there on (None: all), with an error; the broker does not see them.
        `where` is "top" or "parts" (each partition, topic or group), for an error that clients look for elsewhere.
        Raises ValueError for names that Kafka does not have.
        """
        _check_api(api)
        names = [code.name for code in ErrorCode if code is not ErrorCode.NONE]
        if error not in names:
            raise ValueError(f'error: "{error}" is not an error of Kafka{_near(error, names)}')
        if where and where not in PLACES:
            raise ValueError(f'where: "{where}" is no place; write "top" or "parts"')
        place = PLACES[where] if where else usual_place(error)
        self._add(Rule(Action.ANSWER, api, client_id, nth, times, error=error, where=place))

    def delay(
        self, api: str, ms: float, *, nth: int = 1, times: int | None = None, client_id: str | None = None
    ) -> None:
        """Hold the answers back for so many milliseconds. Answers behind them on their connection wait as well.
        Raises ValueError.
        """
        _check_api(api)
        if not ms > 0:
            raise ValueError(f"ms: {ms} is no delay; write a number of milliseconds above 0")
        self._add(Rule(Action.DELAY, api, client_id, nth, times, delay_ms=float(ms)))

    def drop(
        self, api: str, *, after: str = "work", nth: int = 1, times: int | None = 1, client_id: str | None = None
    ) -> None:
        """Close the connection in place of an answer: `after="work"` of the broker, or `after="request"`, of which the
        broker then hears nothing. Raises ValueError.
        """
        _check_api(api)
        if after not in ("work", "request"):
            raise ValueError(f'after: "{after}" is neither; write "work" or "request"')
        self._add(Rule(Action.DROP, api, client_id, nth, times, reaches_broker=after == "work"))

    def black_hole(
        self, *, client_id: str | None = None, api: str | None = None, nth: int = 1, times: int | None = None
    ) -> None:
        """From a request on, leave its connection open and answer nothing on it, as a network that swallows everything.
        Raises ValueError.
        """
        if api is not None:
            _check_api(api)
        self._add(Rule(Action.BLACK_HOLE, api, client_id, nth, times))

    def clear(self) -> None:
        """Take all faults away: answers that were held back leave, connections in a black hole are closed."""
        with self._lock:
            self._rules, self._counts, self._played, self._has_played = [], {}, [], set()
        for told in self._cleared:
            told()

    # --- for the proxy ------------------------------------------------------------------------------------------

    def when_cleared(self, told: Callable[[], object]) -> None:
        """Have a function called by each `clear`."""
        self._cleared.append(told)

    @property
    def is_empty(self) -> bool:
        """Whether there is no fault at all."""
        return not self._rules

    def may_answer(self, api: str) -> bool:
        """Whether a fault answers requests of this API."""
        with self._lock:
            return any(rule.action is Action.ANSWER and rule.api == api for rule in self._rules)

    def decide(self, request: Request) -> Decision:
        """The fault for a request, which counts from now on."""
        with self._lock:
            decision = decide(self._rules, self._counts, request)
            self._counts = dict(decision.counts)
            if decision.rule is not None:
                number = next(place for place, rule in enumerate(self._rules) if rule is decision.rule)
                self._has_played.add(number)
                self._played.append(Played(str(decision.rule), request.api, request.version, request.client_id))
            return decision

    def _add(self, rule: Rule) -> None:
        if rule.nth < 1:
            raise ValueError(f"nth: {rule.nth} is no place in a row; the first request is 1")
        if rule.times is not None and rule.times < 1:
            raise ValueError(f"times: {rule.times} is never; write a number from 1, or None for all")
        with self._lock:
            self._rules.append(rule)


def _came(count: int) -> str:
    return "no such request came" if count == 0 else f"{count} such request{'s' * (count > 1)} came"


def _check_api(api: str) -> None:
    if api not in API_KEYS:
        raise ValueError(f'api: "{api}" is not an API of Kafka{_near(api, API_KEYS)}')


def _near(word: str, names: Iterable[str]) -> str:
    """A hint at the name that was meant."""
    plain = {re.sub("[^a-z0-9]", "", name.lower()): name for name in names}
    found = difflib.get_close_matches(re.sub("[^a-z0-9]", "", word.lower()), plain, 1)
    return f"; did you mean {plain[found[0]]}?" if found else "; write its name as Kafka's documentation does"
