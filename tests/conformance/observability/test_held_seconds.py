"""Throttled seconds are seconds that went by: what /metrics counts lies between what clients were told and waited."""

import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from prometheus_client.parser import text_string_to_metric_families

from tests.conformance.quotas.speaker import TOPIC, Speaker
from tests.support.servers import Server, free_port
from tests.support.topics import create_topic

LIMIT = 600_000
CONNECTIONS = 2
ROUNDS = 3
SLACK = ROUNDS / 1000  # a timer may fire a millisecond early


def counted(admin: str) -> tuple[float, float]:
    """The seconds in which the quota held any connection, and the sum over its connections."""
    with urllib.request.urlopen(f"http://{admin}/metrics", timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    values = {
        sample.name: sample.value for family in families for sample in family.samples if is_of_quota(sample.labels)
    }
    return values["kavka_quota_throttled_seconds_total"], values["kavka_client_throttle_seconds_total"]


def is_of_quota(labels: dict[str, str]) -> bool:
    return labels.get("quota_type") == "produce" and "etl" in (labels.get("entity", "") + labels.get("client_id", ""))


def told_to_wait(speaker: Speaker) -> float:
    """Send some requests, the next as soon as one is answered; the seconds that the client is told to wait.

    The last one is answered when the connection is held no longer for those before it.
    """
    told = sum(speaker.produce() for _ in range(ROUNDS))
    speaker.produce()
    return told / 1000


def test_the_seconds_of_a_quota_are_those_in_which_its_clients_waited(start: Callable[..., Server]) -> None:
    admin = f"127.0.0.1:{free_port()}"
    server = start(kavka_admin_listener=admin, quota_window_num="2")
    create_topic(server, TOPIC)
    with ExitStack() as open_ones, ThreadPoolExecutor(CONNECTIONS) as threads:
        speakers = [open_ones.enter_context(Speaker(server.address, "etl")) for _ in range(CONNECTIONS)]
        speakers[0].limit("etl", "producer_byte_rate", LIMIT)
        began = time.monotonic()
        told = list(threads.map(told_to_wait, speakers))
        of_quota, of_connections = counted(admin)
        elapsed = time.monotonic() - began

    assert max(told) > 0, "nobody was throttled"
    assert max(told) - SLACK <= of_quota <= elapsed, (told, of_quota, elapsed)
    assert sum(told) - CONNECTIONS * SLACK <= of_connections <= CONNECTIONS * elapsed, (told, of_connections, elapsed)
    assert of_quota <= of_connections
