"""Log lines: events with fields, that no value can break out of."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.logs import get
from kavka_broker.runtime.logs import LINES_MAX, PERIOD_SECONDS, VALUE_CHARACTERS_MAX, Flood, install


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:], root.level = handlers, level
    logging.getLogger("kavka").setLevel(logging.NOTSET)


def test_a_log_line_for_people_says_what_when_and_of_what(stream: io.StringIO) -> None:
    install(stream, "text", "info")

    get("replica").info("partition.truncated", topic="orders", partition=3, reason="epoch 4 ended")

    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} INFO    replica    "
        r'partition\.truncated topic=orders partition=3 reason="epoch 4 ended"\n',
        stream.getvalue(),
    )


def test_a_line_for_a_collector(stream: io.StringIO) -> None:
    install(stream, "json", "info")

    get("net").warning("connection.closed", client="10.0.0.1", bytes=17, level="a field cannot take this name")

    line = json.loads(stream.getvalue())
    assert line.pop("time_ms") > 0
    assert line == {
        "level": "warning",
        "area": "net",
        "event": "connection.closed",
        "client": "10.0.0.1",
        "bytes": 17,
    }


@pytest.mark.parametrize("style", ["text", "json"])
@pytest.mark.parametrize(
    "value", ["a\nb", "\x1b[31m", 'say "hi"', "a b=c", "", "\r\n13:00:00 ERROR fake", "\u2028x", "\x9b31m"]
)
def test_a_value_stays_on_its_line_and_in_its_field(stream: io.StringIO, style: str, value: str) -> None:
    install(stream, style, "info")

    get("api").info("request.refused", client_id=value, next=1)

    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in line
    assert json.dumps(value) in line


@pytest.mark.parametrize("style", ["text", "json"])
def test_secrets_are_hidden_and_long_values_cut(stream: io.StringIO, style: str) -> None:
    install(stream, style, "info")

    get("api").info("x", password="hunter2", sasl_jaas_config="hunter2", topic="t" * 5000)

    assert "hunter2" not in stream.getvalue()
    assert len(stream.getvalue()) < VALUE_CHARACTERS_MAX + 200


@pytest.mark.parametrize("style", ["text", "json"])
def test_an_error_carries_its_traceback(stream: io.StringIO, style: str) -> None:
    install(stream, style, "info")
    try:
        raise KeyError("orders")
    except KeyError as error:
        get("api").exception("request.failed", error, api="Produce")

    assert "test_an_error_carries_its_traceback" in stream.getvalue()
    assert "KeyError: 'orders'" in stream.getvalue()


def test_below_the_level_nothing_is_written(stream: io.StringIO) -> None:
    install(stream, "text", "warning")

    get("api").info("request.done")
    logging.getLogger("some.library").info("chatter")

    assert stream.getvalue() == ""


def test_a_library_speaks_in_the_same_format(stream: io.StringIO) -> None:
    install(stream, "text", "info")

    logging.getLogger("asyncio").warning("took %s seconds", 2)

    assert stream.getvalue().endswith('WARNING asyncio    "took 2 seconds"\n')


def test_an_unknown_format_is_refused_with_the_fix() -> None:
    with pytest.raises(ConfigError, match=r"kavka\.log\.format.*text, json"):
        BrokerConfig.parse({"node.id": "1", "process.roles": "broker", "kavka.log.format": "xml"})


def test_what_others_bring_about_without_end_is_kept_back_and_counted(stream: io.StringIO) -> None:
    install(stream, "text", "info")
    now = [0.0]
    (handler,) = logging.getLogger().handlers
    handler.filters[:] = [Flood(lambda: now[0])]
    log = get("net")
    for _ in range(LINES_MAX + 7):
        log.warning("authentication.failed", client="10.0.0.1")
        log.warning("partition.not_opened", partition="t-0")
    lines = stream.getvalue().splitlines()
    assert sum("authentication.failed" in line for line in lines) == LINES_MAX
    assert sum("partition.not_opened" in line for line in lines) == LINES_MAX + 7, "what no client can bring about"
    now[0] = PERIOD_SECONDS
    log.warning("authentication.failed", client="10.0.0.1")
    log.warning("authentication.failed", client="10.0.0.1")
    *_, first, second = stream.getvalue().splitlines()
    assert first.endswith("client=10.0.0.1 withheld=7")
    assert second.endswith("client=10.0.0.1")
