package org.apache.kafka.common.test;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

import java.util.*;
import java.util.concurrent.TimeUnit;

/**
 * The cluster of the last test, kept running for the next test that asks for the same.
 *
 * It is emptied first. One that cannot be emptied by deleting topics and groups, or of which a test has stopped a node,
 * is ended. -Dkavka.reuse=false: each test has a cluster of its own.
 */
final class IdleCluster {
    private static final boolean IS_ON = Boolean.parseBoolean(System.getProperty("kavka.reuse", "true"));
    private static final long SECONDS_MAX = 20;
    private static final long POLL_MS = 50;
    private static final long ENDING_MS_MAX = 1000;
    private static KafkaClusterTestKit kept;

    private IdleCluster() {
    }

    /** Keep a cluster that a test has closed; false where it has to be ended. */
    static synchronized boolean keeps(KafkaClusterTestKit kit) throws InterruptedException {
        if (!IS_ON || kept != null || kit.isTouched || !kit.runs()) return false;
        kept = kit;
        awaitEndingPools();
        return true;
    }

    /**
     * A pool has ended a moment before its last thread has, and then Apache Kafka looks for threads that are left over.
     * To stop a cluster takes longer than that; to keep one takes no time, so those threads have a second.
     */
    private static void awaitEndingPools() throws InterruptedException {
        long deadline = System.currentTimeMillis() + ENDING_MS_MAX;
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            long leftMs = deadline - System.currentTimeMillis();
            if (thread.getName().startsWith("pool-") && thread != Thread.currentThread() && leftMs > 0) thread.join(leftMs);
        }
    }

    /** The kept cluster, emptied, or null: then none is kept any more. */
    static synchronized KafkaClusterTestKit take(ClusterShape shape) throws Exception {
        KafkaClusterTestKit found = kept;
        kept = null;
        if (found == null) return null;
        if (found.shape.key().equals(shape.key()) && found.runs() && empties(found)) return found;
        found.end();
        return null;
    }

    private static boolean empties(KafkaClusterTestKit kit) {
        try (Admin admin = kit.admin()) {
            if (isMarked(admin, kit.shape.isSecured())) return false;
            List<String> groups = admin.listGroups(new ListGroupsOptions()).all().get().stream()
                .map(GroupListing::groupId).toList();
            if (!groups.isEmpty()) admin.deleteConsumerGroups(groups).all().get(SECONDS_MAX, TimeUnit.SECONDS);
            List<String> topics = admin.listTopics().listings().get().stream().filter(t -> !t.isInternal())
                .map(TopicListing::name).toList();
            if (!topics.isEmpty()) admin.deleteTopics(topics).all().get(SECONDS_MAX, TimeUnit.SECONDS);
            return areGone(kit, topics);
        } catch (Exception e) {
            System.err.println("a cluster is not used again: " + e);
            return false;
        }
    }

    /** Whether a test has left what is not deleted with topics and groups. */
    private static boolean isMarked(Admin admin, boolean isSecured) throws Exception {
        if (!admin.listTransactions().all().get().isEmpty()) return true;
        if (!admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().isEmpty()) return true;
        if (isSecured && !admin.describeAcls(AclBindingFilter.ANY).values().get().isEmpty()) return true;
        List<ConfigResource> resources = new ArrayList<>(admin.listConfigResources().all().get());
        resources.removeIf(one -> one.type() == ConfigResource.Type.TOPIC);
        if (resources.isEmpty()) return false;
        if (resources.stream().anyMatch(one -> one.type() == ConfigResource.Type.GROUP
            || one.type() == ConfigResource.Type.CLIENT_METRICS)) return true;
        return admin.describeConfigs(resources).all().get().values().stream().flatMap(c -> c.entries().stream())
            .anyMatch(IdleCluster::isOfATest);
    }

    /** Whether a test has set a config; with eligible leader replicas the controller sets a min ISR itself. */
    private static boolean isOfATest(ConfigEntry entry) {
        boolean isOfTheController = entry.name().equals("min.insync.replicas") && entry.value().equals("1");
        return entry.source() == ConfigSource.DYNAMIC_BROKER_CONFIG
            || entry.source() == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG && !isOfTheController;
    }

    private static boolean areGone(KafkaClusterTestKit kit, List<String> topics) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS_MAX);
        while (System.nanoTime() < deadline) {
            if (kit.members.values().stream().filter(node -> node.isBroker)
                .allMatch(node -> topics.stream().allMatch(topic -> node.view.topic(topic).isEmpty()))) return true;
            Thread.sleep(POLL_MS);
        }
        return false;
    }
}
