"""What is wrong with a resource, in words that name what to write instead."""

import difflib
import re

NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
HOST_NAME_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
DOTTED_NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
NAMES = {
    NAME_PATTERN: 'lower-case letters, digits and "-"',
    HOST_NAME_PATTERN: 'lower-case letters, digits and "-", a letter first',
    DOTTED_NAME_PATTERN: 'lower-case letters, digits, "-" and "."',
}
"""The patterns of names, in words."""
NUMBERS = ("a whole number", "a number")
SHOWN_LENGTH_MAX = 60
SHOWN_BITS_MAX = 1024  # Python makes no text of whole numbers of thousands of digits
LISTED_MAX = 12


def shown(value: object) -> str:
    """The value for a message: short, text in quotes, halves of characters as they are escaped."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            short = value if len(value) <= SHOWN_LENGTH_MAX else value[:SHOWN_LENGTH_MAX] + "..."
            return f'"{short}"'.encode(errors="backslashreplace").decode()
        case dict():
            return "a map"
        case list() | tuple():
            return "a list"
        case None:
            return "nothing"
        case int() if value.bit_length() > SHOWN_BITS_MAX:
            return "a number of very many digits"
        case _:
            return str(value)[:SHOWN_LENGTH_MAX]


def nearest(wrong: str, known: list[str]) -> str | None:
    """The known name that `wrong` most likely stands for."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(wrong.lower().replace("_", "").replace("-", ""), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def unknown_field(wrong: str, known: list[str]) -> str:
    """Words for an unknown field, with the fields that there are."""
    if meant := nearest(wrong, known):
        return f'there is no such field; did you mean "{meant}"?'
    return f"there is no such field; take it out, or use one of {', '.join(known[:LISTED_MAX])}"


def not_fields(given: object, known: list[str]) -> str:
    """Words for a value where a map of the fields `known` should be."""
    if isinstance(given, str) and known[:1] == ["name"]:
        return f"{shown(given)} is not a map of fields; write {{name: {shown(given[:SHOWN_LENGTH_MAX])[1:-1]}}}"
    return f"{shown(given)} is not a map of fields; write a map of fields"


def not_one_of(given: object, choices: list[str]) -> str:
    """Words for a value that is none of the few there are."""
    meant = nearest(str(given), choices)
    fix = f'did you mean "{meant}"?' if meant else f"write {' or '.join(choices)}"
    return f"{shown(given)} is not one of {', '.join(choices)}; {fix}"


def not_a_name(given: str, pattern: str) -> str:
    """Words for text that does not match one of NAMES, with a name that does."""
    parts = given.lower().split(".") if pattern == DOTTED_NAME_PATTERN else [given.lower()]
    cleaned = (re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in parts)
    name = ".".join(part for part in cleaned if part) or "name"
    allowed = name if re.fullmatch(pattern, name) else f"a{name}"
    return f'{shown(given)} is not a name ({NAMES[pattern]}); write "{allowed}"'


def does_not_match(given: str, pattern: str) -> str:
    """Words for text of another form than that of a pattern."""
    return not_a_name(given, pattern) if pattern in NAMES else f"{shown(given)} does not match {pattern}"


def not_wanted(given: object, wanted: str) -> str:
    """Words for a value of another type. A number that somebody wrote as text or per cent is proposed as a number."""
    digits = given.strip().rstrip("%") if isinstance(given, str) and wanted in NUMBERS else ""
    return f"{shown(given)} is not {wanted}; write {digits if digits.replace('.', '', 1).isdecimal() else wanted}"


def too_long(given: object, length_max: int) -> str:
    """Words for text, a list or a map that is too long."""
    return f"{shown(given)} is too long; at most {length_max} are allowed"


def too_short(given: object, length_min: int) -> str:
    """Words for text, a list or a map that is too short."""
    return f"{shown(given)} is too short; at least {length_min} must be given"


def not_whole(given: object) -> str:
    """Words for a number with a fraction where a whole one is wanted."""
    return f"{shown(given)} is not a whole number; write one without a fraction"


def out_of_range(given: object, side: str, limit: float) -> str:
    """Words for a number on the wrong side of a limit; `side` says which: from, above or up to."""
    spelled = str(limit) if type(limit) is int else f"{limit:.12g}"
    return f"{shown(given)} is out of range; write a number {side} {spelled}"
