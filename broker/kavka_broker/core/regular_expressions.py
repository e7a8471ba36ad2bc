"""Regular expressions that match a whole text in linear time, by RE2 (the package `google-re2`).

An expression is matched against names that clients choose, while everybody else waits. The engine of Python's `re`
tries one way after the other, so that `(a+)+b` may take years; RE2 keeps the set of all states that a text may have
led to. What such a machine cannot match (back references, looking around) is refused.

Kafka reads some of these expressions with java.util.regex. RE2 reads the same syntax, except classes within classes
(`[a[b]]`, `[a&&b]`), which are refused rather than read in another way. `.` does not match `\\n`; in Java it matches no
other end of a line either. Others Kafka reads with RE2/J, which reads what RE2 does.
"""

from dataclasses import dataclass, field
from typing import Any, Final

MEMORY_BYTES_MAX: Final = 256 * 1024
"""What one compiled expression may take, with the states that it keeps while it matches."""
PATTERN_CHARACTERS_MAX: Final = 1_000
PROGRAM_SIZE_MAX: Final = 2_000
"""Instructions of a compiled expression. Where RE2 has to take its slow way, a match takes time in proportion to them:
0.5 ms with 2,200, 3.2 ms with 9,000. `[a-z0-9._-]{1,249}` has 1,250.
"""
TEXT_CHARACTERS_MAX: Final = 255
"""A longer text matches nothing: no client has reason for such a name."""
MATCH_MICROSECONDS: Final = 400
"""What it takes at most to match a text of that length; most expressions take 3 to 10."""


class PatternError(ValueError):
    """An expression that cannot be read. The message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled expression. Two are equal where their texts are."""

    text: str
    _compiled: Any = field(compare=False, repr=False)

    @classmethod
    def compile(cls, text: str, *, is_of_java: bool = True) -> "Pattern":
        """Compile an expression, which Kafka reads with java.util.regex or, if not `is_of_java`, with RE2/J. Raises
        PatternError, also where it takes too much memory.
        """
        import re2  # few brokers are ever given an expression

        if len(text) > PATTERN_CHARACTERS_MAX:
            raise PatternError(f"has {len(text):,} characters; {PATTERN_CHARACTERS_MAX:,} are read at most")
        if is_of_java and has_class_within_class(text):
            raise PatternError("has a class within a class, which is not served: write one class")
        options = re2.Options()
        options.max_mem = MEMORY_BYTES_MAX
        options.log_errors = False
        options.never_capture = True  # what groups capture nobody asks for, and RE2 is up to 400 times slower for it
        try:
            compiled = re2.compile(text, options)
            if compiled.programsize > PROGRAM_SIZE_MAX:
                raise PatternError("repeats too much: write less of {n,m}, ? and *")
            return cls(text, compiled)
        except re2.error as error:
            words = error.args[0]
            said = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
            raise PatternError(f"cannot be read: {said}") from None
        except UnicodeEncodeError:
            raise PatternError("has a half of a surrogate pair") from None

    def matches(self, text: str, characters_max: int = TEXT_CHARACTERS_MAX) -> bool:
        """Whether the expression matches the whole text; one that is longer than `characters_max` it does not."""
        if len(text) > characters_max:
            return False
        try:
            return self._compiled.fullmatch(text) is not None
        except UnicodeEncodeError:
            return False  # half of a surrogate pair is no character that an expression could name


def has_class_within_class(text: str) -> bool:
    """Whether Java would read a union or an intersection of classes, for which RE2 has no syntax."""
    opened: int | None = None  # where the class began that we are in
    at = 0
    while at < len(text):
        mark = text[at]
        if mark == "\\":
            at += 1  # the next is no mark
        elif opened is None:
            opened = at if mark == "[" else None
        elif mark == "[" or text.startswith("&&", at):
            return True
        elif mark == "]" and text[opened + 1 : at] not in {"", "^"}:
            opened = None
        at += 1
    return False
