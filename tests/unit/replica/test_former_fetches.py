"""A fetch of a former incarnation that has waited at its leader, and counts for nothing once the next one has asked."""

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.partition.world import World


def test_it_does_not_take_the_place_of_the_next() -> None:
    world = World(3, min_isr=2)
    leader, follower = world.nodes[1].partition, world.nodes[2]
    assert leader is not None
    world.last_heard_epoch = 1  # no word of the new registration yet
    world.produce(world.nodes[1], b"a+b", 1)
    leader.follower_fetched(2, 1, 2, 0)
    world.stop(follower, loses_power=True)
    world.start(follower)
    leader.follower_fetched(2, follower.epoch, 0, 0)

    with pytest.raises(BrokerError, match="has restarted since") as refused:
        leader.follower_fetched(2, 1, 2, 0)

    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.leadership is not None
    known = leader.leadership.followers[2]
    assert (known.broker_epoch, known.log_end_offset) == (2, 0), (
        "or what a loss of power took would count as replicated"
    )
    leader.follower_fetched(3, 1, 2, 0)
    assert leader.high_watermark == 0
