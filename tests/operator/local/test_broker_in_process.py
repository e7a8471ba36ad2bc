"""A broker in the test's own process: several of them, and what is left when they end."""

import os
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kavka_pytest.brokers import KafkaError, opened
from kavka_pytest.in_process import KafkaInProcess
from tests.support.waiting import until_outside


def produce(kafka: KafkaInProcess, topic: str, count: int = 1) -> None:
    producer = Producer({"bootstrap.servers": str(kafka)})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    assert producer.flush(60) == 0


def open_files() -> set[str]:
    """What this process has open beyond plain files: sockets, pipes, and what lies in a broker's directory."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue  # that of the listing itself
        if target.startswith(("socket:", "anon_inode:")) or "/data/" in target:
            found.add(target)
    return found


def test_nothing_is_left_of_a_broker_that_has_ended(tmp_path: Path) -> None:
    with KafkaInProcess(tmp_path) as first:  # what the first one imports and keeps is not its own
        produce(first, first.topic())
    threads, files = set(threading.enumerate()), open_files()
    home = tmp_path / "another"
    home.mkdir()
    with KafkaInProcess(home) as kafka:
        produce(kafka, kafka.topic(partitions=3), 100)
        assert set(threading.enumerate()) > threads
        assert open_files() > files
    assert kafka.threads.left == []
    assert kafka not in opened
    until_outside(lambda: set(threading.enumerate()) <= threads, what="threads of the client end")
    until_outside(lambda: open_files() <= files, what="sockets of the client are closed")
    assert not (home / "data").exists()
    kafka.stop()
    with pytest.raises(KafkaError, match="has been stopped"):
        kafka.topic()


def test_a_broker_is_not_restarted_while_its_disk_is_full(tmp_path: Path) -> None:
    with KafkaInProcess(tmp_path) as kafka:
        topic = kafka.topic()
        full = kafka.fill_disk(leader_of=topic)
        with pytest.raises(KafkaError, match="disk is full, and it would not start"):
            kafka.restart()
        kafka.mend(full)
        kafka.restart()
        produce(kafka, topic, 10)


def test_several_brokers_know_nothing_of_each_other(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("first", "second")]
    for home in homes:
        home.mkdir()
    with KafkaInProcess(homes[0]) as first, KafkaInProcess(homes[1]) as second:
        assert str(first) != str(second)
        topic = first.topic("orders")
        produce(first, topic)
        with pytest.raises(KafkaError, match="no partition 0 of topic orders"):
            second.leader(topic)
        first.faults.drop("Produce")
        produce(second, second.topic())
        assert len(first.faults.unplayed) == 1


def test_records_survive_a_restart_on_the_same_port(tmp_path: Path) -> None:
    with KafkaInProcess(tmp_path) as kafka:
        before, topic = str(kafka), kafka.topic()
        produce(kafka, topic, 10)
        kafka.restart()
        assert str(kafka) == before
        producer = Producer({"bootstrap.servers": str(kafka)})
        offsets: list[int | None] = []
        producer.produce(topic, b"after", on_delivery=lambda error, message: offsets.append(message.offset()))
        assert producer.flush(60) == 0
        assert offsets == [10]


def test_settings_are_kafkas_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match=r"cannot start: num\.partitions"):
        KafkaInProcess(tmp_path, {"num.partitions": "many"}).__enter__()
    with KafkaInProcess(tmp_path, {"num.partitions": "7"}) as kafka:
        produce(kafka, "made-on-first-use")
        assert kafka.leader("made-on-first-use", 6) == 1


def test_a_topic_that_is_there_already_is_refused(tmp_path: Path) -> None:
    with KafkaInProcess(tmp_path) as kafka:
        kafka.topic("orders")
        with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
            kafka.topic("orders")


@pytest.mark.parametrize("wanted", ["kill", "pause", "resume"])
def test_what_needs_a_process_names_the_fixture_that_has_one(tmp_path: Path, wanted: str) -> None:
    with KafkaInProcess(tmp_path) as kafka, pytest.raises(KafkaError, match="ask for the fixture kafka_process"):
        getattr(kafka, wanted)(1)


def test_a_broken_invariant_fails_the_fixture_and_not_the_process(tmp_path: Path) -> None:
    with (
        pytest.raises(KafkaError, match="broke while the tests ran: AssertionError"),
        KafkaInProcess(tmp_path) as kafka,
    ):
        kafka.threads.call(fail)
        until_outside(lambda: is_broken(kafka), what="the failed assertion is noted")


def fail() -> None:
    raise AssertionError("an invariant of the broker")


def is_broken(kafka: KafkaInProcess) -> bool:
    try:
        kafka.topic()
    except KafkaError as error:
        return "the broker has broken" in str(error)
    return False
