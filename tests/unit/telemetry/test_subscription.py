"""Subscriptions: whom they ask, for what, and under which id."""

import pytest

from kavka_broker.core.telemetry.java_hash_set import hash_code, set_order
from kavka_broker.core.telemetry.subscription import Attributes, Demand, demand, subscription
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode

CLIENT: Attributes = {"client_id": "app-1", "client_software_name": "apache-kafka-java", "client_source_port": None}


def test_hash_codes_are_javas() -> None:
    assert [hash_code(text) for text in ("", "a", "hello", "日本", "\U0001f600")] == [0, 97, 99162322, 835047, 1772899]


def test_a_set_has_javas_order() -> None:
    assert set_order(["b", "a", "c", "a"]) == ("a", "b", "c")
    assert set_order(["p", "a", "A"]) == ("p", "a", "A"), "the buckets of 112, 97 and 65: 0, 1 and 1"


def test_a_client_is_asked_for_what_all_matching_subscriptions_want() -> None:
    subscriptions = [
        subscription("one", {"metrics": "a,b", "interval.ms": "5000"}),
        subscription("two", {"metrics": "b,c", "interval.ms": "7000", "match": "client_id=app-.*"}),
        subscription("three", {"metrics": "d", "interval.ms": "100", "match": "client_id=app-.*,client_source_port=9"}),
    ]
    assert at_once(demand(subscriptions, CLIENT)) == Demand(("a", "b", "c"), 5000)


def test_every_metric_takes_the_place_of_all_others() -> None:
    wanted = at_once(demand([subscription("one", {"metrics": "a,*"}), subscription("two", {"metrics": "b"})], CLIENT))
    assert wanted == Demand(("*",), 300_000)
    assert wanted.wants("anything")


def test_a_client_that_nobody_asks() -> None:
    wanted = at_once(demand([subscription("one", {"metrics": "a", "match": "client_id=b"})], CLIENT))
    assert wanted == Demand((), 300_000)
    assert not wanted.wants("a")


def test_metrics_are_prefixes() -> None:
    wanted = Demand(("org.apache.kafka.producer.", "x"), 1000)
    assert wanted.wants("org.apache.kafka.producer.record")
    assert not wanted.wants("org.apache.kafka.producer")


def test_an_id_says_what_is_asked_and_of_whom() -> None:
    one, another = b"\1" + bytes(15), bytes(16)
    demands = [Demand(("a",), 1000), Demand(("a",), 1001), Demand(("b",), 1000), Demand((), 1000)]
    ids = [each.subscription_id(client) for each in demands for client in (one, another)]
    assert len(dict.fromkeys(ids)) == len(ids)
    assert all(-(2**31) <= each < 2**31 for each in ids)
    assert Demand(("a",), 1000).subscription_id(one) == ids[0]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"nope": "1"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
        ({"interval.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        ({"metrics": "a,,b"}, ErrorCode.INVALID_CONFIG),
        ({"match": "nope=1"}, ErrorCode.INVALID_CONFIG),
        ({"match": "client_id=(?=a)"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_subscription_that_cannot_be_is_refused(values: dict[str, str], code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refusal:
        subscription("one", values)
    assert refusal.value.code is code
    (key,) = values
    assert key in str(refusal.value)
