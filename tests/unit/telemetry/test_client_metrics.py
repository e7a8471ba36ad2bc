"""Pushes as the broker takes them: unpacked, read, kept, passed on; or refused."""

import asyncio
import logging
import threading

import pytest

from kavka_broker.core.metadata.image.configs import Configs, ResourceType
from kavka_broker.core.regular_expressions import MATCH_MICROSECONDS
from kavka_broker.core.telemetry.instances import Instances, Push
from kavka_broker.core.telemetry.otlp import Pushed, decode
from kavka_broker.core.telemetry.subscription import SUBSCRIPTIONS_MAX
from kavka_broker.loop.slices import COST_PER_YIELD, LoopTime, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.records.compression import Compression, compress
from kavka_broker.telemetry import client_metrics
from kavka_broker.telemetry.client_metrics import ClientMetrics
from kavka_broker.telemetry.forward import Forward
from tests.support.pushes import flow, gauge, metrics
from tests.support.waiting import turns, until
from tests.unit.runtime.sources import StoppedClock

ME = b"\1" * 16
CLIENT = {
    "client_id": "app",
    "client_software_name": "java",
    "client_software_version": "4.3",
    "client_source_port": None,
}
BYTES_MAX = 10_000
TIME = LoopTime(lambda: 0)
WANTED = {"metrics": "org.", "interval.ms": "1000"}
PUSH = metrics(gauge("org.level", 2.5), flow("org.flow", 3), gauge("com.other", 7), gauge("org.nan", float("nan")))


class SetClock(StoppedClock):
    """A clock that shows what it was set to."""

    ms = 1000.0

    def monotonic_ms(self) -> float:
        return self.ms


def made(
    forward: Forward | None = None, clock: StoppedClock | None = None, **subscriptions: dict[str, str]
) -> ClientMetrics:
    configs, ids = Configs(), iter([bytes([number]) * 16 for number in (7, 7, 8)])
    for name, values in subscriptions.items():
        for key, value in values.items():
            configs.replay(ConfigRecord(ResourceType.CLIENT_METRICS, name, key, value))
    taken = ClientMetrics(BYTES_MAX, configs, clock or StoppedClock(), lambda: next(ids), forward)
    taken.follow()
    return taken


async def pushed(taken: ClientMetrics, data: bytes, codec: int = 0, time: LoopTime | None = None) -> ErrorCode:
    """The code of the answer to a push by a client that has asked."""
    instance = at_once(taken.ask(ME, CLIENT))
    push = Push(instance.subscription_id, codec, len(data), False)
    try:
        taking = at_once(taken.push(ME, CLIENT, push, data, time or TIME))
        if taking is not None:
            await taking
    except BrokerError as refusal:
        return refusal.code
    return ErrorCode.NONE


def kept(taken: ClientMetrics) -> dict[str, float]:
    return {key.metric: value for key, value in taken.series}


@pytest.mark.parametrize("codec", list(Compression))
def test_what_was_asked_for_is_kept(codec: Compression) -> None:
    taken = made(one=WANTED)
    assert asyncio.run(pushed(taken, compress(codec, PUSH), codec)) is ErrorCode.NONE
    assert kept(taken) == {"org.level": 2.5, "org.flow": 3.0}
    assert taken.series.omitted_total == 1
    assert taken.results == {"NONE": 1}
    assert {key.client for key, _ in taken.series} == {("app", "java/4.3")}


