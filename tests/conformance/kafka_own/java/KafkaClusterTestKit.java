package org.apache.kafka.common.test;

import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/**
 * Stands in for the class of this name in kafka-test-common-runtime: each node is a process of Kavka.
 *
 * Its methods are those that Apache Kafka's test extensions and embedded clusters call. Directories are formatted by
 * Apache Kafka's own Formatter, so that a cluster begins with the feature levels that a test asks for.
 */
public class KafkaClusterTestKit implements AutoCloseable {
    static final long READY_MS_MAX = 120_000;
    private static final long POLL_MS = 50;
    private static final AtomicInteger CLUSTERS = new AtomicInteger();

    final ClusterShape shape;
    final int number = CLUSTERS.incrementAndGet();
    final Map<Integer, KavkaNode> members = new TreeMap<>();
    final QuorumView quorum = new QuorumView(this);
    /** A test has stopped a node: the cluster serves no other test. */
    volatile boolean isTouched;
    private final Map<Integer, BrokerServer> brokers = new TreeMap<>();
    private final Map<Integer, ControllerServer> controllers = new TreeMap<>();
    private final MockFaultHandler fatal = new MockFaultHandler("fatal");
    private final MockFaultHandler nonFatal = new MockFaultHandler("nonFatal");
    private final File jaas;
    private final Thread atExit = new Thread(() -> members.values().forEach(KavkaNode::kill));

    private KafkaClusterTestKit(ClusterShape shape) throws Exception {
        this.shape = shape;
        for (int id : shape.ids()) members.put(id, new KavkaNode(this, id));
        for (KavkaNode node : members.values()) {
            node.write();
            NodeMocks mocks = new NodeMocks(this, node);
            if (node.isBroker) brokers.put(node.id, mocks.broker());
            if (node.isController) controllers.put(node.id, mocks.controller());
        }
        jaas = shape.isSecured() ? Logins.clientFile() : null;
        Runtime.getRuntime().addShutdownHook(atExit);
    }

    public void format() throws Exception {
        if (runs()) return;
        for (KavkaNode node : members.values()) node.format();
    }

    public void startup() throws ExecutionException, InterruptedException {
        try {
            for (KavkaNode node : members.values()) node.start();
        } catch (IOException e) {
            throw new ExecutionException(e);
        }
        waitForReadyBrokers();
    }

    public void waitForReadyBrokers() throws ExecutionException, InterruptedException {
        waitFor(brokers.keySet());
    }

    /** Wait until each of these brokers knows all of them. */
    void waitFor(Set<Integer> ids) throws InterruptedException {
        long deadline = System.currentTimeMillis() + READY_MS_MAX;
        for (int id : ids)
            while (!members.get(id).view.knows(ids)) {
                members.get(id).checkRuns();
                for (KavkaNode other : members.values()) if (!other.isBroker && other.wasStarted()) other.checkRuns();
                if (System.currentTimeMillis() > deadline)
                    throw new IllegalStateException("broker " + id + " is not ready: " + members.get(id).lastLines());
                Thread.sleep(POLL_MS);
            }
    }

    boolean runs() {
        return members.values().stream().allMatch(KavkaNode::runs);
    }

    public Admin admin() {
        return admin(Map.of(), false);
    }

    public Admin admin(Map<String, Object> configs) {
        return admin(configs, false);
    }

    public Admin admin(Map<String, Object> configs, boolean usesControllers) {
        String ours = usesControllers ? "bootstrap.controllers" : "bootstrap.servers";
        Map<String, Object> all = new HashMap<>(configs);
        all.remove(usesControllers ? "bootstrap.servers" : "bootstrap.controllers");
        all.putIfAbsent(ours, usesControllers ? bootstrapControllers() : bootstrapServers());
        String protocol = shape.protocol(usesControllers).name;
        all.putIfAbsent("security.protocol", protocol);
        if (protocol.startsWith("SASL")) {
            all.putIfAbsent("sasl.mechanism", "PLAIN");
            all.putIfAbsent("sasl.jaas.config", Logins.OF_THE_ADMINISTRATOR);
        }
        return Admin.create(all);
    }

    public String bootstrapServers() {
        return members.values().stream().filter(node -> node.isBroker)
            .map(node -> "localhost:" + node.port).collect(Collectors.joining(","));
    }

    public String bootstrapControllers() {
        return members.values().stream().filter(node -> node.isController)
            .map(node -> "localhost:" + node.controllerPort).collect(Collectors.joining(","));
    }

    public Map<Integer, BrokerServer> brokers() {
        return brokers;
    }

    public Map<Integer, ControllerServer> controllers() {
        return controllers;
    }

    public Controller waitForActiveController() {
        throw new Inside("Controller");
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        throw new Inside("KafkaRaftManager");
    }

    public TestKitNodes nodes() {
        return shape.nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatal;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatal;
    }

    @Override
    public void close() throws Exception {
        quorum.close();
        if (!IdleCluster.keeps(this)) end();
    }

    /** End all nodes, brokers first, and delete what they wrote. */
    void end() throws Exception {
        members.values().stream().filter(node -> node.isBroker).forEach(KavkaNode::terminate);
        members.values().stream().filter(node -> node.isBroker).forEach(KavkaNode::stop);
        members.values().forEach(KavkaNode::stop);
        Runtime.getRuntime().removeShutdownHook(atExit);
        if (jaas != null) Files.deleteIfExists(jaas.toPath());
        org.apache.kafka.common.utils.Utils.delete(new File(shape.nodes.baseDirectory()));
    }

    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, Object> configs = new TreeMap<>();
        private boolean isStandalone;
        private Map<Integer, Uuid> initialVoters;

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            configs.put(key, value);
            return this;
        }

        public Builder setStandalone(boolean isStandalone) {
            this.isStandalone = isStandalone;
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> initialVoters) {
            this.initialVoters = initialVoters;
            return this;
        }

        public Builder setDeleteOnClose(boolean deletes) {
            return this;
        }

        public KafkaClusterTestKit build() throws Exception {
            ClusterShape shape = new ClusterShape(nodes, configs, isStandalone, initialVoters);
            KafkaClusterTestKit idle = IdleCluster.take(shape);
            return idle == null ? new KafkaClusterTestKit(shape) : idle;
        }
    }
}
