"""Records as lines of JSON: what is printed can be read again, whatever bytes it has."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_cli.app import joined
from kavka_cli.record_lines import BadLineError, NewRecord, as_line, record_of

DATA = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)


def read(**fields: Any) -> SimpleNamespace:
    """A record as the client library has it."""
    return SimpleNamespace(
        **{"topic": "t", "partition": 2, "offset": 7, "timestamp": 1_500, "key": None, "value": None, "headers": []}
        | fields
    )


def test_a_record_is_one_line() -> None:
    line = as_line(read(key=b"k", value=b"\xff\n", headers=[("a", b"1"), ("b", None), ("a", b"2")]))
    assert json.loads(line) == {
        "topic": "t",
        "partition": 2,
        "offset": 7,
        "timestamp": "1970-01-01T00:00:01.500Z",
        "key": "k",
        "value": {"base64": "/wo="},
        "headers": {"a": ["1", "2"], "b": None},
    }
    assert "\n" not in line


@given(DATA, DATA, st.lists(st.tuples(st.sampled_from(["a", "b"]), DATA), max_size=4))
def test_what_is_printed_is_read_again(key: bytes | None, value: bytes | None, headers: list[Any]) -> None:
    again = record_of(as_line(read(key=key, value=value, headers=headers)))
    assert again == NewRecord(value, key, tuple(sorted(headers, key=lambda header: _first(headers, header[0]))), 2)


def _first(headers: list[Any], name: str) -> int:
    """Where a name of headers stands first: headers of one name come together."""
    return [one for one, _ in headers].index(name)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "is not JSON"),
        ("[]", 'is not an object with "value"'),
        ('{"key": "a"}', 'is not an object with "value"'),
        ('{"value": "a", "when": 1}', '"when" is not a field of a record; there are partition, key, value, headers'),
        ('{"value": 5}', "value: is not text"),
        ('{"value": {"base64": "?"}}', "value: base64: "),
        ('{"value": {"base64": "aaaa", "x": 1}}', "value: is not text"),
        ('{"value": "a", "partition": -1}', "partition: -1 is not a number of a partition"),
        ('{"value": "a", "partition": true}', "partition: True is not a number of a partition"),
        ('{"value": "a", "headers": []}', "headers: is not an object"),
        ('{"value": "a", "headers": {"x": 1}}', "headers.x: is not text"),
    ],
)
def test_a_line_that_is_no_record_says_what_is_wrong(line: str, words: str) -> None:
    with pytest.raises(BadLineError) as found:
        record_of(line)
    assert words in str(found.value)


def test_a_time_ago_is_a_value_and_no_option() -> None:
    words = ["consume", "--from", "-5m", "--until", "now", "-t", "x", "--dry-run"]
    assert joined(words) == ["consume", "--from=-5m", "--until", "now", "-t", "x", "--dry-run=client"]
