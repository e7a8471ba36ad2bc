"""Somebody who moves things while others break: leaders, replicas between log directories, votes of controllers.

Whether a change is taken is of no consequence; it may not lose a record, nor leave the cluster unable to settle. At the
end every controller has its vote again.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.uuids import from_text
from tests.chaos.nodes import CLUSTER_ID, Cluster, directory_id
from tests.sim.history import Place
from tests.support.asking import ask

PAUSE_SECONDS: Final = (1.0, 6.0)
ANSWER_SECONDS_MAX: Final = 10.0
VOTES_SECONDS_MAX: Final = 120.0
PREFERRED: Final = 0


class Mover:
    """Works in a thread of its own until `finish`. `done` counts what the cluster took, by name."""

    def __init__(self, cluster: Cluster, places: Sequence[Place], chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._cluster = cluster
        self._places = places
        self._chance = chance
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mover", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Make no more changes."""
        self._is_stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def finish(self) -> None:
        """Stop, and give back the vote that a controller lacks. Raises AssertionError where that is not possible."""
        self.stop()
        deadline = time.monotonic() + VOTES_SECONDS_MAX
        while self._cluster.without_vote is not None:
            self._try(self.move_a_vote)
            if time.monotonic() > deadline:
                raise AssertionError(f"node {self._cluster.without_vote.node_id} does not get its vote back")
            time.sleep(1.0)

    def _run(self) -> None:
        while not self._is_stopping.wait(self._chance.uniform(*PAUSE_SECONDS)):
            self._try(self._chance.choice((self.move_a_replica, self.move_a_replica, self.elect, self.move_a_vote)))

    def _try(self, move: "Move") -> None:
        try:
            if move() is ErrorCode.NONE:
                self.done[move.__name__] += 1
        except OSError:
            return  # no broker answers there now

    def move_a_replica(self) -> ErrorCode:
        """Into whichever log directory of its node."""
        node, (topic, index) = self._chance.choice(self._cluster.nodes), self._chance.choice(self._places)
        target = str(self._chance.choice(node.disks).data)
        moved = AlterReplicaLogDir(target, [AlterReplicaLogDirTopic(topic, [index])])
        answer = ask(
            node.address, AlterReplicaLogDirsRequest([moved]), AlterReplicaLogDirsResponse, None, ANSWER_SECONDS_MAX
        )
        return ErrorCode(answer.results[0].partitions[0].error_code)

    def elect(self) -> ErrorCode:
        """The preferred leader of a partition."""
        node, (topic, index) = self._chance.choice(self._cluster.nodes), self._chance.choice(self._places)
        request = ElectLeadersRequest(PREFERRED, [TopicPartitions(topic, [index])], 5_000)
        answer = ask(node.address, request, ElectLeadersResponse, None, ANSWER_SECONDS_MAX)
        return ErrorCode(answer.error_code)

    def move_a_vote(self) -> ErrorCode:
        """Take one controller's vote, or give it back to the one that lacks it."""
        with self._cluster.voting:
            return self._move_a_vote()

    def _move_a_vote(self) -> ErrorCode:
        cluster = self._cluster
        asked = self._chance.choice(cluster.nodes)
        node = cluster.without_vote or self._chance.choice(cluster.nodes)
        own_id = from_text(directory_id(node.node_id))
        if cluster.without_vote is None and cluster.are_votes_kept:
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        if cluster.without_vote is None:
            cluster.without_vote = node  # or no node knows: to add one that votes is refused with these words
            removal = RemoveRaftVoterRequest(CLUSTER_ID, node.node_id, own_id)
            code = ask(asked.address, removal, RemoveRaftVoterResponse, None, ANSWER_SECONDS_MAX).error_code
            return ErrorCode(code)
        listeners = [Listener("CONTROLLER", *cluster.network.controller_address(node.node_id))]
        addition = AddRaftVoterRequest(CLUSTER_ID, 5_000, node.node_id, own_id, listeners)
        code = ErrorCode(ask(asked.address, addition, AddRaftVoterResponse, None, ANSWER_SECONDS_MAX).error_code)
        if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER}:
            cluster.without_vote = None
        return code


class Move(Protocol):
    """A change that `Mover` makes; what the cluster says to it. Raises OSError."""

    __name__: str

    def __call__(self) -> ErrorCode: ...
