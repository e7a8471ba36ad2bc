"""Client metrics (KIP-714): every question is put to Kavka and to Apache Kafka, and the answers are compared.

Apache Kafka serves telemetry only with a receiver, so it gets one (TelemetryReceiver.java).
"""

import itertools
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest

from kavka_broker.core.telemetry.protobuf import write_bytes
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import alter_configs_request as replacing
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.alter_configs_response import AlterConfigsResponse
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kavka_broker.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kavka_broker.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from kavka_broker.protocol.messages.list_config_resources_response import ListConfigResourcesResponse
from kavka_broker.protocol.messages.push_telemetry_request import PushTelemetryRequest
from kavka_broker.protocol.messages.push_telemetry_response import PushTelemetryResponse
from kavka_broker.protocol.records.compression import Compression, compress
from kavka_broker.protocol.uuids import to_text
from tests.support.asking import ask_on
from tests.support.both import Both
from tests.support.pushes import gauge, metrics
from tests.support.servers import start_apache_kafka, start_kavka
from tests.support.waiting import until_outside
from tests.support.wire import Connection
from tools.kafka_jars import class_path

pytestmark = pytest.mark.java

E = ErrorCode
CLIENT_METRICS = 16
TELEMETRY_BYTES_MAX = 4096
SETTINGS = {"telemetry.max.bytes": str(TELEMETRY_BYTES_MAX)}
PUSH = metrics(gauge("org.apache.kafka.producer.test", 1.5))
KEYS = ("metrics", "interval.ms", "match")
SET, DELETE, APPEND, SUBTRACT = range(4)
NUMBERS = itertools.count(1 << 100)
Change = tuple[str, int, str | None]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("telemetry")
    classes = directory / "classes"
    source = Path(__file__).with_name("TelemetryReceiver.java")
    subprocess.run(["javac", "-d", str(classes), "-cp", class_path(), str(source)], check=True)
    with ThreadPoolExecutor() as pool:
        reporter = {**SETTINGS, "metric.reporters": "TelemetryReceiver"}
        kafka = pool.submit(start_apache_kafka, directory / "kafka", reporter, classes=classes)
        kavka = start_kavka(directory / "kavka", SETTINGS)
        pair = Both(kavka, kafka.result())
    try:
        yield pair
    finally:
        pair.kavka.kill()
        pair.kafka.kill()


class Client:
    """One client with a connection to each broker, which says the same to both."""

    def __init__(self, both: Both) -> None:
        self.connections = [Connection(server.address) for server in both]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.close()

    def answers(self, instance_id: bytes) -> list[GetTelemetrySubscriptionsResponse]:
        request = GetTelemetrySubscriptionsRequest(instance_id)
        return [ask_on(one, request, GetTelemetrySubscriptionsResponse) for one in self.connections]

    def ask(self, instance_id: bytes) -> GetTelemetrySubscriptionsResponse:
        """The answer that both give."""
        ours, theirs = self.answers(instance_id)
        assert shown(ours) == shown(theirs)
        return ours

    def push(
        self, instance_id: bytes, subscription_id: int, data: bytes = PUSH, *, codec: int = 0, last: bool = False
    ) -> ErrorCode:
        """The code that both answer a push with."""
        request = PushTelemetryRequest(instance_id, subscription_id, last, codec, data)
        ours, theirs = (ask_on(one, request, PushTelemetryResponse) for one in self.connections)
        assert shown(ours) == shown(theirs)
        return ErrorCode(ours.error_code)


def shown(answer: Message) -> dict[str, object]:
    return {name: getattr(answer, name) for name in type(answer).__match_args__}


def alter(both: Both, name: str, *changes: Change) -> tuple[ErrorCode, ErrorCode]:
    configs = [altering.AlterableConfig(*change) for change in changes]
    request = altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(CLIENT_METRICS, name, configs)])
    ours, theirs = both.ask(request, IncrementalAlterConfigsResponse)
    return ErrorCode(ours.responses[0].error_code), ErrorCode(theirs.responses[0].error_code)


def subscribe(both: Both, name: str, **values: str) -> None:
    """Set configs of a subscription at both, and wait until each broker holds to them."""
    settled(both, name, [(key.replace("_", "."), SET, value) for key, value in values.items()])


def unsubscribe(both: Both, name: str) -> None:
    settled(both, name, [(key, DELETE, None) for key in KEYS])


