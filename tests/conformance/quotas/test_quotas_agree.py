"""Quotas that are set, refused, described and enforced: each request is asked of Kavka and of Apache Kafka, and the
answers are compared.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import alter_client_quotas_request as altering
from kavka_broker.protocol.messages import describe_client_quotas_request as describing
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.conformance.quotas.speaker import Speaker
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.java, pytest.mark.slow]

USER, CLIENT, IP = "user", "client-id", "ip"
Entity = Sequence[tuple[str, str | None]]
Limits = dict[str, float | None]
Described = dict[tuple[tuple[str, str | None], ...], dict[str, float]]
SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both")) as pair:
        yield pair


def entry(entity: Entity, limits: Limits) -> altering.EntryData:
    ops = [altering.OpData(key, value or 0.0, remove=value is None) for key, value in limits.items()]
    return altering.EntryData([altering.EntityData(kind, name) for kind, name in entity], ops)


def alter(both: Both, *entries: altering.EntryData, validate_only: bool = False) -> list[tuple[ErrorCode, bool]]:
    """The code of each entity and whether a message is there, the same of both."""
    request = altering.AlterClientQuotasRequest(list(entries), validate_only)
    ours, theirs = (outcomes(answer) for answer in both.ask(request, AlterClientQuotasResponse, 1))
    assert ours == theirs, entries
    return list(ours.values())


def outcomes(answer: AlterClientQuotasResponse) -> dict[str, tuple[ErrorCode, bool]]:
    """By entity: Apache Kafka answers them in any order."""
    return {
        str([(part.entity_type, part.entity_name) for part in sorted(one.entity, key=str)]): (
            ErrorCode(one.error_code),
            bool(one.error_message),
        )
        for one in answer.entries
    }


def described(
    server: Server, components: Sequence[describing.ComponentData] = (), *, strict: bool = False
) -> Described:
    request = describing.DescribeClientQuotasRequest(list(components), strict)
    with Speaker(server.address, "admin") as admin:
        answer = admin.ask(request, DescribeClientQuotasResponse, 1)
    assert answer.error_code == 0, answer.error_message
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in found.entity)): {
            one.key: one.value for one in found.values
        }
        for found in answer.entries or []
    }


def soon_alike(both: Both, components: Sequence[describing.ComponentData] = (), *, strict: bool = False) -> Described:
    """What both describe: a broker shows what was altered once it has followed its controller."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        ours, theirs = (described(server, components, strict=strict) for server in both)
        if ours == theirs:
            return ours
        assert time.monotonic() < deadline, (ours, theirs)
        time.sleep(0.02)


# --- what is refused ------------------------------------------------------------------------------------------------

