"""The usual forms of a record (`lake.usual`) as one regular expression for Java, and how its groups become fields.

The texts of the headers and the event are joined by a separator, which is in none of them. The expression matches any
text as a whole, so that replacing what it matches says both: the fields of a usual record, between separators, or as
many fields without a character. Java's groups have no underscore in their names, so they are known by their numbers.
"""

import re
from typing import Final

from kavka_audit.lake.usual import FORMS, HEADER_FORMS, LETTERS, pattern

SEPARATOR: Final = "\x01"
ABSENT: Final = "\x02"
"""What stands for a header without a value: no form has it."""


def positional(expression: str) -> tuple[str, dict[str, list[int]]]:
    """Return an expression with groups that have no name, and the numbers of those that had each name."""
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(re.findall(r"\(\?P<([a-z_]+)>", expression), 1):
        numbers.setdefault(name, []).append(number)
    return re.sub(r"\(\?P<[a-z_]+>", "(", expression), numbers


def _whole() -> str:
    """Return the expression, with the names of its groups; only one of those with the same name takes part."""
    headers = SEPARATOR.join(map(pattern, HEADER_FORMS.values()))
    return f"{headers}{SEPARATOR}(?:{'|'.join(form.pattern for form, _, _ in FORMS)})"


_EXPRESSION, _NUMBERS = positional(_whole())
USUAL: Final = rf"(?s)\A(?:{_EXPRESSION}|.*)\z"
FIELDS: Final = tuple(_NUMBERS)
REPLACEMENT: Final = SEPARATOR.join("".join(f"${number}" for number in _NUMBERS[name]) for name in FIELDS)

_NAME: Final = f'null|"{LETTERS}"'
ENTITIES: Final = (
    (rf'\A\{{"([a-z-]+)":({_NAME})\}}\z', '{"$1": $2}'),
    (rf'\A\{{"(user[a-z-]*)":({_NAME}),"(client-id[a-z-]*)":({_NAME})\}}\z', '{"$3": $4, "$1": $2}'),
)
"""The entity of a quota as brokers write it, and as Python's `json` writes it with its keys sorted."""
