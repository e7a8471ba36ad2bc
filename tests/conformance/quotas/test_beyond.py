"""Quota keys of Kavka's own beside Kafka's: they take effect, and Kafka's own tool shows and leaves them.

Apache Kafka knows no such keys, so the broker is always Kavka; the judge is `kafka-configs`.

Requests are of 600 kB. What one may send at once is the worth of five seconds, so two requests that may not pass
together may be as far apart.
"""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.quotas.speaker import TOPIC, Speaker
from tests.support.programs import kafka_tool
from tests.support.servers import Server, start_kavka
from tests.support.topics import create_topic

pytestmark = pytest.mark.extended

LIMIT = 20_000
BURST_MS = 5_000
BURST_LIMIT = 200_000  # one request passes in 5 s, and no second one; within Kafka's 10 s both would
HOUR_MS = 3_600_000
ENTITY = ("--entity-type", "clients", "--entity-name")
Speak = Callable[[str], Speaker]


@pytest.fixture(scope="module")
def kavka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_kavka(tmp_path_factory.mktemp("beyond"), {"kavka.quota.first.burst.ms": str(BURST_MS)})
    create_topic(server, TOPIC)
    with Speaker(server.address, "first of all") as speaker:
        speaker.produce()  # from here on the broker serves the topic: no request is sent and charged twice
    yield server
    server.kill()


@pytest.fixture
def speak(kavka: Server) -> Iterator[Speak]:
    speakers: list[Speaker] = []

    def made(client_id: str) -> Speaker:
        speakers.append(Speaker(kavka.address, client_id))
        return speakers[-1]

    yield made
    for speaker in speakers:
        speaker.close()


def set_on(speak: Speak, client_id: str, **limits: float | None) -> None:
    speak("admin").set_quotas([("client-id", client_id)], limits)


def test_an_override_holds_instead_of_the_limit_until_its_end(speak: Speak) -> None:
    now_ms = time.time() * 1000 // 1
    set_on(speak, "overridden", producer_byte_rate=LIMIT, kavka_override_producer_byte_rate=1e12)
    assert speak("overridden").produce() > 3000  # without an end the override does not hold
    set_on(speak, "overridden", kavka_override_until_ms=now_ms + HOUR_MS)
    assert speak("overridden").produce() == 0
    set_on(speak, "overridden", kavka_override_until_ms=now_ms)
    assert speak("overridden").produce() > 3000


def test_the_first_burst_is_as_long_as_it_is_set(speak: Speak) -> None:
    set_on(speak, "first", producer_byte_rate=BURST_LIMIT)
    assert speak("first").produce() == 0
    assert speak("first").produce() > 0


def test_an_observed_limit_holds_nobody_back(speak: Speak) -> None:
    set_on(speak, "observed", kavka_observed_producer_byte_rate=1)
    assert speak("observed").produce() == 0


def test_client_ids_of_one_prefix_share_an_allowance(speak: Speak) -> None:
    set_on(speak, "family-", producer_byte_rate=BURST_LIMIT, kavka_prefix=1)
    assert speak("family-a").produce() == 0
    assert speak("family-b").produce() > 0
    assert speak("strangers").produce() == 0


@pytest.mark.java
@pytest.mark.slow
def test_kafkas_tool_shows_and_leaves_them(kavka: Server, speak: Speak) -> None:
    set_on(speak, "shown", kavka_observed_producer_byte_rate=5, kavka_override_until_ms=HOUR_MS)

    def configs(*arguments: str) -> str:
        return kafka_tool("configs", "--bootstrap-server", kavka.bootstrap, *arguments)

    configs("--alter", *ENTITY, "shown", "--add-config", "producer_byte_rate=1024")
    described = configs("--describe", *ENTITY, "shown")
    for part in ("producer_byte_rate=1024.0", "kavka_observed_producer_byte_rate=5.0", "kavka_override_until_ms=3600"):
        assert part in described
    configs("--alter", *ENTITY, "shown", "--delete-config", "producer_byte_rate")
    described = configs("--describe", *ENTITY, "shown")
    assert "producer_byte_rate=1024" not in described
    assert "kavka_observed_producer_byte_rate=5.0" in described
