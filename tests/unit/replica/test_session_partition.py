"""What a leader remembers of a partition in a fetch session: what its follower was told last."""

from kavka_broker.protocol.messages.fetch_request import FetchPartition
from kavka_broker.replica.leading.session_partition import SessionPartition

TOPIC = b"t" * 16


def at(offset: int, epoch: int) -> FetchPartition:
    return FetchPartition(0, current_leader_epoch=epoch, fetch_offset=offset)


def test_a_follower_is_told_offsets_once() -> None:
    partition = SessionPartition(TOPIC, at(61, 5))
    assert partition.told(61, 0)
    partition.ask_again(at(62, 5))
    assert not partition.told(61, 0)
    assert partition.told(62, 0)


def test_a_follower_is_told_again_in_another_leader_epoch() -> None:
    """It has dropped the answer that came while it changed over, and nothing may be written any more."""
    partition = SessionPartition(TOPIC, at(61, 5))
    assert partition.told(61, 0)
    partition.ask_again(at(61, 6))
    assert partition.told(61, 0)
