"""The answer of the process that reads records for the operator's page: passed on as it is, and of bounded length."""

import asyncio
import errno
import json
import os
from typing import Any

import pytest

from kavka_operator.domain.access import OPEN
from kavka_operator.kafka.admin import AdminError
from kavka_operator.process.console.record_reader import (
    FOUND,
    NO_ANSWER,
    NOT_STARTED,
    WORDS_LENGTH_MAX,
    _answer,
    fitting,
    read_apart,
)

FIRST = [{"offset": number, "value": "x" * 100} for number in range(50)]
RECORDS = {"records": FIRST, "scanned": 50, "ended": "count"}


def test_records_are_passed_on_as_they_are() -> None:
    body = fitting(RECORDS)
    assert body.startswith(FOUND)
    assert _answer(body + b"\n") == body
    assert json.loads(body) == RECORDS


def test_an_answer_that_is_too_long_lacks_its_last_records_and_says_so() -> None:
    body = fitting(RECORDS, 1000)
    found = json.loads(body)
    assert len(body) <= 1000
    assert 0 < len(found["records"]) < 9
    assert found == {**RECORDS, "records": FIRST[: len(found["records"])], "ended": "bytes"}


def test_one_record_that_is_too_long_is_left_out() -> None:
    assert json.loads(fitting({**RECORDS, "records": [{"value": "x" * 1000}]}, 500))["records"] == []


@pytest.mark.parametrize("line", [b"", b"\n", b"[]\n", b"{}\n", b'{"records": [{"offset": 7', FOUND + b"[\n"])
def test_what_is_no_answer_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises(AdminError, match=NO_ANSWER):
        _answer(line)


def test_an_error_is_raised_in_its_words() -> None:
    with pytest.raises(AdminError) as raised:
        _answer(json.dumps({"error": "y" * 1000}).encode() + b"\n")
    assert str(raised.value) == "y" * WORDS_LENGTH_MAX


def test_a_process_that_cannot_be_started_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    with pytest.raises(AdminError, match=f"{NOT_STARTED}: Resource temporarily unavailable"):
        asyncio.run(read_apart("kafka:9092", OPEN, {"topic": "orders"}))