@pytest.mark.parametrize(
    ("data", "codec", "code"),
    [
        (b"\xff", 0, ErrorCode.INVALID_RECORD),
        (b"no gzip", 1, ErrorCode.INVALID_RECORD),
        (compress(Compression.ZSTD, bytes(BYTES_MAX + 1)), 4, ErrorCode.TELEMETRY_TOO_LARGE),
        (compress(Compression.GZIP, bytes(5_000_000)), 1, ErrorCode.TELEMETRY_TOO_LARGE),
        (bytes(BYTES_MAX + 1), 0, ErrorCode.TELEMETRY_TOO_LARGE),
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes, codec: int, code: ErrorCode) -> None:
    taken = made(one=WANTED)
    assert asyncio.run(pushed(taken, data, codec)) is code
    assert taken.results == {code.name: 1}
    assert kept(taken) == {}


def test_nothing_is_unpacked_where_nobody_asks() -> None:
    taken = made(one={"metrics": "org.", "match": "client_id=another"})
    assert asyncio.run(pushed(taken, b"\xff")) is ErrorCode.NONE
    assert kept(taken) == {}


def test_an_empty_push_is_taken() -> None:
    taken = made(one=WANTED)
    assert asyncio.run(pushed(taken, b"")) is ErrorCode.NONE


def test_an_instance_id_is_drawn_until_it_is_new() -> None:
    taken = made(one=WANTED)
    assert at_once(taken.ask(taken.id_of(bytes(16)), CLIENT)).instance_id == bytes([7]) * 16
    assert at_once(taken.ask(taken.id_of(bytes(16)), CLIENT)).instance_id == bytes([8]) * 16


def test_a_subscription_of_kafkas_that_is_refused_here_asks_nobody() -> None:
    taken = made(one=WANTED, two={"metrics": "com.", "match": "client_id=(?=app).*"})
    assert at_once(taken.ask(ME, CLIENT)).demand.metrics == ("org.",)


def test_more_subscriptions_than_are_matched() -> None:
    many = {f"s{number:03}": {"metrics": f"m{number:03}"} for number in range(SUBSCRIPTIONS_MAX + 1)}
    wanted = at_once(made(None, None, **many).ask(ME, CLIENT)).demand.metrics
    assert sorted(wanted) == [f"m{number:03}" for number in range(SUBSCRIPTIONS_MAX)]


def test_a_client_that_goes_away_keeps_its_place_until_its_push_is_read() -> None:
    """Otherwise, clients that come, push and go would take all threads."""
    go_on, running = threading.Event(), list[int]()

    def slow(data: bytes | bytearray | memoryview) -> Pushed:
        running.append(len(data))
        go_on.wait()
        return Pushed()

    async def scenario() -> None:
        taken = made(one=WANTED)
        taken.decode = slow
        pushes = []
        for number in range(3):
            instance_id = bytes([number + 1]) * 16
            instance = at_once(taken.ask(instance_id, CLIENT))
            taking = at_once(
                taken.push(instance_id, CLIENT, Push(instance.subscription_id, 0, 4, False), b"push", TIME)
            )
            assert taking is not None
            pushes.append(asyncio.ensure_future(taking))
        await until(lambda: running)
        pushes[0].cancel()
        await turns()
        assert len(running) == 1
        go_on.set()
        await asyncio.gather(*pushes, return_exceptions=True)
        assert len(running) == 3
        assert taken.results == {"NONE": 2}

    asyncio.run(scenario())


def test_committed_records_are_followed() -> None:
    taken = made()
    record = ConfigRecord(ResourceType.CLIENT_METRICS, "one", "metrics", "com.")
    taken.configs.replay(record)
    taken.apply([ConfigRecord(ResourceType.TOPIC, "t", "retention.ms", "5")])
    assert at_once(taken.ask(ME, CLIENT)).demand.metrics == ()
    taken.apply([record])
    assert at_once(taken.ask(ME, CLIENT)).demand.metrics == ("com.",)


def test_a_push_is_passed_on_with_the_names_of_its_client() -> None:
    posted: list[bytes] = []

    async def scenario() -> None:
        forward = Forward("http://collector", lambda _, push: posted.append(push))
        taken = made(forward, one=WANTED)
        assert await pushed(taken, compress(Compression.LZ4, PUSH), Compression.LZ4) is ErrorCode.NONE
        await until(lambda: forward.sent_total == 1)
        await taken.stop()

    asyncio.run(scenario())
    assert [point.metric for point in decode(posted[0]).points] == ["org.level", "org.flow", "com.other"]
    assert b"client_software_version" in posted[0]
    assert b"client_source_port" not in posted[0], "it is not known"


def test_a_connection_that_ends_takes_its_instance_with_it() -> None:
    taken = made(one=WANTED)
    at_once(taken.ask(ME, CLIENT))
    assert taken.hear("connection", ME)
    assert not taken.hear("connection", ME)
    taken.lost("connection")
    assert not taken.instances.knows(ME)
    taken.lost("connection")


def test_a_push_that_its_clients_names_would_blow_up_is_kept_and_not_passed_on() -> None:
    async def body() -> None:
        forward = Forward("http://collector", lambda _, push: None)
        taken = made(forward, one=WANTED)
        bomb = b"\x0a\x00" * 4_000 + PUSH  # so many resources
        assert len(bomb) < BYTES_MAX
        client = {**CLIENT, "client_id": "x" * 2_000}
        instance = at_once(taken.ask(ME, client))
        taking = at_once(taken.push(ME, client, Push(instance.subscription_id, 0, len(bomb), False), bomb, TIME))
        assert taking is not None
        await taking
        assert kept(taken) == {"org.level": 2.5, "org.flow": 3.0}
        assert (forward.sent_total, forward.dropped_total) == (0, 1)

    asyncio.run(body())


@pytest.mark.parametrize(("data", "code"), [(PUSH, ErrorCode.NONE), (b"no OTLP", ErrorCode.INVALID_RECORD)])
def test_the_time_of_the_thread_is_the_clients_also_where_nothing_can_be_read(data: bytes, code: ErrorCode) -> None:
    class Request:
        loop_ns, flow, queue_name = 5, None, ("", "")

    ticks = iter((100, 107))
    time = LoopTime(lambda: 0, thread_ns=lambda: next(ticks))
    time.payer = Request()
    assert asyncio.run(pushed(made(all=WANTED), data, time=time)) is code
    assert time.payer.loop_ns == 12


MANY = {f"s{number}": WANTED | {"match": "client_id=a+b"} for number in range(50)}
"""So many subscriptions that one client is matched against them in several slices."""


def test_a_client_is_matched_against_some_subscriptions_at_a_time() -> None:
    """What one slice does is bounded, whatever the number of subscriptions."""
    taken = made(None, None, **MANY)
    work, yields = taken.ask(ME, CLIENT | {"client_id": "a" * 200}), 0
    with pytest.raises(StopIteration) as end:
        while True:
            next(work)
            yields += 1
    matches_per_yield = -(-COST_PER_YIELD // MATCH_MICROSECONDS)
    assert yields == len(MANY) // matches_per_yield
    assert end.value.value.demand.metrics == ()


def test_subscriptions_that_change_while_a_client_is_judged_are_heard_at_once() -> None:
    taken = made(None, None, **MANY, two=WANTED)
    work = taken.ask(ME, CLIENT | {"client_id": "a" * 200})
    next(work)
    taken.configs.replay(ConfigRecord(ResourceType.CLIENT_METRICS, "two", "metrics", "com."))
    taken.follow()
    assert at_once(work).demand.metrics == ("com.",)


def test_two_that_ask_at_once_under_an_id_are_one_instance() -> None:
    taken = made(None, None, **MANY)
    name = CLIENT | {"client_id": "a" * 200}
    first, second = taken.ask(ME, name), taken.ask(ME, name)
    next(first)
    at_once(second)
    with pytest.raises(BrokerError, match="interval"):
        at_once(first)


def test_asks_count_by_the_code_of_their_answer() -> None:
    taken = made(all=WANTED)
    at_once(taken.ask(ME, CLIENT))
    with pytest.raises(BrokerError):
        at_once(taken.ask(ME, CLIENT))
    assert dict(taken.asks) == {"NONE": 1, "THROTTLING_QUOTA_EXCEEDED": 1}
    assert not taken.results, "no push was refused"


def test_instances_that_make_room_for_others_are_warned_of_once_in_five_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def told() -> list[int]:
        warnings = (one for one in caplog.records if one.getMessage() == "telemetry.instances.displaced")
        return [one.fields["displaced"] for one in warnings]  # type: ignore[attr-defined]

    clock = SetClock()
    taken = made(clock=clock, all=WANTED)
    taken.instances = Instances(1)
    taken.follow()
    with caplog.at_level(logging.WARNING, "kavka"):
        for number in range(1, 5):
            at_once(taken.ask(bytes([number]) * 16, CLIENT))
        assert told() == [1]
        clock.ms += client_metrics.TOLD_AGAIN_MS
        at_once(taken.ask(ME, CLIENT))
        assert told() == [1, 3]
