"""Gates of the cluster as a whole, for APIs whose answers have no error at their top, or say more with it."""

from typing import Any

from kavka_broker.api.a43_elect_leaders import TOP_ERROR_FROM
from kavka_broker.coordinator.share.share_state_requests import ANSWERS
from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation
from kavka_broker.dispatch.access.gates import CLUSTER, Access, OnCluster, Outcome, then
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages import alter_client_quotas_response as quotas
from kavka_broker.protocol.messages import alter_partition_reassignments_response as reassignments
from kavka_broker.protocol.messages import alter_replica_log_dirs_response as directories
from kavka_broker.protocol.messages import elect_leaders_response as elections
from kavka_broker.protocol.messages import write_txn_markers_response as markers
from kavka_broker.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kavka_broker.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kavka_broker.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from kavka_broker.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kavka_broker.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kavka_broker.protocol.messages.update_features_response import UpdateFeaturesResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.metadata_answers import NOT_ASKED
from kavka_broker.request.registry import Api


def no_markers(request: Any, refusal: BrokerError, version: int) -> markers.WriteTxnMarkersResponse:
    del version
    return markers.WriteTxnMarkersResponse(
        [
            markers.WritableTxnMarkerResult(
                marker.producer_id,
                [
                    markers.WritableTxnMarkerTopicResult(
                        topic.name,
                        [
                            markers.WritableTxnMarkerPartitionResult(index, refusal.code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def no_share_states(request: Any, refusal: BrokerError, version: int) -> Any:
    del version
    answers = ANSWERS[type(request)]
    return answers.whole(
        [
            answers.topic(
                topic.topic_id,
                [answers.partition(asked.partition, refusal.code, refusal.message) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def no_rules(request: Any, refusal: BrokerError, version: int) -> CreateAclsResponse:
    del version
    return CreateAclsResponse(results=[AclCreationResult(refusal.code, refusal.message) for _ in request.creations])


def no_deletions(request: Any, refusal: BrokerError, version: int) -> DeleteAclsResponse:
    del version
    results = [DeleteAclsFilterResult(refusal.code, refusal.message) for _ in request.filters]
    return DeleteAclsResponse(filter_results=results)


def no_moves(request: Any, refusal: BrokerError, version: int) -> directories.AlterReplicaLogDirsResponse:
    del version
    topics: dict[str, list[directories.AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, []).extend(
                directories.AlterReplicaLogDirPartitionResult(index, refusal.code) for index in topic.partitions
            )
    return directories.AlterReplicaLogDirsResponse(
        results=[directories.AlterReplicaLogDirTopicResult(name, results) for name, results in topics.items()]
    )


def no_elections(request: Any, refusal: BrokerError, version: int) -> elections.ElectLeadersResponse:
    results = [
        elections.ReplicaElectionResult(
            topic.topic,
            [elections.PartitionResult(index, refusal.code, refusal.message) for index in topic.partitions],
        )
        for topic in request.topic_partitions or ()
    ]
    return elections.ElectLeadersResponse(0, refusal.code if version >= TOP_ERROR_FROM else 0, results)


def no_reassignments(
    request: Any, refusal: BrokerError, version: int
) -> reassignments.AlterPartitionReassignmentsResponse:
    del version
    responses = [
        reassignments.ReassignableTopicResponse(
            topic.name,
            [
                reassignments.ReassignablePartitionResponse(asked.partition_index, refusal.code, refusal.message)
                for asked in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return reassignments.AlterPartitionReassignmentsResponse(
        error_code=refusal.code, error_message=refusal.message, responses=responses
    )


def no_quotas(request: Any, refusal: BrokerError, version: int) -> DescribeClientQuotasResponse:
    del request, version
    return DescribeClientQuotasResponse(0, refusal.code, refusal.message, None)


def no_alterations(request: Any, refusal: BrokerError, version: int) -> quotas.AlterClientQuotasResponse:
    del version
    entries = [
        quotas.EntryData(
            refusal.code,
            refusal.message,
            [quotas.EntityData(part.entity_type, part.entity_name) for part in entry.entity],
        )
        for entry in request.entries
    ]
    return quotas.AlterClientQuotasResponse(entries=entries)


def no_credentials(request: Any, refusal: BrokerError, version: int) -> AlterUserScramCredentialsResponse:
    del version
    names = dict.fromkeys([change.name for change in (*request.deletions, *request.upsertions)])
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(name, refusal.code, refusal.message) for name in names]
    )


def no_descriptions(request: Any, refusal: BrokerError, version: int) -> DescribeUserScramCredentialsResponse:
    del version
    results = [
        DescribeUserScramCredentialsResult(user.name, refusal.code, refusal.message) for user in request.users or ()
    ]
    return DescribeUserScramCredentialsResponse(error_code=refusal.code, error_message=refusal.message, results=results)


def no_updates(request: Any, refusal: BrokerError, version: int) -> UpdateFeaturesResponse:
    del request, version
    return UpdateFeaturesResponse(error_code=refusal.code, error_message=refusal.message)


def write_markers(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Let a coordinator write them, and an administrator who ends a hanging transaction."""
    operation = Operation.ALTER if access.may_cluster(Operation.ALTER) else Operation.CLUSTER_ACTION
    return OnCluster(operation, no_markers)(request, api, broker, client, access)


def describe_cluster(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Show brokers to everybody, and controllers to those that may ALTER the cluster; operations as they are."""
    if client.role == "controller" and not access.may_cluster(Operation.ALTER):
        raise access.refusal(Operation.ALTER, CLUSTER, CLUSTER_NAME)
    return then(api.handle(request, broker, client), lambda answer: show_operations(answer, access))


def show_operations(answer: Any, access: Access) -> None:
    """Put the client's operations on the cluster where a handler has put all; none without DESCRIBE."""
    if answer.cluster_authorized_operations == NOT_ASKED:
        return
    is_shown = access.may_cluster(Operation.DESCRIBE)
    answer.cluster_authorized_operations = access.operations(CLUSTER, CLUSTER_NAME) if is_shown else 0
