"""The Node.js clients: kafkajs, and @platformatic/kafka, which speaks flexible versions only.

@platformatic/kafka is held at 1.x: its 2.x wants Node.js 22.
"""

import json

import pytest

from tests.conformance.clients.records import FIRST_PART, RECORDS, assert_resumed
from tests.support.programs import node
from tests.support.servers import Server

pytestmark = pytest.mark.node


@pytest.mark.parametrize("client", ["kafkajs", "platformatic"])
def test_produce_consume_commit_resume(server: Server, name: str, client: str) -> None:
    printed = node(f"{client}.mjs", server.bootstrap, name, str(FIRST_PART), json.dumps(RECORDS))
    first, rest = json.loads(printed.splitlines()[-1])
    assert_resumed([(key, value) for key, value in first], [(key, value) for key, value in rest])


def test_kafkajs_commits_aborts_and_is_fenced(server: Server, name: str) -> None:
    printed = node("kafkajs_transactions.mjs", server.bootstrap, name)
    read, offsets, fenced = json.loads(printed.splitlines()[-1])
    assert read == ["committed", "committed", "of the next"]
    assert offsets == ["1", "1", "1", "4"]
    assert fenced in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
