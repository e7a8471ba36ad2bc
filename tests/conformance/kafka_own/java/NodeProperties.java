package org.apache.kafka.common.test;

import java.util.*;
import java.util.stream.Collectors;

/** server.properties of a node: what the test asks for, and the listeners, quorum and directories of its cluster. */
final class NodeProperties {
    private final KavkaNode node;
    private final TestKitNodes nodes;
    private final Map<String, String> found = new TreeMap<>();

    private NodeProperties(KavkaNode node) {
        this.node = node;
        this.nodes = node.kit.shape.nodes;
    }

    static Map<String, String> of(KavkaNode node) {
        NodeProperties properties = new NodeProperties(node);
        node.kit.shape.configs.forEach((key, value) -> properties.found.put(key, String.valueOf(value)));
        properties.addRoles();
        properties.addListeners();
        properties.addQuorum();
        if (node.isBroker) properties.found.putAll(properties.nodes.brokerNodes().get(node.id).propertyOverrides());
        if (node.isController)
            properties.found.putAll(properties.nodes.controllerNodes().get(node.id).propertyOverrides());
        properties.found.putIfAbsent("kavka.admin.listener", ""); // no port for health and metrics
        // Tests compare whole answers: every member is told the same interval, as by Apache Kafka (docs/adr/0040).
        properties.found.putIfAbsent("kavka.group.rebalance.heartbeat.interval.ms", "0");
        // Apache Kafka has a way to keep no state of share groups; here that state has one replica instead.
        if (properties.found.getOrDefault("group.share.persister.class.name", "-").isEmpty()) {
            properties.found.putIfAbsent("share.coordinator.state.topic.replication.factor", "1");
            properties.found.putIfAbsent("share.coordinator.state.topic.min.isr", "1");
        }
        return properties.found;
    }

    private void addRoles() {
        boolean isBoth = node.isBroker && node.isController;
        found.put("process.roles", isBoth ? "broker,controller" : node.isBroker ? "broker" : "controller");
        found.put("node.id", Integer.toString(node.id));
        found.put("log.dirs", String.join(",", node.directories));
        found.put("metadata.log.dir", node.metadataDirectory);
    }

    private void addListeners() {
        String outside = nodes.brokerListenerName().value();
        String inside = nodes.controllerListenerName().value();
        List<String> listeners = new ArrayList<>();
        if (node.isBroker) listeners.add(outside + "://localhost:" + node.port);
        if (node.isController) listeners.add(inside + "://localhost:" + node.controllerPort);
        if (node.isBroker && node.kit.shape.isSecured() || node.isController && node.kit.shape.isQuorumSecured())
            Logins.addTo(found, nodes.brokerListenerName(), nodes.controllerListenerName());
        found.putIfAbsent("listener.security.protocol.map", String.format("%s:%s,%s:%s", outside,
            nodes.brokerListenerProtocol().name, inside, nodes.controllerListenerProtocol().name));
        found.merge("listeners", String.join(",", listeners), (given, ours) -> withPorts(given));
        found.putIfAbsent("inter.broker.listener.name", outside);
        found.putIfAbsent("controller.listener.names", inside);
    }

    /** The listeners that a test names itself: those of this node's roles, with ports in place of 0. */
    private String withPorts(String given) {
        List<String> listeners = new ArrayList<>();
        for (String one : given.split(",")) {
            boolean isController = one.startsWith(nodes.controllerListenerName().value() + ":");
            if (isController ? !node.isController : !node.isBroker) continue;
            boolean isOurs = isController || one.startsWith(nodes.brokerListenerName().value() + ":");
            int port = !isOurs ? FreePorts.next() : isController ? node.controllerPort : node.port;
            listeners.add(one.replaceAll(":0$", ":" + port));
        }
        return String.join(",", listeners);
    }

    private void addQuorum() {
        boolean isDynamic = node.kit.shape.isDynamic();
        String addresses = node.kit.members.values().stream().filter(other -> other.isController)
            .map(other -> (isDynamic ? "" : other.id + "@") + "localhost:" + other.controllerPort)
            .collect(Collectors.joining(","));
        found.put(isDynamic ? "controller.quorum.bootstrap.servers" : "controller.quorum.voters", addresses);
        if (node.isBroker) found.remove("controller.quorum.auto.join.enable");
    }
}
