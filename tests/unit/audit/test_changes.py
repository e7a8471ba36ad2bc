"""What an administrator's request has changed: what its answer grants, with what was there before, and no secret."""

import json
from typing import Any

import pytest

from kavka_broker.core.audit.changes import CHANGES, EXPIRY, HIDDEN, Before, Change, is_hidden
from kavka_broker.core.audit.events import Tally, Window
from kavka_broker.core.audit.ocsf import event_of
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.protocol.messages import (
    add_raft_voter_request,
    alter_client_quotas_request,
    alter_client_quotas_response,
    alter_configs_request,
    alter_configs_response,
    alter_partition_reassignments_request,
    alter_partition_reassignments_response,
    alter_replica_log_dirs_request,
    alter_replica_log_dirs_response,
    alter_share_group_offsets_request,
    alter_share_group_offsets_response,
    alter_user_scram_credentials_request,
    alter_user_scram_credentials_response,
    create_acls_request,
    create_acls_response,
    create_partitions_request,
    create_partitions_response,
    create_topics_request,
    create_topics_response,
    delete_acls_request,
    delete_acls_response,
    delete_groups_request,
    delete_groups_response,
    delete_records_request,
    delete_records_response,
    delete_share_group_offsets_request,
    delete_share_group_offsets_response,
    delete_topics_request,
    delete_topics_response,
    elect_leaders_request,
    elect_leaders_response,
    incremental_alter_configs_request,
    incremental_alter_configs_response,
    offset_delete_request,
    offset_delete_response,
    update_features_request,
)
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kavka_broker.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kavka_broker.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kavka_broker.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kavka_broker.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kavka_broker.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kavka_broker.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from kavka_broker.protocol.messages.update_features_response import UpdateFeaturesResponse

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
RULE = (2, "orders", 3, "User:alice", "*", 3, 3)
RULE_TEXT = "ALLOW User:alice from * READ topic LITERAL orders"


def creation(code: int = 0, *, only_validated: bool = False) -> tuple[Any, Any]:
    request = create_topics_request.CreateTopicsRequest(
        [create_topics_request.CreatableTopic("t", 3, 1)], validate_only=only_validated
    )
    return request, create_topics_response.CreateTopicsResponse(
        topics=[create_topics_response.CreatableTopicResult("t", error_code=code)]
    )


def alteration(kind: int, name: str, *configs: tuple[str, int, str | None], code: int = 0) -> tuple[Any, Any]:
    asked = [incremental_alter_configs_request.AlterableConfig(*config) for config in configs]
    request = incremental_alter_configs_request.IncrementalAlterConfigsRequest(
        [incremental_alter_configs_request.AlterConfigsResource(kind, name, asked)]
    )
    answer = incremental_alter_configs_response.AlterConfigsResourceResponse(code, None, kind, name)
    return request, incremental_alter_configs_response.IncrementalAlterConfigsResponse(responses=[answer])


def replacement(**configs: str) -> tuple[Any, Any]:
    asked = [alter_configs_request.AlterableConfig(name.replace("_", "."), value) for name, value in configs.items()]
    request = alter_configs_request.AlterConfigsRequest([alter_configs_request.AlterConfigsResource(TOPIC, "t", asked)])
    answer = alter_configs_response.AlterConfigsResourceResponse(0, None, TOPIC, "t")
    return request, alter_configs_response.AlterConfigsResponse(responses=[answer])


def quota(code: int, *limits: tuple[str, float, bool]) -> tuple[Any, Any]:
    entity = [
        alter_client_quotas_request.EntityData("user", "alice"),
        alter_client_quotas_request.EntityData("client-id", None),
    ]
    request = alter_client_quotas_request.AlterClientQuotasRequest(
        [
            alter_client_quotas_request.EntryData(
                entity, [alter_client_quotas_request.OpData(*limit) for limit in limits]
            )
        ]
    )
    answered = [
        alter_client_quotas_response.EntityData("client-id", None),
        alter_client_quotas_response.EntityData("user", "alice"),
    ]
    return request, alter_client_quotas_response.AlterClientQuotasResponse(
        entries=[alter_client_quotas_response.EntryData(code, None, answered)]
    )


def move(code: int, replicas: list[int] | None) -> tuple[Any, Any]:
    topic = alter_partition_reassignments_request.ReassignableTopic(
        "t", [alter_partition_reassignments_request.ReassignablePartition(1, replicas)]
    )
    part = alter_partition_reassignments_response.ReassignablePartitionResponse(1, code, None)
    answer = alter_partition_reassignments_response.ReassignableTopicResponse("t", [part])
    return alter_partition_reassignments_request.AlterPartitionReassignmentsRequest(
        topics=[topic]
    ), alter_partition_reassignments_response.AlterPartitionReassignmentsResponse(responses=[answer])


