"""Which gate stands before which API: what Apache Kafka's brokers and controllers ask of their authorizer.

An API of None is open to every client that is connected: what it tells is about the client itself, or is needed before
the client has a principal. An API that is not in this table cannot be served with an authorizer.
"""

from collections.abc import Mapping
from typing import Final

from kavka_broker.core.authorization.acl_types import Operation
from kavka_broker.core.authorization.authorizer import Authorizer
from kavka_broker.dispatch.access import (
    clusters,
    configs,
    groups,
    records,
    share_groups,
    streams_groups,
    tokens,
    topics,
    transactions,
)
from kavka_broker.dispatch.access.gates import Gate, OnCluster, guarded
from kavka_broker.request.registry import Api

_ALTER: Final = OnCluster(Operation.ALTER)
_DESCRIBE: Final = OnCluster(Operation.DESCRIBE)
_DESCRIBE_CONFIGS: Final = OnCluster(Operation.DESCRIBE_CONFIGS)
_OF_NODES: Final = OnCluster(Operation.CLUSTER_ACTION)
_SHARE_STATE: Final = OnCluster(Operation.CLUSTER_ACTION, clusters.no_share_states)

GATES: Final[Mapping[int, Gate | None]] = {
    0: records.produce,
    1: records.fetch,
    2: topics.LIST_OFFSETS,
    3: topics.metadata,
    8: groups.commit_offsets,
    9: groups.fetch_offsets,
    10: groups.find_coordinator,
    11: groups.READ_GROUP,  # JoinGroup
    12: groups.READ_GROUP,  # Heartbeat
    13: groups.READ_GROUP,  # LeaveGroup
    14: groups.READ_GROUP,  # SyncGroup
    15: groups.describe_groups,
    16: groups.list_groups,
    17: None,  # SaslHandshake
    18: None,  # ApiVersions
    19: topics.create_topics,
    20: topics.delete_topics,
    21: topics.DELETE_RECORDS,
    22: records.init_producer_id,
    23: topics.OFFSET_FOR_LEADER_EPOCH,
    24: transactions.add_partitions,
    25: transactions.add_offsets,
    26: transactions.end,
    27: clusters.write_markers,
    28: transactions.commit_offsets,
    29: _DESCRIBE,  # DescribeAcls
    30: OnCluster(Operation.ALTER, clusters.no_rules),  # CreateAcls
    31: OnCluster(Operation.ALTER, clusters.no_deletions),  # DeleteAcls
    32: configs.DESCRIBE_CONFIGS,
    33: configs.ALTER_CONFIGS,
    34: OnCluster(Operation.ALTER, clusters.no_moves),  # AlterReplicaLogDirs
    35: _DESCRIBE,  # DescribeLogDirs
    36: None,  # SaslAuthenticate
    37: topics.CREATE_PARTITIONS,
    38: tokens.create,
    39: None,  # RenewDelegationToken: by its owner and its renewers
    40: None,  # ExpireDelegationToken: likewise
    41: tokens.describe,
    42: groups.DELETE_GROUPS,
    43: OnCluster(Operation.ALTER, clusters.no_elections),
    44: configs.INCREMENTAL_ALTER_CONFIGS,
    45: OnCluster(Operation.ALTER, clusters.no_reassignments),
    46: _DESCRIBE,  # ListPartitionReassignments
    47: groups.delete_offsets,
    48: OnCluster(Operation.DESCRIBE_CONFIGS, clusters.no_quotas),
    49: OnCluster(Operation.ALTER_CONFIGS, clusters.no_alterations),
    50: OnCluster(Operation.DESCRIBE, clusters.no_descriptions),  # DescribeUserScramCredentials
    51: OnCluster(Operation.ALTER, clusters.no_credentials),  # AlterUserScramCredentials
    52: _OF_NODES,  # Vote
    53: _OF_NODES,  # BeginQuorumEpoch
    54: _OF_NODES,  # EndQuorumEpoch
    55: _DESCRIBE,  # DescribeQuorum
    56: _OF_NODES,  # AlterPartition
    57: OnCluster(Operation.ALTER, clusters.no_updates),  # UpdateFeatures
    58: _OF_NODES,  # Envelope
    59: _OF_NODES,  # FetchSnapshot
    60: clusters.describe_cluster,
    61: topics.DESCRIBE_PRODUCERS,
    62: _OF_NODES,  # BrokerRegistration
    63: _OF_NODES,  # BrokerHeartbeat
    64: _ALTER,  # UnregisterBroker
    65: transactions.describe,
    66: transactions.list_all,
    67: _OF_NODES,  # AllocateProducerIds
    68: groups.hear_consumer,
    69: groups.describe_consumer_groups,
    70: _OF_NODES,  # ControllerRegistration
    71: None,  # GetTelemetrySubscriptions
    72: None,  # PushTelemetry
    73: _OF_NODES,  # AssignReplicasToDirs
    74: _DESCRIBE_CONFIGS,  # ListConfigResources
    75: topics.describe_partitions,
    76: groups.hear_consumer,  # ShareGroupHeartbeat
    77: share_groups.describe,
    78: groups.read_shares,  # ShareFetch
    79: groups.read_shares,  # ShareAcknowledge
    80: _ALTER,  # AddRaftVoter
    81: _ALTER,  # RemoveRaftVoter
    82: _OF_NODES,  # UpdateRaftVoter
    83: _SHARE_STATE,  # InitializeShareGroupState
    84: _SHARE_STATE,  # ReadShareGroupState
    85: _SHARE_STATE,  # WriteShareGroupState
    86: _SHARE_STATE,  # DeleteShareGroupState
    87: _SHARE_STATE,  # ReadShareGroupStateSummary
    88: streams_groups.hear,
    89: streams_groups.describe,
    90: share_groups.describe_offsets,
    91: share_groups.alter_offsets,
    92: share_groups.delete_offsets,
}


def guard(apis: Mapping[int, Api], authorizer: Authorizer | None) -> Mapping[int, Api]:
    """Return the APIs, each behind its gate; as they are where there is no authorizer."""
    if authorizer is None:
        return apis
    return {key: guarded(api, GATES[key], authorizer) for key, api in apis.items()}
