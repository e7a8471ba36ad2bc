"""The fixtures, which pytest finds by the entry point `kavka`.

They cost nothing where no test asks for one: the brokers are started then, and stopped and removed with the session.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kavka_pytest.brokers import Kafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Kafka]":
    """One broker on a free port, with its records in a directory of the session."""
    from kavka_pytest.brokers import Kafka

    with Kafka(tmp_path_factory.mktemp("kafka"), brokers=1) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Kafka]":
    """Three brokers on free ports; topics have three replicas, of which two must be in sync."""
    from kavka_pytest.brokers import Kafka

    with Kafka(tmp_path_factory.mktemp("kafka_cluster"), brokers=3) as running:
        yield running