def settled(both: Both, name: str, changes: list[Change]) -> None:
    """Change a subscription, and another one behind it for a client that asks until it has heard of it."""
    watcher = uuid()
    behind = [("interval.ms", SET, "100"), ("match", SET, f"client_instance_id={to_text(watcher)}")]
    assert alter(both, name, *changes) == (E.NONE, E.NONE)
    assert alter(both, "behind", *behind) == (E.NONE, E.NONE)
    with Client(both) as client:
        heard = [False, False]

        def have_heard() -> bool:
            for index, answer in enumerate(client.answers(watcher)):
                heard[index] |= answer.push_interval_ms == 100
            return all(heard)

        until_outside(have_heard)


def uuid() -> bytes:
    """An instance id that no other test has."""
    return next(NUMBERS).to_bytes(16, "big")


def entry(config: DescribeConfigsResourceResult) -> tuple[object, ...]:
    synonyms = [(said.name, said.value, said.source) for said in config.synonyms]
    flags = config.read_only, config.is_sensitive
    return config.name, config.value, config.config_source, config.config_type, flags, synonyms


def described(both: Both, name: str) -> tuple[object, object]:
    request = DescribeConfigsRequest([DescribeConfigsResource(CLIENT_METRICS, name, None)], True)

    def told(answer: DescribeConfigsResponse) -> object:
        (result,) = answer.results
        return ErrorCode(result.error_code), sorted(map(entry, result.configs))

    ours, theirs = both.ask(request, DescribeConfigsResponse)
    return told(ours), told(theirs)


REFUSED: dict[str, list[Change]] = {
    "unknown key": [("nope", SET, "1")],
    "unknown key beside a good one": [("metrics", SET, "a"), ("nope", SET, "1")],
    "no number": [("interval.ms", SET, "soon")],
    "an empty number": [("interval.ms", SET, "")],
    "too short": [("interval.ms", SET, "99")],
    "the shortest": [("interval.ms", SET, "100")],
    "the longest": [("interval.ms", SET, "3600000")],
    "too long": [("interval.ms", SET, "3600001")],
    "negative": [("interval.ms", SET, "-1")],
    "beyond an int": [("interval.ms", SET, "3000000000")],
    "no metrics": [("metrics", SET, "")],
    "null": [("metrics", SET, None)],
    "every metric": [("metrics", SET, "*")],
    "a metric twice": [("metrics", SET, "a,a")],
    "an empty metric": [("metrics", SET, "a,,b")],
    "a lone comma": [("metrics", SET, ",")],
    "an empty pattern": [("match", SET, "client_id=a,")],
    "blanks between": [("metrics", SET, "a, ,b")],
    "no attribute": [("match", SET, "nope=1")],
    "no equals sign": [("match", SET, "client_id")],
    "no pattern": [("match", SET, "client_id=")],
    "two equals signs": [("match", SET, "client_id=a=b")],
    "an equals sign behind": [("match", SET, "client_id=a=")],
    "no name": [("match", SET, "=a")],
    "an open class": [("match", SET, "client_id=[a")],
    "an open group": [("match", SET, "client_id=(a")],
    "nothing repeated": [("match", SET, "client_id=*")],
    "two patterns": [("match", SET, "client_id=a.*,client_software_name=b")],
    "an attribute twice": [("match", SET, "client_id=a,client_id=b")],
    "blanks": [("match", SET, " client_id = a , client_source_port = 9.* ")],
    "appended metrics": [("metrics", APPEND, "c")],
    "subtracted metrics": [("metrics", SUBTRACT, "c")],
    "an appended number": [("interval.ms", APPEND, "100")],
    "deleted": [("metrics", DELETE, None)],
    "deleted and unknown": [("nope", DELETE, None)],
    "twice": [("metrics", SET, "a"), ("metrics", SET, "b")],
    "nothing": [],
}


def agree(both: Both, name: str) -> None:
    """Wait until both tell the same: a broker may apply what was altered a moment after the answer."""

    def told() -> bool:
        ours, theirs = described(both, name)
        return bool(ours == theirs)

    until_outside(told)


@pytest.mark.parametrize("case", REFUSED)
def test_configs_are_taken_and_refused_as_by_kafka(both: Both, case: str) -> None:
    ours, theirs = alter(both, case.replace(" ", "-"), *REFUSED[case])
    assert ours is theirs
    agree(both, case.replace(" ", "-"))


@pytest.mark.parametrize("name", ["", "plain", "a b", "ünï", "a" * 249, "a" * 300, ".", "a/b", "default", "<default>"])
def test_names_are_taken_and_refused_as_by_kafka(both: Both, name: str) -> None:
    ours, theirs = alter(both, name, ("metrics", SET, "org.apache.kafka.producer.,a"), ("interval.ms", SET, "5000"))
    assert ours is theirs
    agree(both, name)


