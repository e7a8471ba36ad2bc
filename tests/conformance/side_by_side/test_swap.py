"""Kavka and Apache Kafka take turns on one directory, while a producer and a consumer live through it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.side_by_side import transacting
from tests.conformance.side_by_side.load import PARTITIONS, TOPIC, load
from tests.conformance.side_by_side.products import KAFKA, KAVKA, SETTINGS, become
from tests.conformance.side_by_side.transacting import OPEN_TOPIC, RECORDS, abort, commit, expect, transactional
from tests.support.servers import Server, start_kavka
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

ALONE = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
STABLE = {"before": RECORDS}
COMMITTED = {"first": RECORDS, "second": RECORDS}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = start_kavka(tmp_path / "broker", {**SETTINGS, **ALONE})
    try:
        yield started
    finally:
        started.kill()


def check(server: Server) -> None:
    """What a reader of committed records sees, whichever product serves."""
    expect(COMMITTED, server.bootstrap)
    expect({**COMMITTED, "aborted": RECORDS}, server.bootstrap, isolation="read_uncommitted")
    expect(STABLE, server.bootstrap, topic=OPEN_TOPIC)


@pytest.mark.parametrize("end", [Server.stop, Server.kill], ids=["stopped", "killed"])
def test_the_products_take_turns(server: Server, end: Callable[[Server], int]) -> None:
    def swap(product: str) -> None:
        end(server)
        become(server, product)
        server.start()

    create_topic(server, TOPIC, partitions=PARTITIONS)
    with load(server.bootstrap, [server]):
        swap(KAFKA)
        create_topic(server, transacting.TOPIC)
        create_topic(server, OPEN_TOPIC)
        producer = transactional(server.bootstrap, "ended")
        commit(producer, "first")
        abort(producer, "aborted")
        commit(producer, "second")
        opened = transactional(server.bootstrap, "open")
        commit(opened, "before", topic=OPEN_TOPIC)
        transacting.write(opened, "open", topic=OPEN_TOPIC)
        transacting.write_plainly(server.bootstrap, "after", OPEN_TOPIC)
        check(server)

        end(server)
        if end is Server.kill:
            # As if power had been lost: the file was not synced, and recovery has to build it again.
            for index in (server.data / f"{transacting.TOPIC}-0").glob("*.txnindex"):
                index.unlink()
        become(server, KAVKA)
        server.start()
        check(server)

        server.stop()  # so that Apache Kafka recovers nothing, and trusts the index that it finds
        become(server, KAFKA)
        server.start()
        check(server)
        transactional(server.bootstrap, "open")  # ends what is open
        expect({**STABLE, "after": RECORDS}, server.bootstrap, topic=OPEN_TOPIC)

        swap(KAVKA)
        expect(COMMITTED, server.bootstrap)
        expect({**STABLE, "after": RECORDS}, server.bootstrap, topic=OPEN_TOPIC)