def user(code: int = 0) -> tuple[Any, Any]:
    given = alter_user_scram_credentials_request.ScramCredentialUpsertion("alice", 2, 4096, b"salt", b"salted")
    taken = alter_user_scram_credentials_request.ScramCredentialDeletion("alice", 1)
    result = alter_user_scram_credentials_response.AlterUserScramCredentialsResult("alice", code)
    return alter_user_scram_credentials_request.AlterUserScramCredentialsRequest(
        [taken], [given]
    ), alter_user_scram_credentials_response.AlterUserScramCredentialsResponse(results=[result])


def cut() -> tuple[Any, Any]:
    parts = [
        delete_records_response.DeleteRecordsPartitionResult(0, 5, 0),
        delete_records_response.DeleteRecordsPartitionResult(1, -1, 1),
    ]
    answer = delete_records_response.DeleteRecordsTopicResult("t", parts)
    return delete_records_request.DeleteRecordsRequest(), delete_records_response.DeleteRecordsResponse(topics=[answer])


def moved_logs() -> tuple[Any, Any]:
    topic = alter_replica_log_dirs_request.AlterReplicaLogDirTopic("t", [0, 1])
    asked = alter_replica_log_dirs_request.AlterReplicaLogDir("/more", [topic])
    parts = [
        alter_replica_log_dirs_response.AlterReplicaLogDirPartitionResult(index, code)
        for index, code in ((0, 0), (1, 57))
    ]
    answer = alter_replica_log_dirs_response.AlterReplicaLogDirTopicResult("t", parts)
    return alter_replica_log_dirs_request.AlterReplicaLogDirsRequest(
        [asked]
    ), alter_replica_log_dirs_response.AlterReplicaLogDirsResponse(results=[answer])


def election(kind: int, code: int = 0) -> tuple[Any, Any]:
    parts = [
        elect_leaders_response.PartitionResult(0, 0, None),
        elect_leaders_response.PartitionResult(1, 84, None),
    ]
    answer = elect_leaders_response.ReplicaElectionResult("t", parts)
    return elect_leaders_request.ElectLeadersRequest(kind), elect_leaders_response.ElectLeadersResponse(
        0, code, [answer]
    )


def forgotten(code: int = 0) -> tuple[Any, Any]:
    parts = [offset_delete_response.OffsetDeleteResponsePartition(0, 0)]
    parts.append(offset_delete_response.OffsetDeleteResponsePartition(1, 86))
    answer = offset_delete_response.OffsetDeleteResponseTopic("t", parts)
    return offset_delete_request.OffsetDeleteRequest("g"), offset_delete_response.OffsetDeleteResponse(
        code, topics=[answer]
    )


def altered_shares(code: int = 0) -> tuple[Any, Any]:
    asked, told = alter_share_group_offsets_request, alter_share_group_offsets_response
    wanted = [asked.AlterShareGroupOffsetsRequestPartition(index, 5) for index in range(2)]
    parts = [told.AlterShareGroupOffsetsResponsePartition(0), told.AlterShareGroupOffsetsResponsePartition(1, 3)]
    request = asked.AlterShareGroupOffsetsRequest("g", [asked.AlterShareGroupOffsetsRequestTopic("t", wanted)])
    answer = told.AlterShareGroupOffsetsResponseTopic("t", partitions=parts)
    return request, told.AlterShareGroupOffsetsResponse(0, code, None, [answer])


def forgotten_shares(code: int = 0) -> tuple[Any, Any]:
    told = delete_share_group_offsets_response
    topics = [told.DeleteShareGroupOffsetsResponseTopic("t"), told.DeleteShareGroupOffsetsResponseTopic("u", b"", 3)]
    request = delete_share_group_offsets_request.DeleteShareGroupOffsetsRequest("g")
    return request, told.DeleteShareGroupOffsetsResponse(0, code, None, topics)


