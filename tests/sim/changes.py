"""Somebody who changes the cluster while it works: topics come and go, leaders and replicas move, configs change.

Whether a change is taken is of no consequence; what it may never do is to lose a record or to leave the cluster unable
to settle. Which changes a seed makes, and how often, it draws.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kavka_broker.core.metadata.decide.features import Direction
from kavka_broker.core.metadata.image.features import METADATA_VERSION, TRANSACTION_VERSION
from kavka_broker.core.raft.voters import Voter
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka_broker.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from kavka_broker.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kavka_broker.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from kavka_broker.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kavka_broker.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.sim.clients import Client
from tests.sim.history import Place
from tests.sim.node import CLUSTER_ID

PREFERRED: Final = 0
TOPIC_RESOURCE: Final = 2
SET: Final = 0
SPARE_TOPICS: Final = 4


class Changer(Client):
    """Makes changes until it is told to stop. `places` are the partitions that the clients use."""

    is_stopping = False
    kinds: tuple[str, ...] = ()
    node_ids: tuple[int, ...] = ()
    directories: tuple[str, ...] = ()
    controllers: tuple[Voter, ...] = ()
    replication_factor = 3
    places: tuple[Place, ...] = ()
    # Gives the id of a broker that is down and may be forgotten; None where there is none.
    gone: Callable[[], int | None] = staticmethod(lambda: None)
    # Whether a controller may lose its vote.
    may_remove_voter: Callable[[], bool] = staticmethod(lambda: True)
    # Whether min.insync.replicas may be 1.
    may_lower: Callable[[], bool] = staticmethod(lambda: False)

    async def run(self) -> None:
        pace = self.random.choice((0.3, 1.5, 4.0))
        while not self.is_stopping and self.kinds:
            await asyncio.sleep(self.random.expovariate(1 / pace))
            change = getattr(self, self.random.choice(self.kinds))()
            if change is not None:
                self.loop.trace(self.name, await self.ask_any(*change))

    def elect_preferred(self) -> tuple[Message, type[Message]]:
        topic, index = self.random.choice(self.places)
        return ElectLeadersRequest(PREFERRED, [TopicPartitions(topic, [index])], 1_000), ElectLeadersResponse

    def reassign(self) -> tuple[Message, type[Message]]:
        topic, index = self.random.choice(self.places)
        replicas = self.random.sample(self.node_ids, self.replication_factor)
        wanted = None if self.random.random() < 0.2 else replicas  # None: give up what is under way
        partition = ReassignablePartition(index, wanted)
        request = AlterPartitionReassignmentsRequest(1_000, topics=[ReassignableTopic(topic, [partition])])
        return request, AlterPartitionReassignmentsResponse

    def create_topic(self) -> tuple[Message, type[Message]]:
        name = f"spare{self.random.randrange(SPARE_TOPICS)}"
        return CreateTopicsRequest([CreatableTopic(name, 2, -1)], 1_000), CreateTopicsResponse

    def delete_topic(self) -> tuple[Message, type[Message]]:
        name = f"spare{self.random.randrange(SPARE_TOPICS)}"
        return DeleteTopicsRequest([DeleteTopicState(name)], [name], 1_000), DeleteTopicsResponse

    def alter_config(self) -> tuple[Message, type[Message]]:
        config = AlterableConfig("retention.bytes", SET, str(self.random.randrange(10**9, 10**10)))
        request = IncrementalAlterConfigsRequest(
            [AlterConfigsResource(TOPIC_RESOURCE, self.random.choice(self.places)[0], [config])]
        )
        return request, IncrementalAlterConfigsResponse

    def alter_min_isr(self) -> tuple[Message, type[Message]]:
        """Alter the bound of the main or a transient topic. A lower bound clears the eligible replicas (KIP-966), and
        these may be all that is known of records that the one in sync has lost with its power.
        """
        wanted = self.random.choice(("1", "2"))
        is_refused = wanted == "1" and not self.may_lower()
        return self._altered("min.insync.replicas", "2" if is_refused else wanted)

    def alter_flush(self) -> tuple[Message, type[Message]]:
        return self._altered("flush.ms", self.random.choice(("1", "1000", "9000000")))

    def alter_segments(self) -> tuple[Message, type[Message]]:
        return self._altered("segment.ms", self.random.choice(("300", "2000", "604800000")))

    def _altered(self, key: str, value: str) -> tuple[Message, type[Message]]:
        topic = self.random.choice((self.places[0][0], f"spare{self.random.randrange(SPARE_TOPICS)}"))
        resource = AlterConfigsResource(TOPIC_RESOURCE, topic, [AlterableConfig(key, SET, value)])
        return IncrementalAlterConfigsRequest([resource]), IncrementalAlterConfigsResponse

    def add_partitions(self) -> tuple[Message, type[Message]]:
        name = f"spare{self.random.randrange(SPARE_TOPICS)}"
        wanted = CreatePartitionsTopic(name, self.random.randint(3, 5), None)
        return CreatePartitionsRequest([wanted], 1_000), CreatePartitionsResponse

    def unregister(self) -> tuple[Message, type[Message]] | None:
        """Unregister a broker that is down; it comes back all the same."""
        broker_id = self.gone()
        return None if broker_id is None else (UnregisterBrokerRequest(broker_id), UnregisterBrokerResponse)

    def alter_transaction_version(self) -> tuple[Message, type[Message]]:
        return self._feature(TRANSACTION_VERSION, self.random.choice((0, 1, 2)))

    def alter_metadata_version(self) -> tuple[Message, type[Message]]:
        """Raise or lower the level among those of the former release that no record tells apart."""
        return self._feature(METADATA_VERSION, self.random.choice((23, 24, 25)))

    def _feature(self, name: str, level: int) -> tuple[Message, type[Message]]:
        """Where the direction that is drawn is the wrong one, the change is refused."""
        direction = self.random.choice((Direction.UPGRADE, Direction.SAFE_DOWNGRADE))
        update = FeatureUpdateKey(name, level, upgrade_type=direction)
        return UpdateFeaturesRequest(1_000, [update]), UpdateFeaturesResponse

    def move_replica(self) -> tuple[Message, type[Message]]:
        """Move a replica to another directory of the node that is asked."""
        topic, index = self.random.choice(self.places)
        moved = AlterReplicaLogDir(self.random.choice(self.directories), [AlterReplicaLogDirTopic(topic, [index])])
        return AlterReplicaLogDirsRequest([moved]), AlterReplicaLogDirsResponse

    def add_voter(self) -> tuple[Message, type[Message]]:
        controller = self.random.choice(self.controllers)
        listeners = [Listener(*endpoint) for endpoint in controller.endpoints]
        request = AddRaftVoterRequest(CLUSTER_ID, 1_000, controller.node_id, controller.directory_id, listeners)
        return request, AddRaftVoterResponse

    def remove_voter(self) -> tuple[Message, type[Message]] | None:
        controller = self.random.choice(self.controllers)
        if not self.may_remove_voter():
            return None
        return RemoveRaftVoterRequest(CLUSTER_ID, controller.node_id, controller.directory_id), RemoveRaftVoterResponse


#: Of a quorum whose voters are in its log.
OF_VOTERS: Final = ("add_voter", "add_voter", "remove_voter")
KINDS: Final = ("elect_preferred", "reassign", "create_topic", "delete_topic", "alter_config", "move_replica")
#: Of feature levels: of a cluster with nodes of two releases.
OF_FEATURES: Final = ("alter_transaction_version", "alter_transaction_version", "alter_metadata_version")
#: These came later; each has a chance of its own.
LATER: Final = ("alter_min_isr", "alter_flush", "alter_segments", "add_partitions", "unregister")
