"""The usual forms as one expression for Java: what Spark makes of its groups is what the forms of `lake.usual` say.

The expression means the same to Python but for one sign, so that most of it can be tested without Java.
"""

import json
import re

import pytest

from kavka_audit.lake.rows import row_of
from kavka_audit.lake.usual import FORMS, HEADER_FORMS
from kavka_audit.spark.forms import ABSENT, ENTITIES, FIELDS, REPLACEMENT, SEPARATOR, USUAL, positional
from tests.unit.analytics.test_usual import USUAL as RECORDS
from tests.unit.analytics.trail import Record

IN_PYTHON = re.compile(USUAL.replace(r"\z", r"\Z"))
BY_PYTHON = re.sub(r"\$(\d+)", r"\\g<\1>", REPLACEMENT)


def fields_of(headers: list[str], value: str) -> dict[str, str]:
    """The fields of a record by name, as Spark finds them."""
    found = IN_PYTHON.sub(BY_PYTHON, SEPARATOR.join([*headers, value])).split(SEPARATOR)
    return dict(zip(FIELDS, found, strict=True))


def texts(record: Record) -> tuple[list[str], str]:
    """The headers and the value of a record as text."""
    assert [name for name, _ in record.headers] == [*HEADER_FORMS]
    return [(value or b"").decode() for _, value in record.headers], (record.value or b"").decode()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.offset}")
def test_fields_are_the_groups_of_the_form(record: Record) -> None:
    headers, value = texts(record)
    found = fields_of(headers, value)
    groups = next(match.groupdict("") for form, _, _ in FORMS if (match := form.fullmatch(value)))
    assert {name: found[name] for name in groups} == groups
    row = row_of(record)
    assert [found[name] for name in ("source", "node", "sequence", "written_ms", "lost")] == [
        str(row[name]) for name in ("source", "node", "sequence", "written_ms", "lost")
    ]
    assert not any(text for name, text in found.items() if name not in groups and row.get(name) is None)


@pytest.mark.parametrize("odd", [SEPARATOR, ABSENT, "\n", "\ufffd", " "])
def test_what_is_not_usual_has_no_field(odd: str) -> None:
    headers, value = texts(RECORDS[0])
    for place in range(len(headers)):
        spoilt = [text + odd * (index == place) for index, text in enumerate(headers)]
        assert not any(fields_of(spoilt, value).values())
    for spoilt_value in (value + odd, value.replace("orders", f"ord{odd}ers" if odd != " " else 'ord"ers'), ""):
        assert not any(fields_of(headers, spoilt_value).values())


def test_groups_lose_their_names_and_keep_their_order() -> None:
    assert positional("(?P<a>x)(?:y|(?P<b_c>z))(?P<a>)") == ("(x)(?:y|(z))()", {"a": [1, 3], "b_c": [2]})
    expression, _ = positional(USUAL)
    assert re.compile(expression.replace(r"\z", r"\Z")).groups == max(map(int, re.findall(r"\$(\d+)", REPLACEMENT)))


@pytest.mark.parametrize(
    "entity",
    [
        {"user": None},
        {"ip": "10.0.0.1"},
        {"client-id-prefix": "etl-"},
        {"user": "alice", "client-id": None},
        {"user-prefix": "a", "client-id-prefix": "b"},
    ],
)
def test_an_entity_is_written_as_python_writes_it(entity: dict[str, str | None]) -> None:
    told = json.dumps(entity, separators=(",", ":"))
    found = [
        re.sub(form.replace(r"\z", r"\Z"), re.sub(r"\$(\d)", r"\\\1", replacement), told)
        for form, replacement in ENTITIES
        if re.match(form.replace(r"\z", r"\Z"), told)
    ]
    assert found == [json.dumps(entity, sort_keys=True)]