GROUPS = [delete_groups_response.DeletableGroupResult("g"), delete_groups_response.DeletableGroupResult("h", 68)]
#: By API key: a request with its answer, and the changes that are told.
GROWN = create_partitions_request.CreatePartitionsRequest([create_partitions_request.CreatePartitionsTopic("t", 6)])
RULES = create_acls_request.CreateAclsRequest(
    [create_acls_request.AclCreation(*RULE), create_acls_request.AclCreation(*RULE)]
)
FOUND = delete_acls_response.DeleteAclsMatchingAcl(0, None, *RULE)
CASES: dict[int, tuple[tuple[Any, Any], list[Change]]] = {
    19: (creation(), [Change("CREATE", "topic", "t")]),
    20: (
        (
            delete_topics_request.DeleteTopicsRequest(),
            delete_topics_response.DeleteTopicsResponse(responses=[delete_topics_response.DeletableTopicResult("t")]),
        ),
        [Change("DELETE", "topic", "t")],
    ),
    21: (cut(), [Change("DELETE", "topic", "t", "start of partition 0", "5")]),
    34: (moved_logs(), [Change("ALTER", "topic", "t", "directory of partition 0", "/more")]),
    42: (
        (delete_groups_request.DeleteGroupsRequest(), delete_groups_response.DeleteGroupsResponse(results=GROUPS)),
        [Change("DELETE", "group", "g")],
    ),
    43: (election(1), [Change("ALTER", "topic", "t", "leader of partition 0", "unclean")]),
    47: (forgotten(), [Change("DELETE", "group", "g", "offset of t-0")]),
    91: (altered_shares(), [Change("ALTER", "group", "g", "offset of t-0", "5")]),
    92: (forgotten_shares(), [Change("DELETE", "group", "g", "offsets of t")]),
    30: (
        (
            RULES,
            create_acls_response.CreateAclsResponse(
                results=[create_acls_response.AclCreationResult(), create_acls_response.AclCreationResult(7)]
            ),
        ),
        [Change("CREATE", "acl", RULE_TEXT)],
    ),
    31: (
        (
            delete_acls_request.DeleteAclsRequest(),
            delete_acls_response.DeleteAclsResponse(
                filter_results=[delete_acls_response.DeleteAclsFilterResult(matching_acls=[FOUND])]
            ),
        ),
        [Change("DELETE", "acl", RULE_TEXT)],
    ),
    37: (
        (
            GROWN,
            create_partitions_response.CreatePartitionsResponse(
                results=[create_partitions_response.CreatePartitionsTopicResult("t")]
            ),
        ),
        [Change("ALTER", "topic", "t", "partitions", "6")],
    ),
    45: (move(0, [1, 2]), [Change("ALTER", "topic", "t", "replicas of partition 1", "1,2")]),
    49: (
        quota(0, ("producer_byte_rate", 1024.0, False), ("request_percentage", 0.0, True)),
        [
            Change("ALTER_CONFIGS", "client_quota", "client-id=<default>,user=alice", "producer_byte_rate", "1024"),
            Change("ALTER_CONFIGS", "client_quota", "client-id=<default>,user=alice", "request_percentage"),
        ],
    ),
    51: (
        user(),
        [
            Change("ALTER", "user", "alice", "scram mechanism 2", HIDDEN),
            Change("ALTER", "user", "alice", "scram mechanism 1"),
        ],
    ),
    38: (
        (
            CreateDelegationTokenRequest(),
            CreateDelegationTokenResponse(0, "User", "alice", "User", "bob", 1, 2, 3, "id", b"secret"),
        ),
        [Change("CREATE", "delegation_token", "id", "owner", "User:alice")],
    ),
    39: (
        (RenewDelegationTokenRequest(b"secret", 5), RenewDelegationTokenResponse(0, 1234)),
        [Change("ALTER", "delegation_token", "id", EXPIRY, "1234", "1000")],
    ),
    40: (
        (ExpireDelegationTokenRequest(b"secret", -1), ExpireDelegationTokenResponse(0, 1234)),
        [Change("DELETE", "delegation_token", "id")],
    ),
    57: (
        (
            update_features_request.UpdateFeaturesRequest(
                feature_updates=[update_features_request.FeatureUpdateKey("kraft.version", 1)]
            ),
            UpdateFeaturesResponse(),
        ),
        [Change("ALTER", "feature", "kraft.version", "level", "1")],
    ),
    64: ((UnregisterBrokerRequest(7), UnregisterBrokerResponse()), [Change("DELETE", "broker", "7")]),
    80: (
        (add_raft_voter_request.AddRaftVoterRequest(None, 0, 8), AddRaftVoterResponse()),
        [Change("CREATE", "voter", "8")],
    ),
    81: ((RemoveRaftVoterRequest(None, 9), RemoveRaftVoterResponse()), [Change("DELETE", "voter", "9")]),
    44: (
        alteration(
            TOPIC, "t", ("retention.ms", 0, "5"), ("cleanup.policy", 2, "compact"), ("max.message.bytes", 1, None)
        ),
        [
            Change("ALTER_CONFIGS", "topic", "t", "retention.ms", "5", "1"),
            Change("ALTER_CONFIGS", "topic", "t", "cleanup.policy", "+compact"),
            Change("ALTER_CONFIGS", "topic", "t", "max.message.bytes"),
        ],
    ),
    33: (
        replacement(retention_ms="1", max_message_bytes="9"),
        [
            Change("ALTER_CONFIGS", "topic", "t", "max.message.bytes", "9"),
            Change("ALTER_CONFIGS", "topic", "t", "segment.bytes", None, "2000000"),
        ],
    ),
}
WAS: dict[int, Before] = {
    39: {Resource(0, "id"): {EXPIRY: "1000"}},
    40: {Resource(0, "id"): {EXPIRY: "1000"}},
    44: {Resource(TOPIC, "t"): {"retention.ms": "1"}},
    33: {Resource(TOPIC, "t"): {"retention.ms": "1", "segment.bytes": "2000000"}},
}


