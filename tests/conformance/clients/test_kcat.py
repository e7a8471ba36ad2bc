"""kcat: what many reach for first."""

import pytest

from tests.conformance.clients.records import COUNT, RECORDS, Pair
from tests.support.programs import kcat
from tests.support.servers import Server

pytestmark = pytest.mark.kcat


def pairs(output: str) -> list[Pair]:
    found = [line.partition("|") for line in output.splitlines() if "|" in line]
    return [(key, value) for key, _, value in found]


def produce(server: Server, topic: str, *options: str) -> None:
    lines = "".join(f"{key}|{value}\n" for key, value in RECORDS)
    kcat("-b", server.bootstrap, "-P", "-t", topic, "-K", "|", *options, stdin=lines)


def test_produce_and_consume_one_partition(server: Server, name: str) -> None:
    produce(server, name, "-p", "0")
    read = ("-C", "-t", name, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%k|%s\n")
    assert pairs(kcat("-b", server.bootstrap, *read)) == RECORDS


def test_a_group_resumes_where_it_committed(server: Server, name: str) -> None:
    produce(server, name)
    group = ("-G", name, "-q", "-f", "%k|%s\n", "-X", "auto.offset.reset=earliest")
    first = pairs(kcat("-b", server.bootstrap, *group, "-c", "120", name))
    rest = pairs(kcat("-b", server.bootstrap, *group, "-c", str(COUNT - 120), name))
    assert sorted([*first, *rest]) == sorted(RECORDS)


def test_metadata_names_the_broker_and_the_topic(server: Server, name: str) -> None:
    produce(server, name)
    listing = kcat("-b", server.bootstrap, "-L", "-t", name)
    assert f"at {server.bootstrap}" in listing
    assert f'topic "{name}"' in listing
