"""Byte quotas over the wire: every level throttles, and a throttled connection is not heard until its time is over.

A quota of 100 kB/s lets 1 MB pass at once. Two requests of 600 kB are 200 kB too many, so the second is told to wait
for 2 s, less the time that went by between them.
"""

import time
from collections.abc import Callable, Iterator

import pytest

from kavka_broker.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from tests.conformance.quotas.speaker import SIZE, TOPIC, Speaker
from tests.support.servers import Server, is_apache_kafka, start_server
from tests.support.topics import create_topic

LIMIT = 100_000
USER, CLIENT = "user", "client-id"
NAMED_USER = "ANONYMOUS"  # the principal of a client on a plain listener
Entity = list[tuple[str, str | None]]

LEVELS: dict[int, Callable[[str], Entity]] = {
    1: lambda client_id: [(USER, NAMED_USER), (CLIENT, client_id)],
    2: lambda _: [(USER, NAMED_USER), (CLIENT, None)],
    3: lambda _: [(USER, NAMED_USER)],
    4: lambda client_id: [(USER, None), (CLIENT, client_id)],
    5: lambda _: [(USER, None), (CLIENT, None)],
    6: lambda _: [(USER, None)],
    7: lambda client_id: [(CLIENT, client_id)],
    8: lambda _: [(CLIENT, None)],
}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker of its own: the defaults that are set here would throttle the other tests."""
    server = start_server(tmp_path_factory.mktemp("quotas"))
    create_topic(server, TOPIC)
    with Speaker(server.address, "first") as speaker:
        speaker.produce()  # from here on the broker serves the topic: no request is sent and charged twice
    yield server
    server.kill()


@pytest.fixture
def speak(limited: Server) -> Iterator[Callable[[str], Speaker]]:
    speakers: list[Speaker] = []

    def made(client_id: str) -> Speaker:
        speakers.append(Speaker(limited.address, client_id))
        return speakers[-1]

    yield made
    for speaker in speakers:
        speaker.close()


@pytest.fixture
def alter(speak: Callable[[str], Speaker]) -> Iterator[Callable[[Entity, str, float], None]]:
    """Sets quotas; they are taken away at the end of the test."""
    admin = speak("admin")
    altered: list[tuple[Entity, str]] = []

    def one(entity: Entity, key: str, limit: float | None) -> None:
        parts = [EntityData(kind, name) for kind, name in entity]
        entry = EntryData(parts, [OpData(key, limit or 0.0, remove=limit is None)])
        answer = admin.ask(AlterClientQuotasRequest([entry]), AlterClientQuotasResponse, 1)
        assert answer.entries[0].error_code == 0
        if is_apache_kafka():
            time.sleep(1)  # it answers when the limit is written; its broker applies it a little later

    def set_limit(entity: Entity, key: str, limit: float) -> None:
        one(entity, key, limit)
        altered.append((entity, key))

    yield set_limit
    for entity, key in altered:
        one(entity, key, None)


Alter = Callable[[Entity, str, float], None]
Speak = Callable[[str], Speaker]


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_throttles_from_the_next_request_on(alter: Alter, speak: Speak, level: int) -> None:
    client_id = f"level-{level}"
    alter(LEVELS[level](client_id), "producer_byte_rate", LIMIT)

    first = speak(client_id).produce()
    second = speak(client_id).produce()

    # A quota of the user is shared with what the user's other clients have sent in the last ten seconds.
    assert first == 0 or level in {3, 6}
    assert second > 1000
    assert second <= 2100 or level in {3, 6}


def test_the_most_specific_quota_wins_though_it_is_the_larger(alter: Alter, speak: Speak) -> None:
    alter([(CLIENT, "favourite")], "producer_byte_rate", 1)
    alter([(USER, NAMED_USER), (CLIENT, "favourite")], "producer_byte_rate", 1e9)

    assert speak("favourite").produce() == 0
    assert speak("favourite").produce() == 0


def test_a_throttled_connection_is_not_heard_until_its_time_is_over(alter: Alter, speak: Speak) -> None:
    alter([(CLIENT, "muted")], "producer_byte_rate", LIMIT)
    muted = speak("muted")
    muted.produce()
    before = time.monotonic()  # it is muted from the charge on, and may hear of that later
    wait_ms = muted.produce()

    muted.fetch(0)

    assert wait_ms > 1000
    assert (time.monotonic() - before) * 1000 > wait_ms - 100


def test_a_throttled_fetch_comes_back_empty_and_later_full(alter: Alter, speak: Speak) -> None:
    speak("filler").produce()
    alter([(CLIENT, "reader")], "consumer_byte_rate", LIMIT)
    reader = speak("reader")

    wait_ms, size = reader.fetch(0)
    assert (wait_ms, size > SIZE) == (0, True)
    wait_ms, size = reader.fetch(0)
    assert wait_ms > 1000
    assert size == 0


def test_a_limit_that_is_taken_away_is_gone_for_the_next_request(alter: Alter, speak: Speak) -> None:
    alter([(CLIENT, "pardoned")], "producer_byte_rate", LIMIT)
    speak("pardoned").produce()
    assert speak("pardoned").produce() > 0

    alter([(CLIENT, "pardoned")], "producer_byte_rate", 1e12)

    assert speak("pardoned").produce() == 0