ALICE: Entity = [(USER, "alice")]
ADDRESS: Entity = [(IP, "192.0.2.7")]
BYTES, PERCENT, MUTATIONS, CONNECTIONS = (
    "producer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
NUMBERS = (-1.0, 0.0, 0.4, 1.5, 1e-9, 2.0**31, 2.0**63, 2.0**64, 1e300, float("inf"), float("-inf"))
NUMBERS_BY_KEY: list[tuple[Entity, Limits]] = [(entity, {key: number})
    for entity, key in ((ALICE, BYTES), (ALICE, PERCENT), (ALICE, MUTATIONS), (ADDRESS, CONNECTIONS))
    for number in NUMBERS]  # fmt: skip
ENTITIES: list[tuple[Entity, Limits]] = [
    ([], {BYTES: 1.0}),
    ([("", "x")], {BYTES: 1.0}),
    ([("team", "x")], {BYTES: 1.0}),
    ([(USER, "")], {BYTES: 1.0}),
    ([(CLIENT, "")], {BYTES: 1.0}),
    ([(USER, "a"), (IP, "192.0.2.7")], {BYTES: 1.0}),
    ([(CLIENT, "a"), (IP, None)], {CONNECTIONS: 1.0}),
    ([(IP, "no such host.")], {CONNECTIONS: 1.0}),
    ([(IP, "localhost")], {CONNECTIONS: 1e6}),
    ([(IP, "nobody.invalid")], {CONNECTIONS: 1.0}),
    ([(IP, "")], {CONNECTIONS: 1.0}),
    (ADDRESS, {BYTES: 1.0}),
    (ALICE, {CONNECTIONS: 1.0}),
    (ALICE, {"nope": 1.0}),
    (ALICE, {"": 1.0}),
    (ALICE, {"nope": None}),
    (ALICE, {CONNECTIONS: None}),
    (ADDRESS, {BYTES: None}),
    (ALICE, {BYTES: 1.0, "nope": 1.0}),
    (ALICE, {BYTES: 1.0, PERCENT: -1.0}),
]


@pytest.mark.parametrize("validate_only", [False, True])
def test_what_is_refused_is_refused_alike_and_changes_nothing(both: Both, validate_only: bool) -> None:
    refused = 0
    for entity, limits in (*NUMBERS_BY_KEY, *ENTITIES):
        before = soon_alike(both)
        ((code, has_message),) = alter(both, entry(entity, limits), validate_only=validate_only)
        assert has_message is (code is not ErrorCode.NONE)
        if code is not ErrorCode.NONE or validate_only:
            assert soon_alike(both) == before, (entity, limits)
        else:
            alter(both, entry(entity, dict.fromkeys(limits)))
        refused += code is not ErrorCode.NONE
    assert refused > len(NUMBERS_BY_KEY) / 2


def test_what_is_stricter_here_is_refused(both: Both) -> None:
    """Apache Kafka takes what is no number, and the last of two users."""
    no_number = float("nan")
    for entity, key, value in (
        (ALICE, BYTES, no_number),
        (ALICE, PERCENT, no_number),
        (ADDRESS, CONNECTIONS, no_number),
        ([(USER, "a"), (USER, "b")], BYTES, 1.0),
    ):
        request = altering.AlterClientQuotasRequest([entry(entity, {key: value})], True)
        ours, theirs = both.ask(request, AlterClientQuotasResponse, 1)
        assert (ours.entries[0].error_code, theirs.entries[0].error_code) == (ErrorCode.INVALID_REQUEST, 0)


def test_one_refused_entity_does_not_keep_the_others_from_being_altered(both: Both) -> None:
    entries = [
        entry([(USER, "one")], {BYTES: 1.0}),
        entry([(USER, "two")], {BYTES: -1.0}),
        entry([(USER, "three")], {BYTES: 3.0}),
    ]
    alter(both, *entries)
    assert soon_alike(both, [describing.ComponentData(USER, 2, None)])


# --- names ----------------------------------------------------------------------------------------------------------

NAMES = ("default", "<default>", "CN=a,OU=b", "a=b,c", "a/b", "żółw", "日本", "x" * 249, " ", "%2F", "a b")
LEVELS: list[Entity] = [
    *([(USER, name)] for name in (*NAMES, None)),
    *([(CLIENT, name)] for name in (*NAMES, None)),
    *([(USER, name), (CLIENT, other)] for name in (*NAMES, None) for other in ("default", "<default>", "żółw", None)),
    [(IP, "192.0.2.7")],
    [(IP, "2001:db8::7")],
    [(IP, None)],
]
FILTERS = [
    [],
    *([describing.ComponentData(kind, 0, name)] for kind in (USER, CLIENT) for name in NAMES),
    *([describing.ComponentData(kind, way, None)] for kind in (USER, CLIENT, IP) for way in (1, 2)),
    [describing.ComponentData(USER, 0, "<default>"), describing.ComponentData(CLIENT, 1, None)],
    [describing.ComponentData(USER, 1, None), describing.ComponentData(CLIENT, 1, None)],
    [describing.ComponentData(USER, 2, None), describing.ComponentData(CLIENT, 0, "default")],
    [describing.ComponentData(IP, 0, "192.0.2.7")],
    [describing.ComponentData(USER, 0, "nobody")],
]  # fmt: skip


def test_every_entity_is_set_described_and_found_alike(both: Both) -> None:
    for number, entity in enumerate(LEVELS, 1):
        limits: Limits = (
            {CONNECTIONS: 1e6 + number} if entity[0][0] == IP else {BYTES: float(number), PERCENT: number / 8}
        )
        assert alter(both, entry(entity, limits)) == [(ErrorCode.NONE, False)], entity
    everything = soon_alike(both)
    assert {tuple(sorted(entity)) for entity in LEVELS} <= everything.keys()
    for components in FILTERS:
        for strict in (False, True):
            soon_alike(both, components, strict=strict)
    for entity in LEVELS:
        alter(both, entry(entity, {CONNECTIONS: None} if entity[0][0] == IP else {BYTES: None, PERCENT: None}))
    assert not {tuple(sorted(entity)) for entity in LEVELS} & soon_alike(both).keys()


@pytest.mark.parametrize(
    "components",
    [
        [("team", 0, "a")], [("", 0, "a")], [(USER, 0, None)], [(USER, 1, "a")], [(USER, 2, "a")], [(USER, 9, None)],
        [(USER, 0, "a"), (USER, 0, "b")], [(USER, 2, None), (IP, 2, None)],
    ],
)  # fmt: skip
def test_a_filter_without_sense_is_refused_alike(both: Both, components: list[tuple[str, int, str | None]]) -> None:
    request = describing.DescribeClientQuotasRequest([describing.ComponentData(*one) for one in components])
    ours, theirs = both.ask(request, DescribeClientQuotasResponse, 1)
    assert ErrorCode(ours.error_code) == ErrorCode(theirs.error_code)
    assert ours.error_code != 0


# --- controller mutations -------------------------------------------------------------------------------------------

NUMBERS_BEHIND = itertools.count(1)
LIMIT = 0.01  # a second: the burst is of 0.11 partitions, so what comes first passes and uses it up


class Mutator:
    """A client under a quota of mutations, of each broker."""

    def __init__(self, both: Both, client_id: str) -> None:
        for name, key, limit in ((client_id, MUTATIONS, LIMIT), ("behind", BYTES, float(next(NUMBERS_BEHIND)))):
            alter(both, entry([(CLIENT, name)], {key: limit}))
            # Apache Kafka applies it a little after it shows it, and before it shows what comes behind it.
            soon_alike(both, [describing.ComponentData(CLIENT, 0, name)])
        self._both = both
        self._client_id = client_id

    def ask(self, request: Message, kind: type[Any], version: int) -> tuple[list[ErrorCode], int]:
        """The codes of the topics and throttle_time_ms, the same of both."""
        said = []
        for server in self._both:
            with Speaker(server.address, self._client_id) as client:
                answer: Any = client.ask(request, kind, version)
            results = next(
                getattr(answer, name) for name in ("topics", "responses", "results") if hasattr(answer, name)
            )
            said.append((sorted(ErrorCode(one.error_code) for one in results), answer.throttle_time_ms))
        (ours, our_ms), (theirs, their_ms) = said
        assert ours == theirs
        assert abs(our_ms - their_ms) < 15_000, (our_ms, their_ms)
        assert bool(our_ms) == bool(their_ms)
        return ours, our_ms

    def create(self, *names: str, version: int, validate_only: bool = False) -> tuple[list[ErrorCode], int]:
        request = CreateTopicsRequest([CreatableTopic(name, 2, 1) for name in names], 30_000, validate_only)
        return self.ask(request, CreateTopicsResponse, version)

    def delete(self, name: str, version: int) -> tuple[list[ErrorCode], int]:
        by_name = DeleteTopicsRequest(
            [DeleteTopicState(name)] if version >= 6 else [], [] if version >= 6 else [name], 30_000
        )
        return self.ask(by_name, DeleteTopicsResponse, version)

    def grow(self, name: str, count: int, version: int) -> tuple[list[ErrorCode], int]:
        request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, None)], 30_000)
        return self.ask(request, CreatePartitionsResponse, version)


EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_mutations_are_refused_and_throttled_alike(both: Both) -> None:
    strict = Mutator(both, "strict")
    assert strict.create("bad name", "bad name too", version=7)[1] == 0
    assert strict.create("m1", version=7, validate_only=True)[0] == [0]
    codes, waits_ms = strict.create("m1", "m2", version=7, validate_only=True)
    assert (codes, waits_ms > 100_000) == ([EXCEEDED] * 2, True)
    assert strict.create("m1", version=6)[0] == [EXCEEDED]

    former = Mutator(both, "former")
    assert former.create("m1", "m2", "m3", version=5)[0] == [0, 0, 0]
    codes, waits_ms = former.create("m4", version=5)
    assert (codes, waits_ms > 600_000) == ([0], True)

    for version, code in ((6, EXCEEDED), (5, EXCEEDED), (4, 0)):
        assert strict.delete("m4", version)[0] == [code], version
    for version, code in ((3, EXCEEDED), (2, 0)):
        assert strict.grow("m3", 5, version)[0] == [code], version
    assert strict.delete("m4", 6) == ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], 0)


def test_the_topic_that_uses_the_quota_up_passes_and_those_behind_it_are_refused(both: Both) -> None:
    codes, waits_ms = Mutator(both, "several").create("s1", "s2", "s3", version=7)
    assert codes == sorted([ErrorCode.NONE, EXCEEDED, EXCEEDED])
    assert waits_ms > 100_000


def metadata_code(server: Server, client_id: str, topic: str) -> ErrorCode:
    """Ask for a topic, which makes it where the client may have it."""
    with Speaker(server.address, client_id) as client:
        answer = client.ask(MetadataRequest([MetadataRequestTopic(name=topic)]), MetadataResponse, 12)
    assert answer.throttle_time_ms == 0
    return ErrorCode(answer.topics[0].error_code)


def test_topics_that_are_made_by_asking_are_charged_to_who_asks(both: Both) -> None:
    """So a client without a quota goes on, and one that has used its own up gets nothing more."""
    Mutator(both, "asking")
    for server in (both.kavka, both.kafka):
        for client_id, topic in (("asking", "auto-1"), ("free", "auto-2")):
            assert metadata_code(server, client_id, topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            until_outside(partial(metadata_is_fine, server, client_id, topic))
        assert metadata_code(server, "asking", "auto-3") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        metadata_code(server, "free", "auto-4")
        until_outside(partial(metadata_is_fine, server, "free", "auto-4"))
        assert metadata_code(server, "asking", "auto-3") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def metadata_is_fine(server: Server, client_id: str, topic: str) -> bool:
    return metadata_code(server, client_id, topic) == ErrorCode.NONE
