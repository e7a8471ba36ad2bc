"""DescribeQuorum names a voter as the set of voters does: with a directory id where that has one."""

from dataclasses import replace

import pytest

from kavka_broker.protocol.uuids import ZERO
from tests.unit.raft.world import World, directory_of, voter


@pytest.mark.parametrize("is_static", [False, True])
def test_voters_that_are_configured_have_no_directory_id(is_static: bool) -> None:
    """As Apache Kafka answers with `controller.quorum.voters`, whatever directory ids its voters fetch with."""
    world = World()
    voters = [voter(node_id) for node_id in (1, 2, 3)]
    named = [replace(one, directory_id=ZERO) for one in voters] if is_static else voters
    for one in voters:
        world.add(one.node_id, named)
    world.add(4, named)
    for process in world.processes.values():
        process.start()
    world.run(5_000)
    leader = world.leader()
    assert leader is not None
    assert leader.node is not None
    told, observers = leader.node.replicas(world.now_ms)
    assert [(replica.node_id, replica.directory_id) for replica in told] == [
        (one.node_id, one.directory_id) for one in named
    ]
    assert {replica.end_offset for replica in told} == {leader.log.end_offset}, "they have fetched"
    assert [(replica.node_id, replica.directory_id) for replica in observers] == [(4, directory_of(4))]
