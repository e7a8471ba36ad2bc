package org.apache.kafka.common.test;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.QuorumInfo.ReplicaState;

import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;

/** How far nodes are in the log of metadata, as the leader of the quorum says. */
final class QuorumView {
    private final Map<Integer, Long> fetchedAt = new HashMap<>();
    private final KafkaClusterTestKit kit;
    private Admin admin;

    QuorumView(KafkaClusterTestKit kit) {
        this.kit = kit;
    }

    /** The end of the log. A node that is asked for its offset after this has to fetch up to here anew. */
    synchronized long endOffset() throws Exception {
        fetchedAt.clear();
        return leaderOf(info()).logEndOffset();
    }

    /**
     * The offset that a node has applied: what it fetched up to, once it has fetched again since. It hears of what is
     * committed with the answer to the fetch from there.
     */
    synchronized long appliedOffset(int node) throws Exception {
        QuorumInfo info = info();
        ReplicaState leader = leaderOf(info);
        ReplicaState state = Stream.concat(info.voters().stream(), info.observers().stream())
            .filter(one -> one.replicaId() == node).findFirst().orElse(null);
        if (node == leader.replicaId()) return leader.logEndOffset();
        if (state == null || state.logEndOffset() < leader.logEndOffset()) return -1;
        long at = state.lastFetchTimestamp().orElse(-1);
        Long before = fetchedAt.putIfAbsent(node, at);
        return before == null || before >= at ? -1 : state.logEndOffset();
    }

    private static ReplicaState leaderOf(QuorumInfo info) {
        return info.voters().stream().filter(one -> one.replicaId() == info.leaderId()).findFirst().orElseThrow();
    }

    private QuorumInfo info() throws InterruptedException, ExecutionException {
        if (admin == null) admin = kit.admin();
        return admin.describeMetadataQuorum().quorumInfo().get();
    }

    synchronized void close() {
        if (admin != null) admin.close();
        admin = null;
    }
}
