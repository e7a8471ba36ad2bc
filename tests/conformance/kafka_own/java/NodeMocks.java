package org.apache.kafka.common.test;

import kafka.cluster.Partition;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.MockMakers;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;

import java.io.File;
import java.util.*;
import java.util.stream.Collectors;

/**
 * Objects in place of the BrokerServer and the ControllerServer of a node.
 *
 * Tests walk from them to what they look at. What can be said from outside is asked of the node over the wire, by the
 * name of the method whatever object it is called on; starting and stopping is done to the process; all else throws
 * {@link Inside}.
 */
final class NodeMocks {
    /** Objects on the way: a call on one of them is answered as on the server. */
    private static final Set<String> PARTS = Set.of("socketServer", "sharedServer", "raftManager", "raftLog", "loader",
        "metadataCache", "replicaManager", "logManager", "dataPlaneRequestProcessor", "groupCoordinator");
    private static final Answer<Object> REFUSES = call -> switch (call.getMethod().getName()) {
        case "toString" -> "inside of a broker";
        case "hashCode" -> System.identityHashCode(call.getMock());
        case "equals" -> call.getMock() == call.getArgument(0);
        default -> throw new Inside(
            call.getMethod().getDeclaringClass().getSimpleName() + "." + call.getMethod().getName());
    };

    private final KafkaClusterTestKit kit;
    private final KavkaNode node;
    private final Map<String, Object> parts = new HashMap<>();

    NodeMocks(KafkaClusterTestKit kit, KavkaNode node) {
        this.kit = kit;
        this.node = node;
    }

    BrokerServer broker() {
        return mock(BrokerServer.class, call -> answer(call, true));
    }

    ControllerServer controller() {
        return mock(ControllerServer.class, call -> answer(call, false));
    }

    private static <T> T mock(Class<T> type, Answer<Object> answer) {
        return Mockito.mock(type,
            Mockito.withSettings().mockMaker(MockMakers.SUBCLASS).stubOnly().defaultAnswer(answer));
    }

    private Object answer(InvocationOnMock call, boolean isBroker) throws Throwable {
        String name = call.getMethod().getName();
        if (PARTS.contains(name))
            return parts.computeIfAbsent(name + isBroker,
                key -> mock(call.getMethod().getReturnType(), inner -> answer(inner, isBroker)));
        return switch (name) {
            case "startup", "shutdown", "awaitShutdown", "isShutdown", "brokerState" -> ofProcess(name, isBroker);
            case "numPartitions", "contains", "hasAliveBroker", "getAllTopics", "getAliveBrokerNodes", "getTopicId",
                "getLeaderAndIsr" -> ofMetadata(name, call);
            case "onlinePartition", "getLog", "liveLogDirs" -> ofDirectories(name, call);
            case "authorizerPlugin" -> scala.Option.apply(
                isBroker && node.properties.containsKey("authorizer.class.name") ? authorizer() : null);
            default -> ofSettings(name, call);
        };
    }

    private Object ofProcess(String name, boolean isBroker) throws Exception {
        switch (name) {
            case "startup" -> {
                node.start();
                if (isBroker) kit.waitFor(Set.of(node.id));
            }
            case "shutdown" -> {
                kit.isTouched = true;
                node.stop();
            }
            case "awaitShutdown" -> node.awaitEnd();
            case "isShutdown" -> {
                return !node.runs();
            }
            default -> {
                // One that was stopped is SHUTTING_DOWN forever, as in Apache Kafka.
                return node.runs() ? BrokerState.RUNNING
                    : node.wasStarted() ? BrokerState.SHUTTING_DOWN : BrokerState.NOT_RUNNING;
            }
        }
        return null;
    }

