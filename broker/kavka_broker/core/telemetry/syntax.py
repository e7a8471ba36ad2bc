"""The syntax of patterns: their text becomes a tree. `pattern` makes a machine of the tree."""

from dataclasses import dataclass
from typing import Final

Ranges = tuple[tuple[int, int], ...]
"""Characters by their codes, first and last included."""

DEPTH_MAX: Final = 20
TIMES_MAX: Final = 200
HIGHEST: Final = 0x10FFFF
LINE_ENDS: Final[Ranges] = tuple((ord(mark), ord(mark)) for mark in "\n\r\u0085\u2028\u2029")
CLASSES: Final[dict[str, Ranges]] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 13), (32, 32)),
}
CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PatternError(ValueError):
    """A pattern that cannot be read. The message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Take:
    """One character."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Edge:
    """The start of the text (`^`), or its end (`$`)."""

    edge: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times; None is without end."""

    item: "Node"
    low: int
    high: int | None


Node = Take | Edge | Sequence | Either | Repeat


def complement(ranges: Ranges) -> Ranges:
    """Return every other character."""
    gaps, start = list[tuple[int, int]](), 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return (*gaps, (start, HIGHEST)) if start <= HIGHEST else tuple(gaps)


class Parser:
    """Reads one pattern, a character at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        """Return the tree of the whole pattern. Raises PatternError."""
        tree = self._either()
        if self._next():
            raise PatternError('has a ")" too many')
        return tree

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._next()
        if not character:
            raise PatternError("ends in the middle")
        self._at += 1
        return character

    def _skip(self, wanted: str) -> bool:
        found = self._text.startswith(wanted, self._at)
        self._at += len(wanted) if found else 0
        return found

    def _either(self) -> Node:
        ways = [self._sequence()]
        while self._skip("|"):
            ways.append(self._sequence())
        return ways[0] if len(ways) == 1 else Either(tuple(ways))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._next() not in ("", "|", ")"):
            items.append(self._repeats(self._atom()))
        return Sequence(tuple(items))

    def _atom(self) -> Node:
        match self._take():
            case "(":
                return self._group()
            case "[":
                return Take(self._class())
            case ".":
                return Take(complement(LINE_ENDS))
            case "^" | "$" as edge:
                return Edge(edge)
            case "\\":
                return Take(self._escape())
            case "*" | "+" | "?" | "{" as sign:
                raise PatternError(f'has nothing to repeat before "{sign}"')
            case character:
                return Take(((ord(character), ord(character)),))

    def _group(self) -> Node:
        if self._next() == "?" and not self._skip("?:"):
            raise PatternError('has a group that begins with "(?"; only "(" and "(?:" are taken')
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise PatternError(f"has groups deeper than {DEPTH_MAX}")
        tree = self._either()
        if not self._skip(")"):
            raise PatternError('lacks a ")"')
        self._depth -= 1
        return tree

    def _escape(self) -> Ranges:
        """Return the characters of an escape, whose backslash is taken."""
        character = self._take()
        if character.lower() in CLASSES:
            ranges = CLASSES[character.lower()]
            return complement(ranges) if character.isupper() else ranges
        if character.isascii() and character.isalnum() and character not in CONTROLS:
            raise PatternError(f'has "\\{character}", which is not taken')
        code = ord(CONTROLS.get(character, character))
        return ((code, code),)

    def _class(self) -> Ranges:
        is_negated = self._skip("^")
        found: list[tuple[int, int]] = []
        while not (found and self._skip("]")):
            if self._text.startswith(("[", "&&", "]"), self._at):
                raise PatternError("has an empty class, or one within another")
            low = self._member()
            if len(low) == 1 and self._next() == "-" and self._text[self._at + 1 : self._at + 2] not in ("", "]"):
                self._skip("-")
                low = (self._range(low, self._member()),)
            found += low
        return complement(tuple(found)) if is_negated else tuple(found)

    def _member(self) -> Ranges:
        character = self._take()
        return self._escape() if character == "\\" else ((ord(character), ord(character)),)

    def _range(self, low: Ranges, high: Ranges) -> tuple[int, int]:
        if len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1] or low[0][0] > high[0][0]:
            raise PatternError("has a range that runs backwards")
        return low[0][0], high[0][0]

    def _repeats(self, item: Node) -> Node:
        """Return the item with the sign behind it. A lazy repeat matches the same texts; a possessive one would not."""
        match self._next():
            case "*":
                low, high = 0, None
            case "+":
                low, high = 1, None
            case "?":
                low, high = 0, 1
            case "{":
                return self._counted(item)
            case _:
                return item
        self._take()
        return self._more(Repeat(item, low, high))

    def _counted(self, item: Node) -> Node:
        self._take()
        inside, brace, _ = self._text[self._at :].partition("}")
        low, comma, high = inside.partition(",")
        if not brace or not is_count(low) or not (high == "" or is_count(high)):
            raise PatternError("has a repeat that is not {n}, {n,} or {n,m}")
        self._at += len(inside) + 1
        most = (int(high) if high else None) if comma else int(low)
        if most is not None and most < int(low):
            raise PatternError("has a repeat that runs backwards")
        return self._more(Repeat(item, int(low), most))

    def _more(self, repeat: Repeat) -> Node:
        if self._next() == "+":
            raise PatternError("has a possessive repeat, which is not taken")
        self._skip("?")
        if self._next() and self._next() in "*+?{":
            raise PatternError("has a repeat of a repeat; write a group around it")
        return repeat


def is_count(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) <= len(str(TIMES_MAX)) and int(digits) <= TIMES_MAX
