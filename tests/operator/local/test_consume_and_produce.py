"""`kavka produce` and `kavka consume`: records from lines and back, whatever bytes they have."""

import json
import subprocess
import time
from typing import Any

import pytest

from tests.operator.local.support import SECONDS_MAX, Kavka

LINES = (
    '{"key": "a", "value": "one", "headers": {"trace": "f00"}}',
    '{"key": {"base64": "/w=="}, "value": null, "partition": 0}',
    '{"value": "grüße"}',
)


@pytest.fixture
def broker(kavka: Kavka) -> Kavka:
    code, said = kavka.run("up", "-d", "--ephemeral", "--port", "0", "-o", "json")
    assert code == 0, said
    kavka.bootstrap = json.loads(said)["bootstrapServers"]
    return kavka


def produce(kavka: Kavka, text: str, *words: str) -> tuple[int, str]:
    """`kavka produce` with this input."""
    command = kavka.command("produce", "--topic", "orders", *words)
    ran = subprocess.run(command, input=text.encode(), capture_output=True, check=False, timeout=SECONDS_MAX)
    return ran.returncode, (ran.stdout + ran.stderr).decode()


def consumed(kavka: Kavka, *words: str) -> list[dict[str, Any]]:
    """What `kavka consume` prints."""
    code, said = kavka.run("consume", "--topic", "orders", *words)
    assert code == 0, said
    return [json.loads(line) for line in said.splitlines()]


def test_records_are_written_and_read_again(broker: Kavka) -> None:
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))
    assert produce(broker, "\n".join(LINES)) == (0, "3 records are written\n")
    assert produce(broker, "4\n5\n\n6\n", "--lines", "--key", "k") == (0, "3 records are written\n")
    found = consumed(broker)
    assert [record["offset"] for record in found] == list(range(6))
    assert [record["value"] for record in found] == ["one", None, "grüße", "4", "5", "6"]
    assert [record["key"] for record in found] == ["a", {"base64": "/w=="}, None, "k", "k", "k"]
    assert found[0]["headers"] == {"trace": "f00"}
    assert consumed(broker, "--from", "-5m", "--bootstrap", broker.bootstrap) == found
    assert consumed(broker, "--from", begun, "--max", "2") == found[:2]
    assert consumed(broker, "--until", begun) == consumed(broker, "--from", "now") == []
    assert consumed(broker, "--offset", "4", "--partition", "0") == found[4:]
    assert consumed(broker, "--grep", "^(one|5)$") == [found[0], found[4]]
    assert broker.run("consume", "-t", "orders", "-o", "value", "--offset", "3") == (0, "4\n5\n6\n")
    again = "\n".join(map(json.dumps, found[:3]))
    assert produce(broker, again) == (0, "3 records are written\n")
    copies = consumed(broker, "--offset", "6")
    assert [(one["key"], one["value"]) for one in copies] == [(one["key"], one["value"]) for one in found[:3]]


def test_a_bad_line_is_named_and_what_stood_before_it_is_written(broker: Kavka) -> None:
    code, said = produce(broker, f"{LINES[0]}\nnone\n{LINES[2]}")
    assert (code, "error: line 2: is not JSON" in said, "1 records are written" in said) == (1, True, True), said
    code, said = produce(broker, '{"value": "x", "partition": 7}')
    assert (code, "error: orders: " in said, "Traceback" in said) == (1, True, False), said
    assert len(consumed(broker)) == 1
    assert broker.run("consume", "-t", "none")[0] == 1
    assert broker.run("consume", "-t", "orders", "--partition", "9") == (
        1,
        "error: orders has no partition 9; it has 1\n",
    )
    assert broker.run("consume", "-t", "orders", "--from", "yesterday")[0] == 1