    private Object ofMetadata(String name, InvocationOnMock call) {
        Object asked = call.getArguments().length == 0 ? null : call.getArgument(0);
        NodeView view = node.view;
        return switch (name) {
            case "numPartitions" -> view.topic((String) asked).map(topic -> topic.partitions().size());
            case "contains" -> asked instanceof TopicPartition partition
                ? view.partition(partition.topic(), partition.partition()).isPresent()
                : view.topic((String) asked).isPresent();
            case "hasAliveBroker" -> view.knows(Set.of((Integer) asked));
            case "getAllTopics" -> view.metadata(null).data().topics().stream()
                .map(MetadataResponseTopic::name).collect(Collectors.toSet());
            case "getAliveBrokerNodes" -> List.copyOf(view.metadata(null).brokers());
            case "getTopicId" -> view.topic((String) asked).map(MetadataResponseTopic::topicId).orElse(Uuid.ZERO_UUID);
            default -> view.partition((String) asked, call.getArgument(1)).map(partition -> new LeaderAndIsr(
                partition.leaderId(), partition.leaderEpoch(), partition.isrNodes(), LeaderRecoveryState.RECOVERED, 0));
        };
    }

    private Object ofDirectories(String name, InvocationOnMock call) {
        if (name.equals("liveLogDirs"))
            return scala.jdk.javaapi.CollectionConverters.asScala(
                node.directories.stream().map(File::new).toList()).toSeq();
        TopicPartition partition = call.getArgument(0);
        if (!node.holds(partition)) return scala.Option.empty();
        return scala.Option.apply(name.equals("getLog") ? mock(UnifiedLog.class, REFUSES) : replica(partition));
    }

    /** A replica on this node: whether it leads is asked, all else refused. */
    private Partition replica(TopicPartition which) {
        return mock(Partition.class, call -> {
            if (!call.getMethod().getName().equals("leaderIdIfLocal")) return REFUSES.answer(call);
            boolean leads = node.view.partition(which.topic(), which.partition())
                .filter(partition -> partition.leaderId() == node.id).isPresent();
            return scala.Option.apply(leads ? node.id : null);
        });
    }

    private Object ofSettings(String name, InvocationOnMock call) throws Throwable {
        return switch (name) {
            case "clusterId" -> kit.shape.nodes.clusterId();
            case "brokerId" -> node.id;
            case "config", "brokerConfig", "controllerConfig" -> new KafkaConfig(withoutOurs(), false);
            case "boundPort" -> call.getArgument(0).equals(kit.shape.nodes.controllerListenerName())
                ? node.controllerPort : portOf(call.getArgument(0));
            case "isConsumerGroupProtocolEnabled" -> true;
            case "groupMetadataTopicConfigs" -> groupMetadataTopicConfigs();
            case "endOffset" -> new LogOffsetMetadata(kit.quorum.endOffset());
            case "lastAppliedOffset" -> kit.quorum.appliedOffset(node.id);
            default -> REFUSES.answer(call);
        };
    }

    private static Properties groupMetadataTopicConfigs() {
        Properties configs = new Properties();
        configs.putAll(Map.of("cleanup.policy", "compact", "compression.type", "producer",
            "segment.bytes", "104857600"));
        return configs;
    }

    private Map<String, Object> withoutOurs() {
        Map<String, Object> configs = new HashMap<>(node.properties);
        configs.keySet().removeIf(key -> key.startsWith("kavka."));
        return configs;
    }

    private int portOf(ListenerName name) {
        for (String one : node.properties.getOrDefault("listeners", "").split(","))
            if (one.toUpperCase(Locale.ROOT).startsWith(name.value().toUpperCase(Locale.ROOT) + ":"))
                return Integer.parseInt(one.substring(one.lastIndexOf(':') + 1));
        throw new IllegalArgumentException("no listener " + name);
    }

    @SuppressWarnings("unchecked")
    private Plugin<Authorizer> authorizer() {
        Authorizer asks = mock(Authorizer.class, call -> {
            if (!call.getMethod().getName().equals("acls")) return REFUSES.answer(call);
            try (Admin admin = kit.admin()) {
                return admin.describeAcls(call.<AclBindingFilter>getArgument(0)).values().get();
            }
        });
        return (Plugin<Authorizer>) mock(Plugin.class,
            call -> call.getMethod().getName().equals("get") ? asks : REFUSES.answer(call));
    }
}
