"""Regular expressions that match a whole text in linear time.

A subscription is matched against names that clients choose, while everybody else waits. The engine of Python's `re`
tries one way after the other, so that a pattern like `(a+)+b` may take years. This one keeps the set of all states that
the text may have led to, so each character costs at most as much as the pattern has states.

What is read is the common part of Java's syntax, and means the same: characters, `.`, classes, groups, `|`, repeats,
`^` and `$`. What such a machine cannot match (back references, looking around) is refused, as RE2 refuses it.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Final

from kavka_broker.core.telemetry.syntax import Edge, Either, Node, Parser, PatternError, Ranges, Repeat, Sequence, Take

__all__ = ["Pattern", "PatternError"]

STATES_MAX: Final = 200
TEXT_CHARACTERS_MAX: Final = 255
"""A longer text matches nothing: no client has reason for such a name."""
ACCEPT: Final = -1


@dataclass(frozen=True, slots=True)
class Step:
    """Takes a character of `ranges` and goes to `to`."""

    ranges: Ranges
    to: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Goes to each of `to` without a character; with an edge, only there."""

    to: tuple[int, ...]
    edge: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. Two are equal where their texts are."""

    text: str
    _states: tuple[Step | Fork, ...] = field(compare=False, repr=False)
    _start: int = field(compare=False, repr=False)

    @classmethod
    def compile(cls, text: str) -> "Pattern":
        """Compile the text of a pattern. Raises PatternError, also where it has too many states."""
        compiler = Compiler()
        start = compiler.emit(Parser(text).whole(), ACCEPT)
        return cls(text, tuple(compiler.states), start)

    def matches(self, text: str) -> Generator[int, None, bool]:
        """Whether the pattern matches the whole text; yields what each character costs, in states."""
        if len(text) > TEXT_CHARACTERS_MAX:
            return False
        here = self._reached((self._start,), is_start=True, is_end=not text)
        for position, character in enumerate(text, 1):
            taken = [step.to for step in here.values() if step is not None and holds(step.ranges, character)]
            here = self._reached(taken, is_start=False, is_end=position == len(text))
            yield len(self._states)
        return ACCEPT in here

    def _reached(self, states: Iterable[int], *, is_start: bool, is_end: bool) -> dict[int, Step | None]:
        """Return the steps that can be taken next, and ACCEPT where the pattern may end here."""
        found: dict[int, Step | None] = {}
        passed: dict[int, None] = {}
        waiting = list(states)
        while waiting:
            number = waiting.pop()
            if number in passed:
                continue
            passed[number] = None
            state = None if number == ACCEPT else self._states[number]
            if not isinstance(state, Fork):
                found[number] = state
            elif state.edge == "" or (is_start if state.edge == "^" else is_end):
                waiting += state.to
        return found


def holds(ranges: Ranges, character: str) -> bool:
    code = ord(character)
    return any(low <= code <= high for low, high in ranges)


class Compiler:
    """Makes states of nodes, the last first: each knows where to go on."""

    def __init__(self) -> None:
        self.states: list[Step | Fork] = []
        self._left = 20 * STATES_MAX  # repeats of nothing make no states, and take time

    def emit(self, node: Node, to: int) -> int:
        """Return the state in which `node` begins and from which it goes on to `to`. Raises PatternError."""
        self._left -= 1
        if self._left < 0:
            raise PatternError("repeats too much")
        match node:
            case Take():
                return self._add(Step(node.ranges, to))
            case Edge():
                return self._add(Fork((to,), node.edge))
            case Sequence():
                for item in reversed(node.items):
                    to = self.emit(item, to)
                return to
            case Either():
                return self._add(Fork(tuple(self.emit(item, to) for item in node.items)))
            case Repeat():
                return self._repeat(node, to)

    def _repeat(self, node: Repeat, to: int) -> int:
        assert node.high is None or 0 <= node.low <= node.high, f"a repeat from {node.low} to {node.high}"
        if node.high is None:
            loop = self._add(Fork((to,)))
            self.states[loop] = Fork((self.emit(node.item, loop), to))
            to = loop
        else:
            end = to
            for _ in range(node.high - node.low):
                to = self._add(Fork((self.emit(node.item, to), end)))
        for _ in range(node.low):
            to = self.emit(node.item, to)
        return to

    def _add(self, state: Step | Fork) -> int:
        if len(self.states) == STATES_MAX:
            raise PatternError(f"needs more than {STATES_MAX} states")
        self.states.append(state)
        return len(self.states) - 1
