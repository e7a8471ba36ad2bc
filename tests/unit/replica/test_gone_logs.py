"""A log that is gone is missed as long as nobody else has its records, and its topic is there."""

from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.core.metadata.image.topics import PartitionState, Topic
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.replica.hosting.damaged_replicas import Refusals
from kavka_broker.storage.file_names import PartitionName

NAME = PartitionName("t", 0)
FORMER, RECREATED = b"f" * 16, b"r" * 16


def topic(topic_id: bytes, *, isr: tuple[int, ...] = (1,)) -> Topic:
    made = Topic("t", topic_id)
    made.partitions[0] = PartitionState(replicas=(1, 2), isr=isr, leader=isr[0])
    return made


def refusing() -> tuple[Refusals, Any]:
    """Broker 1, whose start has missed the log of the former topic."""
    home = SimpleNamespace(is_clean=True, recovery_points={NAME: 7})
    logs = SimpleNamespace(online=[home], missed={}, get=lambda *_: None, unusable=lambda *_: None)
    refusals = Refusals(1, logs)  # type: ignore[arg-type] # what it asks of them
    with pytest.raises(BrokerError, match="ended at 7"):
        refusals.check(topic(FORMER), 0, is_starting=True)
    return refusals, logs


def test_it_stays_missed_while_nobody_else_has_its_records() -> None:
    refusals, logs = refusing()
    refusals.lift(topic(FORMER), 0)
    assert NAME in logs.missed
    with pytest.raises(BrokerError, match="ended at 7"):
        refusals.check(topic(FORMER), 0, is_starting=False)


def test_a_topic_created_again_under_its_name_is_not_refused() -> None:
    refusals, logs = refusing()
    refusals.lift(topic(RECREATED), 0)
    assert refusals.check(topic(RECREATED), 0, is_starting=False) == 0
    assert not logs.missed, "checkpoints forget it in a thread, before the new log is made"


def test_checkpoints_may_forget_it_where_another_replica_has_its_records() -> None:
    refusals, logs = refusing()
    refusals.lift(topic(FORMER, isr=(2,)), 0)
    assert not logs.missed
    assert refusals.check(topic(FORMER, isr=(2,)), 0, is_starting=False) == 0