def test_a_subscription_is_replaced_as_by_kafka(both: Both) -> None:
    for values in ({"metrics": "a", "interval.ms": "200"}, {"match": "client_id=x"}, {}, {"nope": "1"}):
        configs = [replacing.AlterableConfig(key, value) for key, value in values.items()]
        resource = replacing.AlterConfigsResource(CLIENT_METRICS, "replaced", configs)
        ours, theirs = both.ask(replacing.AlterConfigsRequest([resource]), AlterConfigsResponse)
        assert ours.responses[0].error_code == theirs.responses[0].error_code
        agree(both, "replaced")


@pytest.mark.parametrize("version", [0, 1])
def test_subscriptions_are_listed_as_by_kafka(both: Both, version: int) -> None:
    subscribe(both, "listed", metrics="a")
    unsubscribe(both, "unlisted")
    request = ListConfigResourcesRequest([] if version == 0 else [CLIENT_METRICS])
    ours, theirs = both.ask(request, ListConfigResourcesResponse, version)
    names = [sorted(one.resource_name for one in answer.config_resources) for answer in (ours, theirs)]
    assert names[0] == names[1]
    assert "listed" in names[0]
    assert "unlisted" not in names[0]


@pytest.fixture
def alone(both: Both) -> Both:
    """Both without any subscription but those of the test."""
    remaining = both.ask(ListConfigResourcesRequest([CLIENT_METRICS]), ListConfigResourcesResponse)[0]
    for resource in remaining.config_resources:
        if resource.resource_name != "behind":
            alter(both, resource.resource_name, *((key, DELETE, None) for key in KEYS))
    unsubscribe(both, "first")
    return both


SUBSCRIPTIONS: dict[str, list[dict[str, str]]] = {
    "none": [],
    "one metric": [{"metrics": "org.apache.kafka.producer."}],
    "many metrics": [{"metrics": ",".join(f"org.apache.kafka.m{number}" for number in range(30))}],
    "twelve metrics": [{"metrics": ",".join(f"m{number}" for number in range(12))}],
    "thirteen metrics": [{"metrics": ",".join(f"m{number}" for number in range(13))}],
    "two subscriptions": [{"metrics": "b,a,c", "interval.ms": "5000"}, {"metrics": "a,d", "interval.ms": "7000"}],
    "everything": [{"metrics": "b,a"}, {"metrics": "*,c", "interval.ms": "400"}],
    "longer than the default": [{"metrics": "a", "interval.ms": "3600000"}],
    "no metrics": [{"interval.ms": "1000"}],
    "unicode": [{"metrics": "ünï,\U0001f600,日本"}],
    "no match": [{"metrics": "a", "match": "client_id=nobody"}],
}


@pytest.mark.parametrize("case", SUBSCRIPTIONS)
def test_a_client_is_asked_for_the_same_by_both(alone: Both, case: str) -> None:
    for name, values in zip(("first", "second"), SUBSCRIPTIONS[case], strict=False):
        settled(alone, name, [(key, SET, value) for key, value in values.items()])
    with Client(alone) as client:
        for instance_id in (uuid(), bytes(range(16)), b"\x80" + bytes(15)):
            assert client.ask(instance_id).error_code == E.NONE


PATTERNS = {
    "client_id=asking": True, "client_id=ask": False, "client_id=ask.*": True, "client_id=(ask|x)i[a-n]g?": True,
    "client_id=ASKING": False, "client_id=\\w+": True, "client_id=[^a]+": False, "client_id=^asking$": True,
    "client_id=a.{5}": True, "client_id=a.{4}": False, "client_id=(?:a|s|k|i|n|g)*": True,
    "client_software_name=unknown": True, "client_software_version=unknown": True, "client_software_name=": None,
    "client_source_address=127[.]0[.]0[.]1": True, "client_source_address=127.0.0.2": False,
    "client_source_port=[0-9]+": True, "client_source_port=\\d{1}": False,
    "client_instance_id=[A-Za-z0-9_-]{22}": True, "client_id=a.*,client_source_port=x": False,
    "client_id=a.*,client_source_port=\\d+": True,
}  # fmt: skip


@pytest.mark.parametrize("pattern", [pattern for pattern, matches in PATTERNS.items() if matches is not None])
def test_a_pattern_matches_the_same_clients(alone: Both, pattern: str) -> None:
    subscribe(alone, "first", metrics="matched", match=pattern)
    with Client(alone) as client:
        answer = client.ask(uuid())
    assert answer.requested_metrics == (["matched"] if PATTERNS[pattern] else [])


