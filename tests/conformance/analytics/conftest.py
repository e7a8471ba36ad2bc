"""One session of Spark for all tests here, with pyspark from the cache: its start takes longer than most of them.

Over a few hundred rows, most of Spark's time goes to compiling what it generates for each query. So the session
interprets its plans, and `as_delivered` has a test run by the settings that a run has.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.conformance.security.test_audit import KEY
from tests.support.servers import Server, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

PLANS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java as it is quickest for a minute or two."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch Spark before the first test: on a slow network that takes longer than a test may."""
    from tools.spark_home import spark_home

    wanted = (
        item for item in session.items if item.get_closest_marker("spark") and not item.get_closest_marker("skip")
    )
    if not session.config.option.collectonly and any(wanted):
        spark_home()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tools.spark_home import settings, spark_home

    others = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": JAVA, **PLANS}
    given = settings(tmp_path_factory.mktemp("spark") / "conf", others)
    before = dict(os.environ)
    os.environ.update(given)
    sys.path.append(str(spark_home()))
    from kavka_audit.spark.session import session
    from kavka_audit.spark.settings import DELTA

    try:
        with session(DELTA) as found:
            found.sparkContext.setLogLevel("OFF")  # tests make it fail on purpose
            yield found
    finally:
        sys.path.remove(str(spark_home()))
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def as_delivered(spark: Any) -> Iterator[None]:
    """Have Spark plan and compile as it does in a run."""
    for name in PLANS:
        spark.conf.unset(name)
    yield
    for name, value in PLANS.items():
        spark.conf.set(name, value)


@pytest.fixture
def audited_broker(tmp_path: Path) -> Iterator[Server]:
    """A broker with a trail, and a topic `orders`."""
    (tmp_path / "audit.key").write_bytes(KEY.secret + b"\n")
    keys = {"kavka.audit.key.file": str(tmp_path / "audit.key"), "kavka.audit.interval.ms": "1000"}
    server = start_kavka(tmp_path / "broker", keys)
    create_topic(server, "orders")
    until_outside(lambda: has_trail(server))  # a run that finds none ends
    yield server
    server.kill()


def has_trail(server: Server) -> bool:
    """Whether the broker has made the topic of its trail, which it does after the first interval."""
    return "__audit_events" in AdminClient({"bootstrap.servers": server.bootstrap}).list_topics(timeout=60).topics


def produce(server: Server, records: int) -> None:
    """Write records to `orders` as the client `writer`."""
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "writer"})
    for _ in range(records):
        producer.produce("orders", b"v" * 100)
    assert producer.flush(60) == 0
