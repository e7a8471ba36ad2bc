"""Which fault applies to a request: a rule of a test's plan, or none.

A rule counts the requests that it concerns (API, client id, and for an error whether the request has a place for it).
It plays for the `nth` of them and `times` requests from there on. Where several rules would play for one request, the
rule that was added first does; all of them count it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Action(Enum):
    """The kinds of faults."""

    ANSWER = "answer"
    DELAY = "delay"
    DROP = "drop"
    BLACK_HOLE = "black hole"


class Place(Enum):
    """The place of an error in an answer: as far up as its version can, or in each part that the request names."""

    TOP = "top"
    PARTS = "parts"


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault: for which requests, and what. `api` and `client_id` None mean any; `times` None means all from the nth
    on.
    """

    action: Action
    api: str | None = None
    client_id: str | None = None
    nth: int = 1
    times: int | None = 1
    error: str = ""
    where: Place = Place.TOP
    delay_ms: float = 0.0
    reaches_broker: bool = True
    """Of a drop: whether the broker does the work before the connection closes."""

    def __str__(self) -> str:
        return f"{self._what} for {self.api or 'any request'}{self._of_whom}{self._when}"

    @property
    def _what(self) -> str:
        match self.action:
            case Action.ANSWER:
                return f"answer {self.error}"
            case Action.DELAY:
                return f"delay of {self.delay_ms:g} ms"
            case Action.DROP:
                return "drop after the work" if self.reaches_broker else "drop before the work"
            case Action.BLACK_HOLE:
                return "black hole"

    @property
    def _of_whom(self) -> str:
        return "" if self.client_id is None else f" of client {self.client_id}"

    @property
    def _when(self) -> str:
        if self.times is None:
            return f", from number {self.nth} on"
        return f", number {self.nth}" if self.times == 1 else f", numbers {self.nth} to {self.nth + self.times - 1}"


@dataclass(frozen=True, slots=True)
class Request:
    """The facts that a rule looks at. `places` says where the answer to this request has room for an error, `defined`
    where answers of this version do at all.
    """

    api: str
    version: int
    client_id: str
    places: frozenset[Place] = frozenset()
    defined: frozenset[Place] = frozenset()
    has_answer: bool = True
    """A Produce with acks=0 has none."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The rule that plays, if any, where its error is put, and how many requests each rule has counted by now."""

    rule: Rule | None
    place: Place | None
    counts: Mapping[int, int] = field(default_factory=dict)


def decide(rules: Sequence[Rule], counts: Mapping[int, int], request: Request) -> Decision:
    """The fault for a request, given how many requests each rule (by its index) has counted before."""
    after = dict(counts)
    playing: Rule | None = None
    for index, rule in enumerate(rules):
        if not concerns(rule, request):
            continue
        after[index] = number = after.get(index, 0) + 1
        if playing is None and is_due(rule, number):
            playing = rule
    return Decision(playing, None if playing is None else place_of(playing, request), after)


def concerns(rule: Rule, request: Request) -> bool:
    """Whether a rule counts a request."""
    if rule.api is not None and rule.api != request.api:
        return False
    if rule.client_id is not None and rule.client_id != request.client_id:
        return False
    if rule.action is Action.BLACK_HOLE or (rule.action is Action.DROP and not rule.reaches_broker):
        return True
    return request.has_answer and (rule.action is not Action.ANSWER or place_of(rule, request) is not None)


def is_due(rule: Rule, number: int) -> bool:
    """Whether a rule plays for the request with this number, from 1."""
    return number >= rule.nth and (rule.times is None or number < rule.nth + rule.times)


def place_of(rule: Rule, request: Request) -> Place | None:
    """The place of the rule's error in the answer to a request: its own, or the other one where the version does not
    define it. None where the request has no room for it: it names no partition, for instance.
    """
    if rule.action is not Action.ANSWER:
        return None
    wanted = rule.where if rule.where in request.defined else next(iter(request.defined), None)
    return wanted if wanted in request.places else None


PART_WORDS = ("LEADER", "TOPIC", "PARTITION", "OFFSET", "REPLICA", "MESSAGE", "RECORD", "STORAGE", "TIMESTAMP")
"""Words in the names of errors that are of a topic or partition, and not of a group, a session or a whole request."""


def usual_place(error: str) -> Place:
    """The place in which clients look for an error: NOT_LEADER_OR_FOLLOWER in parts, NOT_COORDINATOR at the top."""
    return Place.PARTS if any(word in error for word in PART_WORDS) else Place.TOP
