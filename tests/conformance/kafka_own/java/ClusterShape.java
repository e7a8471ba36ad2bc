package org.apache.kafka.common.test;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.security.auth.SecurityProtocol;

import java.util.*;

/** What a test asks for: nodes, settings, and how the quorum begins. Two equal keys: one cluster does for both. */
final class ClusterShape {
    final TestKitNodes nodes;
    final Map<String, Object> configs;
    final boolean isStandalone;
    final Map<Integer, Uuid> initialVoters; // null: none are named

    ClusterShape(TestKitNodes nodes, Map<String, Object> configs, boolean isStandalone, Map<Integer, Uuid> voters) {
        this.nodes = nodes;
        this.configs = configs;
        this.isStandalone = isStandalone;
        this.initialVoters = voters;
    }

    Set<Integer> ids() {
        Set<Integer> ids = new TreeSet<>(nodes.controllerNodes().keySet());
        ids.addAll(nodes.brokerNodes().keySet());
        return ids;
    }

    /** Whether the quorum is of KIP-853: its voters are in its log, and the settings name only where to ask. */
    boolean isDynamic() {
        return isStandalone || initialVoters != null;
    }

    /** Whether clients and brokers log in, and brokers have rules. */
    boolean isSecured() {
        return nodes.brokerListenerProtocol().name.startsWith("SASL");
    }

    /** Whether controllers have rules. Where brokers do not log in to them, they let each request through. */
    boolean isQuorumSecured() {
        return nodes.controllerListenerProtocol().name.startsWith("SASL");
    }

    SecurityProtocol protocol(boolean ofControllers) {
        return ofControllers ? nodes.controllerListenerProtocol() : nodes.brokerListenerProtocol();
    }

    String key() {
        List<Object> key = new ArrayList<>(List.of(nodes.brokerNodes().keySet(), nodes.controllerNodes().keySet()));
        List<TestKitNode> all = new ArrayList<>(nodes.brokerNodes().values());
        all.addAll(nodes.controllerNodes().values());
        for (TestKitNode node : all)
            key.add(node.logDataDirectories().size() + " " + new TreeMap<>(node.propertyOverrides()));
        key.add(nodes.brokerListenerName() + " " + nodes.brokerListenerProtocol());
        key.add(nodes.controllerListenerName() + " " + nodes.controllerListenerProtocol());
        key.add(configs + " " + isStandalone + " " + initialVoters + nodes.bootstrapMetadata().records());
        return key.toString();
    }
}
