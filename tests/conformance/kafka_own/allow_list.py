"""Which of Apache Kafka's own tests pass on Kavka and on Apache Kafka, and why others are outside.

The list only grows: `passes` is exact, so a case that begins to pass, or stops, fails the run. A class enters it when
Apache Kafka has passed it through the same runner. Every class of the jars that is written for ClusterTest is here, in
`ABSENT` or in `not_played.py`, as a test sees.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final


@dataclass(frozen=True, slots=True)
class OwnTests:
    """A class of tests: how many cases pass, and why others are left out, by how METHOD SHOWN-NAME begins."""

    name: str
    passes: int
    outside: Mapping[str, str] = field(default_factory=dict)


CLIENTS: Final = "org.apache.kafka.clients"
TOOLS: Final = "org.apache.kafka.tools"
TIERED: Final = "org.apache.kafka.server.log.remote.metadata.storage"
NEW: Final = "metadata.version before 3.9, with which Kavka does not start"
OWN_KEYS: Final = "looks each config up among Apache Kafka's keys, and Kavka has keys of its own"
UNSTABLE: Final = (
    "wants unstable versions, which the stand-in does not switch on: metadata.version 4.4-IV0, InitProducerId 6"
)
UNANSWERED: Final = "wants two keys of controllers that Apache Kafka's controllers name and do not answer"
HASHED: Final = "compares lists in the order of Apache Kafka's hash tables"
FIRST_TARGET: Final = "wants epoch 3; Kavka is in 4 by choice: a target that assigns nothing starts no interval"
A_JAVA_CLASS: Final = "has the broker load a class of Java"
OF_JMX: Final = "reads metrics of the broker in the same JVM"
NO_TIERS: Final = "tiered storage, which Kavka refuses"
FIRST_RECORD: Final = "reads a record that Apache Kafka writes as a classic group begins; Kavka has no need of it"
UNUSED: Final = "wants internal topics that nobody has used; the stand-in goes on with a cluster"
STORES: Final = "alters a key store of a listener, which Kavka reads when it starts"
A_TEXT: Final = "compares the text of an error"
NEWER: Final = "wants 4 for the newest version of ApiVersions; Kavka serves 5, of Apache Kafka 4.4"
OF_CONNECTIONS: Final = "reads a limit of connections in the broker's socket server"

STORIES: Final[Mapping[str, tuple[OwnTests, ...]]] = {
    # In every run: short ones, and those that have found defects.
    "sample": (
        OwnTests(f"{CLIENTS}.admin.AdminFenceProducersTest", 3),
        OwnTests("kafka.server.WriteTxnMarkersRequestTest", 2),
        OwnTests(
            "kafka.server.ConsumerGroupDescribeRequestTest",
            3,
            {"testConsumerGroupDescribeWithNewGroupCoordinator ": HASHED},
        ),
        OwnTests(f"{CLIENTS}.admin.AutoTopicCreationTest", 4),
    ),
    "transactions": (
        OwnTests("kafka.server.TxnOffsetCommitRequestTest", 4),
        OwnTests(f"{CLIENTS}.TransactionsExpirationTest", 4),
        OwnTests(f"{CLIENTS}.TransactionsWithMaxInFlightOneTest", 1),
    ),
    "producers": (
        OwnTests(
            f"{CLIENTS}.producer.ProducerIdExpirationTest",
            2,
            {"testDynamicProducerIdExpirationMs ": "reads a setting in the broker's log manager"},
        ),
        OwnTests(f"{CLIENTS}.producer.ProducerCompressionTest", 1),
        OwnTests(f"{CLIENTS}.producer.ProducerIntegrationTest", 9, {r"testUniqueProducerIds .*Version=3\.3": NEW}),
    ),
    "administration": (
        OwnTests(f"{CLIENTS}.admin.ClientTelemetryTest", 2, {"testClientInstanceId ": A_JAVA_CLASS}),
        OwnTests(f"{CLIENTS}.admin.ConcurrentListOffsetsRequestTest", 1),
        OwnTests(f"{CLIENTS}.admin.DescribeAuthorizedOperationsTest", 3),
        OwnTests(f"{CLIENTS}.admin.DescribeProducersWithBrokerIdTest", 3),
        OwnTests(f"{CLIENTS}.admin.DynamicGroupConfigIntegrationTest", 3),
        OwnTests(f"{CLIENTS}.admin.DescribeFeaturesTest", 1, {"testUnstableApiVersions ": NEW}),
        OwnTests(f"{CLIENTS}.admin.RackAwareAutoTopicCreationTest", 1),
        OwnTests(f"{CLIENTS}.admin.StaticBrokerConfigTest", 2, {"testInternalConfigsDoNotReturn": OWN_KEYS}),
        OwnTests(
            "kafka.server.ApiVersionsRequestTest",
            1,
            {
                "testApiVersionsRequestWithUnsupportedVersion ": NEWER,
                "testApiVersionsRequest ": UNSTABLE,
                "testApiVersionsRequestIncludesUnreleasedApis ": UNSTABLE,
                "testApiVersionsRequestThroughControllerListener ": UNSTABLE,
                "testApiVersionsRequestValidationV0 ": NEW,
                "testApiVersionsRequestValidationV0ThroughControllerListener ": UNANSWERED,
            },
        ),
        OwnTests("kafka.server.DescribeQuorumRequestTest", 1),
        OwnTests("org.apache.kafka.server.log.LogAppendTimeTest", 2),
        OwnTests(
            "org.apache.kafka.server.quota.ClientQuotasRequestTest", 11, {"testAlterIpQuotasRequest ": OF_CONNECTIONS}
        ),
        OwnTests(
            "kafka.server.SaslApiVersionsRequestTest",
            1,
            {
                "testApiVersionsRequestWithUnsupportedVersion ": UNSTABLE,
                "testApiVersionsRequestBeforeSaslHandshakeRequest ": UNSTABLE,
            },
        ),
    ),
    "consumers": (
        OwnTests(f"{CLIENTS}.consumer.PlaintextConsumerAssignTest", 18),
        OwnTests(f"{CLIENTS}.consumer.PlaintextConsumerCommitTest", 25),
        OwnTests(f"{CLIENTS}.consumer.PlaintextConsumerFetchTest", 18),
    ),
    "plain consumers": (
        OwnTests(
            f"{CLIENTS}.consumer.PlaintextConsumerTest",
            76,
            {
                "testClassicConsumerQuotaMetricsNotCreatedIfNoQuotasConfigured ": OF_JMX,
                "testAsyncConsumerQuotaMetricsNotCreatedIfNoQuotasConfigured ": OF_JMX,
                "testAsyncConsumerCloseLeavesGroupOnInterrupt ": "failed in one of two runs; the cause is unknown",
            },
        ),
    ),
    "consumers in groups": (
        OwnTests(f"{CLIENTS}.consumer.ConsumerTopicCreationTest", 8),
        OwnTests(f"{CLIENTS}.consumer.PlaintextConsumerCallbackTest", 19),
        OwnTests(f"{CLIENTS}.consumer.PlaintextConsumerCloseTest", 4),
        OwnTests(f"{CLIENTS}.consumer.PlaintextConsumerPollTest", 24),
        OwnTests(f"{CLIENTS}.consumer.PlaintextConsumerSubscriptionTest", 31),
    ),
    "metadata": (
        OwnTests(
            "org.apache.kafka.server.BootstrapControllersIntegrationTest",
            14,
            {
                "testDescribeFeatures": UNSTABLE,
                "testIncrementalAlterConfigs": OF_CONNECTIONS,
            },
        ),
        OwnTests("org.apache.kafka.server.MetadataRequestTest", 14),
    ),
    "groups": (
        OwnTests("kafka.server.JoinGroupRequestTest", 1),
        OwnTests("kafka.server.SyncGroupRequestTest", 1),
        OwnTests("kafka.server.HeartbeatRequestTest", 1),
        OwnTests("kafka.server.LeaveGroupRequestTest", 3),
        OwnTests("kafka.server.OffsetFetchRequestTest", 9),
        OwnTests("kafka.server.DeleteGroupsRequestTest", 2),
        OwnTests("kafka.server.DescribeGroupsRequestTest", 1),
        OwnTests("kafka.server.ListGroupsRequestTest", 1, {"testListGroupsWithNewConsumerGroupProtocol ": HASHED}),
        OwnTests("kafka.server.OffsetCommitRequestTest", 2),
        OwnTests("kafka.server.OffsetDeleteRequestTest", 2),
    ),
    "migration": (
        OwnTests(
            "kafka.server.ConsumerProtocolMigrationTest",
            20,
            {"testOnlineMigrationWithNonEmptyUserDataInAssignment ": A_TEXT},
        ),
    ),
    "tools": (
        OwnTests(f"{TOOLS}.BrokerApiVersionsCommandTest", 1, {"testBrokerApiVersionsCommandOutput ": NEWER}),
        OwnTests(f"{TOOLS}.ClusterToolTest", 15),
        OwnTests(
            f"{TOOLS}.ConfigCommandIntegrationTest",
            16,
            {
                "testAlterStreamsGroup": A_TEXT,
                "testBrokerLoggerConfigUpdate ": "names the loggers of Apache Kafka's classes",
                "testDynamicBrokerConfigUpdateUsingKraft ": STORES,
                "testExitWithNonZeroStatusOnUpdatingUnallowedConfig ": A_TEXT,
                "testUpdateBrokerConfigNotAffectedByInvalidConfig ": "reads a setting in the broker's config object",
                "testUpdatePerBrokerConfigWithListenerNameInKRaftThenShouldSuccessful ": STORES,
            },
        ),
        OwnTests(f"{TOOLS}.DeleteRecordsCommandTest", 6),
        OwnTests(
            f"{TOOLS}.GetOffsetShellTest",
            19,
            {
                r"testGetOffsetsBy(Earliest|Latest)(Local|Tiered)Spec .*\[2\]": NO_TIERS,
                "testNoFilterOptions ": UNUSED,
                "testPartitionsArg ": UNUSED,
            },
        ),
        OwnTests(f"{TOOLS}.FeatureCommandTest", 25, {r"test\w+ .*MetadataVersion=3\.[0-8]": NEW}),
        OwnTests(f"{TOOLS}.GroupsCommandTest", 30),
        OwnTests(f"{TOOLS}.LeaderElectionCommandTest", 9),
        OwnTests(f"{TOOLS}.LogDirsCommandTest", 8),
    ),
    "consumer tools": (
        OwnTests(
            f"{TOOLS}.consumer.ConsoleConsumerTest",
            7,
            {
                "testGroupMetadataMessageFormatter ": FIRST_RECORD,
                "testTransactionLogMessageFormatter ": "wants the first producer id of a cluster",
            },
        ),
        OwnTests(f"{TOOLS}.consumer.group.DeleteConsumerGroupsTest", 9),
        OwnTests(f"{TOOLS}.consumer.group.DeleteOffsetsConsumerGroupCommandIntegrationTest", 9),
        OwnTests(f"{TOOLS}.consumer.group.ListConsumerGroupTest", 7),
    ),
    "offsets": (
        OwnTests(f"{CLIENTS}.admin.ListOffsetsIntegrationTest", 7),
        OwnTests(f"{TOOLS}.consumer.group.ResetConsumerGroupOffsetTest", 28),
    ),
    "rights": (
        OwnTests(f"{CLIENTS}.consumer.SaslPlainPlaintextConsumerTest", 6),
        OwnTests(f"{TOOLS}.AclCommandTest", 21),
        OwnTests(f"{TOOLS}.UserScramCredentialsCommandTest", 3),
    ),
    "new groups": (
        OwnTests("kafka.server.ConsumerGroupHeartbeatRequestTest", 18),
        OwnTests("kafka.server.ShareGroupDescribeRequestTest", 2),
        OwnTests(
            "kafka.server.ShareGroupHeartbeatRequestTest",
            4,
            {
                "testShareGroupHeartbeatIsAccessibleWhenShareGroupIsEnabled ": FIRST_TARGET,
                "testShareGroupHeartbeatWithMultipleMembers ": FIRST_TARGET,
                "testGroupCoordinatorChange ": FIRST_TARGET,
                "testMemberLeavingAndRejoining ": FIRST_TARGET,
                "testPartitionAssignmentWithChangingTopics ": FIRST_TARGET,
            },
        ),
        OwnTests("kafka.server.StreamsGroupDescribeRequestTest", 2),
        OwnTests(
            "kafka.server.StreamsGroupHeartbeatRequestTest",
            13,
            {"testDynamicGroupConfig ": "names tasks that it has not, and hears at once what it has, by choice"},
        ),
    ),
}
CLASSES: Final = tuple(chain.from_iterable(STORIES.values()))

#: Classes that cannot be played on a broker in another process, or ask for what Kavka refuses.
ABSENT: Final[Mapping[str, str]] = {
    f"{CLIENTS}.CreateTopicsRequestWithPolicyTest": A_JAVA_CLASS,
    f"{CLIENTS}.MetricsDuringTopicCreationDeletionTest": OF_JMX,
    f"{CLIENTS}.admin.AdminClientWithPoliciesIntegrationTest": A_JAVA_CLASS,
    f"{CLIENTS}.consumer.ConsumerWithLegacyMessageFormatIntegrationTest": "appends old batches to a log object",
    f"{CLIENTS}.consumer.ShareConsumerRackAwareTest": A_JAVA_CLASS,
    f"{CLIENTS}.producer.SocketServerMemoryPoolTest": "looks into the broker's pool of memory",
    f"{CLIENTS}.security.GroupAuthorizerIntegrationTest": A_JAVA_CLASS,
    "kafka.server.BrokerMetricNamesTest": OF_JMX,
    "kafka.server.RaftClusterSnapshotTest": "looks into the objects of the quorum",
    "kafka.server.metadata.BrokerMetadataPublisherTest": "looks into the objects of the quorum",
    "org.apache.kafka.admin.RemoteTopicCrudTest": NO_TIERS,
    "org.apache.kafka.api.EndToEndClusterIdTest": A_JAVA_CLASS,
    "org.apache.kafka.server.BrokerRegistrationRequestTest": NEW,
    "org.apache.kafka.server.LogManagerIntegrationTest": "looks into log objects of the broker",
    "org.apache.kafka.server.MonitorablePluginsIntegrationTest": NO_TIERS,
    "org.apache.kafka.server.config.MinInSyncReplicasConfigTest": "reads a setting in the broker's log manager",
    f"{TIERED}.RemoteLogSegmentLifecycleTest": NO_TIERS,
    f"{TIERED}.TopicBasedRemoteLogMetadataManagerMultipleSubscriptionsTest": NO_TIERS,
    f"{TIERED}.TopicBasedRemoteLogMetadataManagerRestartTest": NO_TIERS,
    f"{TIERED}.TopicBasedRemoteLogMetadataManagerTest": NO_TIERS,
    "org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManagerTest": NO_TIERS,
    "org.apache.kafka.server.quota.CustomQuotaCallbackTest": A_JAVA_CLASS,
    "unit.kafka.server.AllocateProducerIdsRequestTest": "asks the broker's quorum object which controller leads",
}