@pytest.mark.parametrize("key", CASES)
def test_what_was_granted_is_told_by_its_resource(key: int) -> None:
    (request, response), changes = CASES[key]
    assert list(CHANGES[key](request, response, WAS.get(key, {}))) == changes


def test_a_token_that_is_not_known_here_is_told_without_its_secret() -> None:
    (ended, of_end), (renewed, of_renewal) = CASES[40][0], CASES[39][0]
    assert list(CHANGES[40](ended, of_end, {})) == [Change("DELETE", "delegation_token", "(unknown)")]
    altered = Change("ALTER", "delegation_token", "(unknown)", EXPIRY, "1234")
    assert list(CHANGES[39](renewed, of_renewal, {})) == [altered]


def test_every_api_that_is_told_has_an_example() -> None:
    assert CASES.keys() == CHANGES.keys()


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        (19, creation(36)),
        (19, creation(only_validated=True)),
        (44, alteration(TOPIC, "t", ("retention.ms", 0, "5"), code=40)),
        (43, election(0, 41)),
        (45, move(35, [1])),
        (47, forgotten(16)),
        (49, quota(42, ("producer_byte_rate", 1.0, False))),
        (51, user(91)),
        (38, (CreateDelegationTokenRequest(), CreateDelegationTokenResponse(61, "User", "alice"))),
        (39, (RenewDelegationTokenRequest(b"secret", 5), RenewDelegationTokenResponse(62))),
        (40, (ExpireDelegationTokenRequest(b"secret", -1), ExpireDelegationTokenResponse(64, -1))),
        (64, (UnregisterBrokerRequest(7), UnregisterBrokerResponse(0, 41))),
        (80, (add_raft_voter_request.AddRaftVoterRequest(None, 0, 8), AddRaftVoterResponse(0, 41))),
    ],
)
def test_what_was_refused_or_only_validated_is_not_told(key: int, asked: tuple[Any, Any]) -> None:
    assert list(CHANGES[key](*asked, {})) == []


@pytest.mark.parametrize(
    ("kind", "key"), [(BROKER, "ssl.key.password"), (BROKER, "my.own.key"), (TOPIC, "my.own.key"), (99, "any")]
)
def test_a_value_that_may_be_a_secret_is_not_told(kind: int, key: str) -> None:
    assert is_hidden(kind, key)
    request, response = alteration(kind, "n", (key, 0, "s3cr3t"))
    was = {Resource(kind, "n"): {key: "older s3cr3t"}}
    (change,) = CHANGES[44](request, response, was)
    assert (change.value, change.previous) == (HIDDEN, HIDDEN)


def test_a_change_is_an_event_that_names_who_made_it() -> None:
    window = Window(5)
    window.changed("User:alice", "10.0.0.1", "tool", Change("ALTER_CONFIGS", "topic", "t", "retention.ms", "5", "1"))
    (tally,) = window.take(6)
    assert isinstance(tally, Tally)
    event = json.loads(event_of(tally, "1-7-0"))
    assert event["actor"] == {"user": {"name": "alice", "type": "User", "type_id": 1}, "app_name": "tool"}
    assert event["resources"] == [
        {"type": "topic", "name": "t", "data": {"key": "retention.ms", "value": "5", "previous": "1"}}
    ]
    assert (event["action_id"], event["status_id"], event["type_uid"]) == (1, 1, 600303)


def test_long_values_are_cut() -> None:
    window = Window(0)
    long = "x" * 10_000
    window.changed(long, "::1", long, Change("ALTER_CONFIGS", "topic", long, long, long, long))
    (tally,) = window.take(1)
    assert len(event_of(tally, "1-7-0")) < 13 * NAME_CHARACTERS_MAX
