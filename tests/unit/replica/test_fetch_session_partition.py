"""What a leader remembers of a partition in a fetch session: what its client was told last."""

import pytest

from kavka_broker.protocol.messages.fetch_request import FetchPartition
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition

TOPIC = b"t" * 16


def at(offset: int, epoch: int) -> FetchPartition:
    return FetchPartition(0, current_leader_epoch=epoch, fetch_offset=offset)


def test_a_client_is_told_offsets_once() -> None:
    partition = SessionPartition(TOPIC, at(61, 5))
    assert partition.told(61, 0)
    assert not partition.told(61, 0)
    assert partition.told(62, 0)
    assert partition.told(62, 1)


@pytest.mark.parametrize("position", [at(61, 5), at(62, 5), at(61, 6)])
def test_a_follower_that_names_the_partition_is_told_again(position: FetchPartition) -> None:
    """It may have dropped the answer that came before, and nothing may be written any more."""
    partition = SessionPartition(TOPIC, at(61, 5))
    assert partition.told(61, 0)
    partition.ask_again(position, is_of_follower=True)
    assert partition.told(61, 0)
    assert not partition.told(61, 0)


def test_a_consumer_that_goes_on_is_told_only_what_is_new() -> None:
    partition = SessionPartition(TOPIC, at(61, 5))
    assert partition.told(62, 0)
    partition.ask_again(at(62, 5), is_of_follower=False)
    assert not partition.told(62, 0)
