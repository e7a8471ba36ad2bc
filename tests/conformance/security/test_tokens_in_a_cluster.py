"""Delegation tokens where the controller is a node of its own: what one broker passes on, another lets in by.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from kavka_broker.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kavka_broker.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from tests.conformance.security.test_delegation_tokens_agree import Side, create, describe, expire, log_in, renew
from tests.conformance.security.test_links import ALONE
from tests.conformance.security.test_plain import MODULE as PLAIN_MODULE
from tests.conformance.security.test_scram import MODULE as SCRAM_MODULE
from tests.support.nodes import apart, cluster
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.slow, pytest.mark.extended]

NOT_ALLOWED, OWNER_MISMATCH, FAILED = 64, 63, 58
SETTINGS = {
    **ALONE,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.inside.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    "listener.name.inside.plain.sasl.jaas.config": f'{PLAIN_MODULE} required username="node" password="of node" '
    'user_node="of node" user_alice="of alice" user_bob="of bob";',
    "delegation.token.secret.key": "shared",
}


def test_a_token_that_one_broker_passes_on_is_good_at_another_until_it_is_ended(tmp_path: Path) -> None:
    with cluster(tmp_path, apart(controllers=1, brokers=2), SETTINGS) as nodes, ExitStack() as stack:
        ports = {place.node_id: place.inside_port for place in nodes.places}
        one, other = (Side(nodes[number], ports[number], stack) for number in (1, 2))
        other.tokens = one.tokens
        assert create("alice", renewers=("User:bob",))(one)[0] == 0
        until_outside(lambda: [token for token, *_ in describe("alice", of_all=True)(other)[1]] == ["t"])
        assert log_in()(other)[0] == 0
        request = CreateDelegationTokenRequest("", "", [], -1)
        asked = log_in(then=request, kind=CreateDelegationTokenResponse)(other)
        assert asked[2] == NOT_ALLOWED, "the broker says so, and passes nothing on"
        assert renew("nobody")(other)[0] == NOT_ALLOWED
        assert renew("bob")(other)[0] == 0
        assert expire("node")(one)[0] == OWNER_MISMATCH
        assert expire("bob")(other)[0] == 0
        for side in (one, other):
            until_outside(lambda side=side: log_in()(side)[0] == FAILED)  # type: ignore[misc]
