package org.apache.kafka.common.test;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.Collectors;

/** What one node says of the cluster's metadata, asked of it alone; of a secured cluster any node is asked. */
final class NodeView {
    private static final int CONNECT_MS_MAX = 5_000;
    private static final int ANSWER_MS_MAX = 30_000;
    private static final short METADATA_VERSION = 12;

    private final KavkaNode node;

    NodeView(KavkaNode node) {
        this.node = node;
    }

    /** Metadata of a topic, or with null of all. */
    MetadataResponse metadata(String topic) {
        MetadataRequest request = topic == null
            ? MetadataRequest.Builder.allTopics().build(METADATA_VERSION)
            : new MetadataRequest.Builder(List.of(topic), false).build(METADATA_VERSION);
        RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "test-kit", 1);
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("localhost", node.port), CONNECT_MS_MAX);
            socket.setSoTimeout(ANSWER_MS_MAX);
            ByteBuffer sent = request.serializeWithHeader(header);
            ByteBuffer framed = ByteBuffer.allocate(Integer.BYTES + sent.remaining());
            socket.getOutputStream().write(framed.putInt(sent.remaining()).put(sent).array());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            ByteBuffer answer = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            return (MetadataResponse) AbstractResponse.parseResponse(answer, header);
        } catch (IOException e) {
            throw new IllegalStateException("node " + node.id + " does not answer", e);
        }
    }

    Optional<MetadataResponseTopic> topic(String name) {
        if (node.kit.shape.isSecured()) return topicByAdmin(name);
        return metadata(name).data().topics().stream().filter(t -> t.errorCode() == Errors.NONE.code()).findFirst();
    }

    Optional<MetadataResponsePartition> partition(String topic, int number) {
        return topic(topic)
            .flatMap(t -> t.partitions().stream().filter(p -> p.partitionIndex() == number).findFirst());
    }

    private Optional<MetadataResponseTopic> topicByAdmin(String name) {
        try (Admin admin = node.kit.admin()) {
            TopicDescription described = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
            MetadataResponseTopic topic = new MetadataResponseTopic().setName(name).setTopicId(described.topicId());
            described.partitions().forEach(p -> topic.partitions().add(new MetadataResponsePartition()
                .setPartitionIndex(p.partition()).setLeaderId(p.leader() == null ? -1 : p.leader().id())
                .setIsrNodes(p.isr().stream().map(Node::id).toList())));
            return Optional.of(topic);
        } catch (Exception e) {
            return Optional.empty();
        }
    }

    /** Whether it answers, and knows these brokers. */
    boolean knows(Set<Integer> brokers) {
        try {
            return brokers().containsAll(brokers);
        } catch (Exception e) {
            return false;
        }
    }

    private Set<Integer> brokers() throws Exception {
        if (!node.kit.shape.isSecured())
            return metadata(null).data().brokers().stream().map(b -> b.nodeId()).collect(Collectors.toSet());
        try (Admin admin = node.kit.admin()) {
            return admin.describeCluster(new DescribeClusterOptions().timeoutMs(CONNECT_MS_MAX)).nodes().get().stream()
                .map(Node::id).collect(Collectors.toSet());
        }
    }
}
