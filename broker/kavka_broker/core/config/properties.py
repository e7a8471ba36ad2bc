"""Java properties files: the form of Kafka's `server.properties` and of `meta.properties`.

A line is a key, a separator (`=`, `:` or white space) and a value; `#` or `!` begins a comment; a line that ends with
an odd number of backslashes goes on in the next; backslash escapes `\\t \\n \\r \\f \\uXXXX`, and any other character
stands for itself. The last of two equal keys wins.
"""

from collections.abc import Iterator, Mapping

from kavka_broker.core.config.definition import ConfigError

BLANK = " \t\f"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Parse a file's text into keys and values. Raises ConfigError for a broken \\u escape."""
    return dict(_split(line) for line in _logical_lines(text))


def format_properties(properties: Mapping[str, str]) -> str:
    """Format a file's text that `parse_properties` reads back."""
    return "".join(f"{_escape(key, key=True)}={_escape(value)}\n" for key, value in properties.items())


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for natural_line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural_line.lstrip(BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in BLANK + "=:":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANK)
    key = _unescape(line[:end], line[:end])
    return key, _unescape(rest, key)


def _unescape(text: str, key: str) -> str:
    """Raises ConfigError, which names the key and prints nothing of a value: that may be a password."""
    if "\\" not in text:
        return text
    pieces: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                pieces.append(_code_point(text, position, key))
                position += 4
                continue
            character = ESCAPES.get(character, character)
        pieces.append(character)
    # Characters beyond the basic plane are written as two escapes, a surrogate pair.
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _code_point(text: str, position: int, key: str) -> str:
    digits = text[position : position + 4]
    if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise ConfigError(
            key[:40], "a \\u begins no escape; write \\u and four hexadecimal digits, or \\\\u for itself"
        )
    return chr(int(digits, 16))


def _escape(text: str, *, key: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    if key:
        for character in "=: #!":
            escaped = escaped.replace(character, "\\" + character)
    elif escaped.startswith(" "):
        escaped = "\\" + escaped
    return escaped
