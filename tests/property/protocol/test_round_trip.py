"""Every message in every version comes back from its bytes."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kavka_broker.protocol.codec import decode_prefix, encode, encode_parts
from kavka_broker.protocol.message import Message
from tests.property.protocol.building import Drawn, Seeded, build, every_message, versions

MESSAGES = every_message()
SEEDS = range(4)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_version_round_trips(kind: type[Message]) -> None:
    for version in versions(kind):
        for seed in SEEDS:
            check(build(kind, version, Seeded(seed)), version)


@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_message_round_trips(data: st.DataObject) -> None:
    kind: Any = data.draw(st.sampled_from(MESSAGES))
    version = data.draw(st.sampled_from(versions(kind)))
    check(build(kind, version, Drawn(data.draw)), version)


def check(message: Message, version: int) -> None:
    encoded = encode(message, version)
    decoded, end = decode_prefix(type(message), version, b"before" + encoded + b"after", 6)
    assert decoded == message
    assert end == 6 + len(encoded)
    assert b"".join(encode_parts(message, version)) == encoded
    assert encode(decoded, version) == encoded
