"""The fixtures, which pytest finds by the entry point `kavka`.

They cost nothing where no test asks for one: the brokers are started then, and stopped and removed with the session.
The faults of a test end with it, before its fixtures do; a fault that has never been played fails the test.
"""

import sys
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kavka_pytest.brokers import Kafka


@pytest.fixture(scope="session")
def kafka_config() -> Mapping[str, str]:
    """Settings of the broker of `kafka`, by Kafka's names. To set some, define a fixture of this name and scope."""
    return {}


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory, kafka_config: Mapping[str, str]) -> "Iterator[Kafka]":
    """One broker in this process, on a free port, with its records in a directory of the session."""
    from kavka_pytest.in_process import KafkaInProcess

    with KafkaInProcess(tmp_path_factory.mktemp("kafka"), kafka_config) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_process(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Kafka]":
    """One broker as a process of its own, which a test can kill and pause."""
    from kavka_pytest.processes import KafkaProcesses

    with KafkaProcesses(tmp_path_factory.mktemp("kafka_process"), brokers=1) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Kafka]":
    """Three brokers as processes, on free ports; topics have three replicas, of which two must be in sync."""
    from kavka_pytest.processes import KafkaProcesses

    with KafkaProcesses(tmp_path_factory.mktemp("kafka_cluster"), brokers=3) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """End the faults of a test with it; fail it for those that it has not reached."""
    try:
        result = yield
        unplayed = [words for running in running_brokers() for words in running.faults.unplayed]
        if unplayed:
            pytest.fail(f"the fault plan was not played: {'; '.join(unplayed)}", pytrace=False)
        return result
    finally:
        clear_faults()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """End the faults of a test whose fixtures failed."""
    clear_faults()


def clear_faults() -> None:
    for running in running_brokers():
        running.faults.clear()


def running_brokers() -> "tuple[Kafka, ...]":
    """Those of this process; none where no test has asked for any, and then nothing is imported for it."""
    brokers = sys.modules.get("kavka_pytest.brokers")
    return () if brokers is None else tuple(brokers.opened)