def test_a_new_client_gets_an_id_of_its_own(alone: Both) -> None:
    with Client(alone) as client:
        ours, theirs = client.answers(bytes(16))
        again, _ = client.answers(bytes(16))
    assert len({ours.client_instance_id, again.client_instance_id, bytes(16)}) == 3
    assert ours.client_instance_id[6] >> 4 == theirs.client_instance_id[6] >> 4 == 4
    assert ours.accepted_compression_types == theirs.accepted_compression_types == [4, 3, 1, 2]
    assert ours.telemetry_max_bytes == theirs.telemetry_max_bytes == TELEMETRY_BYTES_MAX
    assert ours.delta_temporality is theirs.delta_temporality is True


def test_asking_and_pushing_too_early(alone: Both) -> None:
    subscribe(alone, "first", metrics="*", interval_ms="3600000")
    with Client(alone) as client:
        me = uuid()
        mine = client.ask(me).subscription_id
        assert client.ask(me).error_code == E.THROTTLING_QUOTA_EXCEEDED
        assert client.push(me, mine) is E.NONE
        assert client.push(me, mine) is E.THROTTLING_QUOTA_EXCEEDED
        assert client.ask(me).error_code == E.THROTTLING_QUOTA_EXCEEDED
        assert client.push(me, mine, last=True) is E.NONE
        assert client.push(me, mine) is E.INVALID_REQUEST
        assert client.push(me, mine) is E.THROTTLING_QUOTA_EXCEEDED
        assert client.push(me, mine, last=True) is E.NONE
        assert client.push(me, mine, last=True) is E.INVALID_REQUEST


def test_a_push_that_was_never_asked_for(alone: Both) -> None:
    subscribe(alone, "first", metrics="*", interval_ms="3600000")
    with Client(alone) as client:
        me = uuid()
        assert client.push(me, 1) is E.UNKNOWN_SUBSCRIPTION_ID
        mine = client.ask(me)
        assert mine.error_code == E.NONE
        assert client.push(me, mine.subscription_id) is E.THROTTLING_QUOTA_EXCEEDED  # neither has it asked in time
        assert client.push(bytes(16), 1) is E.INVALID_REQUEST
        assert client.push(bytes(15) + b"\1", 1) is E.INVALID_REQUEST


def test_other_subscriptions_are_another_id(alone: Both) -> None:
    subscribe(alone, "first", metrics="a", interval_ms="3600000")
    with Client(alone) as client:
        me = uuid()
        mine = client.ask(me).subscription_id
        assert client.push(me, mine) is E.NONE
        subscribe(alone, "first", metrics="b", interval_ms="3600000")
        assert client.push(me, mine) is E.UNKNOWN_SUBSCRIPTION_ID
        changed = client.ask(me)
        assert changed.error_code == E.NONE
        assert changed.subscription_id != mine


@pytest.mark.parametrize("codec", range(-1, 6))
def test_codecs_are_taken_and_refused_as_by_kafka(alone: Both, codec: int) -> None:
    subscribe(alone, "first", metrics="nothing.like.it")
    data = compress(Compression(codec), PUSH) if codec in tuple(Compression) else PUSH
    with Client(alone) as client:
        me = uuid()
        code = client.push(me, client.ask(me).subscription_id, data, codec=codec)
    assert code is (E.NONE if codec in tuple(Compression) else E.UNSUPPORTED_COMPRESSION_TYPE)


@pytest.mark.parametrize(("size", "code"), [(0, E.NONE), (4096, E.NONE), (4097, E.TELEMETRY_TOO_LARGE)])
def test_the_size_of_a_push_has_a_bound(alone: Both, size: int, code: ErrorCode) -> None:
    subscribe(alone, "first", metrics="nothing.like.it")
    padding = size - len(PUSH) - 4
    data = PUSH + write_bytes(1000, bytes(padding)) if padding > 0 else b""
    assert len(data) == size
    with Client(alone) as client:
        me = uuid()
        assert client.push(me, client.ask(me).subscription_id, data) is code


def test_a_push_that_is_no_otlp(alone: Both) -> None:
    subscribe(alone, "first", metrics="*")
    with Client(alone) as client:
        me = uuid()
        assert client.push(me, client.ask(me).subscription_id, b"\xff" * 40) is E.INVALID_RECORD


def test_an_instance_ends_with_the_connection_that_it_asked_by(alone: Both) -> None:
    subscribe(alone, "first", metrics="a", interval_ms="3600000")
    me = uuid()
    with Client(alone) as client:
        assert client.ask(me).error_code == E.NONE
        assert client.ask(me).error_code == E.THROTTLING_QUOTA_EXCEEDED

    def is_forgotten() -> bool:
        """Whether both take a push with a wrong id for the first one of a new instance, whose connection is new."""
        with Client(alone) as another:
            return all(answer.error_code == E.NONE for answer in another.answers(me))

    until_outside(is_forgotten)
