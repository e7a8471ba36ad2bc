"""Client instances: when each may ask and push, and when it is forgotten."""

import pytest

from kavka_broker.core.telemetry.instances import EXPIRY_MS_MIN, Instances, Push
from kavka_broker.core.telemetry.subscription import Attributes, Demand, subscription
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode

E = ErrorCode
ME, ANOTHER = b"\1" * 16, b"\2" * 16
CLIENT: Attributes = {"client_id": "app"}
INTERVAL_MS = 30_000
WANTED = Demand(("a",), INTERVAL_MS)
MINE = WANTED.subscription_id(ME)
BYTES_MAX = 1000


class Clients:
    """What is asked and pushed, at a time that is told."""

    def __init__(self, instances_max: int = 10) -> None:
        self.instances = Instances(instances_max)
        self.now_ms = 0
        self.subscribe("a")

    def subscribe(self, metrics: str) -> None:
        values = {"metrics": metrics, "interval.ms": str(INTERVAL_MS)}
        self.instances.subscribe([subscription("one", values)])

    def ask(self, instance_id: bytes = ME) -> ErrorCode:
        try:
            at_once(self.instances.asked(instance_id, CLIENT, lambda: self.now_ms))
        except BrokerError as refusal:
            return refusal.code
        return E.NONE

    def push(
        self, *, to: int = MINE, codec: int = 0, size: int = 10, last: bool = False, instance_id: bytes = ME
    ) -> ErrorCode:
        try:
            push = Push(to, codec, size, last)
            at_once(self.instances.pushed(instance_id, CLIENT, push, BYTES_MAX, lambda: self.now_ms))
        except BrokerError as refusal:
            return refusal.code
        return E.NONE


def test_a_first_push_comes_any_time_and_the_next_after_an_interval() -> None:
    clients = Clients()
    assert clients.ask() is E.NONE
    clients.now_ms += 1
    assert clients.push() is E.NONE
    clients.now_ms += INTERVAL_MS - 1
    assert clients.push() is E.THROTTLING_QUOTA_EXCEEDED
    clients.now_ms += 1
    assert clients.push() is E.NONE


def test_a_refused_push_does_not_put_the_next_one_off() -> None:
    clients = Clients()
    clients.ask()
    clients.push()
    clients.now_ms = INTERVAL_MS - 1
    assert clients.push() is E.THROTTLING_QUOTA_EXCEEDED
    clients.now_ms = INTERVAL_MS
    assert clients.push() is E.NONE


def test_asking_again_waits_for_an_interval_too() -> None:
    clients = Clients()
    assert clients.ask() is E.NONE
    clients.now_ms = INTERVAL_MS - 1
    assert clients.ask() is E.THROTTLING_QUOTA_EXCEEDED
    assert clients.push() is E.NONE
    clients.now_ms = 2 * INTERVAL_MS - 2
    assert clients.ask() is E.THROTTLING_QUOTA_EXCEEDED, "the push counts as well"
    clients.now_ms += 1
    assert clients.ask() is E.NONE


def test_an_early_ask_is_answered_where_a_push_was_refused_for_what_asking_mends() -> None:
    for to, codec, code in ((5, 0, E.UNKNOWN_SUBSCRIPTION_ID), (MINE, 9, E.UNSUPPORTED_COMPRESSION_TYPE)):
        clients = Clients()
        clients.ask()
        assert clients.push(to=to, codec=codec) is code
        assert clients.ask() is E.NONE
        assert clients.ask() is E.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("push", "code"),
    [
        ({"to": 5, "codec": 9, "size": 1001}, E.UNKNOWN_SUBSCRIPTION_ID),
        ({"codec": 9, "size": 1001}, E.UNSUPPORTED_COMPRESSION_TYPE),
        ({"codec": -1}, E.UNSUPPORTED_COMPRESSION_TYPE),
        ({"codec": 4, "size": 1001}, E.TELEMETRY_TOO_LARGE),
        ({"codec": 4, "size": 1000}, E.NONE),
        ({"instance_id": bytes(16)}, E.INVALID_REQUEST),
        ({"instance_id": bytes(15) + b"\1"}, E.INVALID_REQUEST),
    ],
)
def test_refusals_of_a_push_have_kafkas_order(push: dict[str, int], code: ErrorCode) -> None:
    clients = Clients()
    clients.ask()
    assert clients.push(**push) is code  # type: ignore[arg-type]


def test_a_last_push_comes_any_time_and_none_after_it() -> None:
    clients = Clients()
    clients.ask()
    clients.push()
    assert clients.push(last=True) is E.NONE
    clients.now_ms += INTERVAL_MS
    assert clients.push() is E.INVALID_REQUEST


def test_other_subscriptions_make_another_id_and_begin_again() -> None:
    clients = Clients()
    clients.ask()
    clients.push()
    clients.subscribe("b")
    assert clients.push() is E.UNKNOWN_SUBSCRIPTION_ID
    assert clients.ask() is E.NONE
    assert clients.push(to=Demand(("b",), INTERVAL_MS).subscription_id(ME)) is E.THROTTLING_QUOTA_EXCEEDED


def test_the_same_subscriptions_change_nothing() -> None:
    clients = Clients()
    clients.ask()
    clients.subscribe("a")
    assert clients.ask() is E.THROTTLING_QUOTA_EXCEEDED


def test_an_instance_is_forgotten_after_three_intervals_and_a_minute() -> None:
    clients = Clients()
    clients.ask()
    clients.push(last=True)
    clients.now_ms = 3 * INTERVAL_MS - 1
    clients.instances.expire(clients.now_ms)
    assert len(clients.instances) == 1
    clients.now_ms += 1
    assert clients.push() is E.NONE, "it has forgotten that the client has said it ends"
    assert 3 * INTERVAL_MS > EXPIRY_MS_MIN
    clients.now_ms += 3 * INTERVAL_MS
    clients.instances.expire(clients.now_ms)
    assert len(clients.instances) == 0


def test_the_instance_not_heard_of_for_longest_makes_room() -> None:
    clients = Clients(instances_max=2)
    clients.ask(ME)
    clients.ask(ANOTHER)
    clients.ask(ME)
    clients.ask(b"\3" * 16)
    assert len(clients.instances) == 2
    assert clients.instances.knows(ME)
    assert not clients.instances.knows(ANOTHER)
    assert clients.instances.displaced_total == 1
    assert clients.ask(ANOTHER) is E.NONE
    assert clients.instances.displaced_total == 2


def test_an_instance_whose_connection_has_ended_is_forgotten() -> None:
    clients = Clients()
    clients.ask()
    clients.instances.forget(ME)
    assert clients.ask() is E.NONE
