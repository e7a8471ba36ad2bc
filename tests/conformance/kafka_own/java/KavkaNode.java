package org.apache.kafka.common.test;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.raft.DynamicVoters;
import org.apache.kafka.server.common.MetadataVersion;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * One node: a process of Kavka, with its directories. It is a broker and a controller in combined mode.
 *
 * -Dkavka.python=PYTHON of a set-up checkout; -Dkavka.logs=DIRECTORY for the logs of nodes.
 */
final class KavkaNode {
    private static final long STOP_SECONDS_MAX = 60;
    private static final int LINES_SHOWN = 12;
    private static final List<String> FEATURES = List.of("group.version", "transaction.version", "share.version",
        "streams.version", "eligible.leader.replicas.version");

    final KafkaClusterTestKit kit;
    final int id;
    final boolean isBroker;
    final boolean isController;
    final List<String> directories;
    final String metadataDirectory;
    final Uuid directoryId;
    final int port;
    final int controllerPort;
    final Map<String, String> properties;
    final NodeView view;
    private final Path file;
    private final Path log;
    private Process process;

    KavkaNode(KafkaClusterTestKit kit, int id) {
        TestKitNodes nodes = kit.shape.nodes;
        this.kit = kit;
        this.id = id;
        isBroker = nodes.brokerNodes().containsKey(id);
        isController = nodes.controllerNodes().containsKey(id);
        TestKitNode storage = isBroker ? nodes.brokerNodes().get(id) : nodes.controllerNodes().get(id);
        TestKitNode voter = isController ? nodes.controllerNodes().get(id) : storage;
        directories = isBroker ? List.copyOf(storage.logDataDirectories()) : List.of(voter.metadataDirectory());
        metadataDirectory = voter.metadataDirectory();
        directoryId = voter.metadataDirectoryId();
        port = isBroker ? FreePorts.next() : -1;
        controllerPort = isController ? FreePorts.next() : -1;
        properties = new TreeMap<>();
        view = new NodeView(this);
        file = Path.of(nodes.baseDirectory(), "node-" + id + ".properties");
        String name = String.format("%d-%04d-node-%d.log", ProcessHandle.current().pid(), kit.number, id);
        log = Path.of(System.getProperty("kavka.logs", nodes.baseDirectory()), name);
    }

    /** Write server.properties, once all nodes of the cluster have their ports. */
    void write() throws IOException {
        properties.putAll(NodeProperties.of(this));
        Files.createDirectories(file.getParent());
        Files.createDirectories(log.getParent());
        StringBuilder text = new StringBuilder();
        properties.forEach((key, value) -> text.append(key).append('=')
            .append(value.replace("\\", "\\\\").replace("\n", "\\n")).append('\n'));
        Files.writeString(file, text);
    }

    void format() throws Exception {
        for (String directory : directories) Files.createDirectories(Path.of(directory));
        TestKitNodes nodes = kit.shape.nodes;
        Formatter formatter = new Formatter().setNodeId(id).setClusterId(nodes.clusterId()).setDirectories(directories)
            .setUnstableFeatureVersionsEnabled(true).setIgnoreFormatted(false)
            .setControllerListenerName(nodes.controllerListenerName().value())
            .setMetadataLogDirectory(metadataDirectory).setReleaseVersion(release());
        for (String name : FEATURES) formatter.setFeatureLevel(name, nodes.bootstrapMetadata().featureLevel(name));
        if (kit.shape.isDynamic()) {
            formatter.setHasDynamicQuorum(true);
            String voters = voters();
            if (kit.shape.initialVoters != null || isController && voters.startsWith(id + "@"))
                formatter.setInitialControllers(DynamicVoters.parse(voters));
        }
        formatter.run();
    }

    /** The metadata.version that the test asks for; a newer one than Apache Kafka's own release is not served. */
    private MetadataVersion release() {
        MetadataVersion wanted = kit.shape.nodes.bootstrapMetadata().metadataVersion();
        return wanted.isAtLeast(MetadataVersion.LATEST_PRODUCTION) ? MetadataVersion.LATEST_PRODUCTION : wanted;
    }

    /** Those that the quorum begins with: the named ones, or the controller with the lowest id alone. */
    private String voters() {
        Map<Integer, Uuid> named = kit.shape.initialVoters;
        int lowest = Collections.min(kit.shape.nodes.controllerNodes().keySet());
        return kit.members.values().stream().filter(node -> node.isController)
            .filter(node -> named == null ? node.id == lowest : named.containsKey(node.id))
            .map(node -> node.id + "@localhost:" + node.controllerPort + ":"
                + (named == null ? node.directoryId : named.get(node.id)))
            .collect(Collectors.joining(","));
    }

    /** Start it where it does not run, in a session of its own, so that an interrupt of the terminal is not for it. */
    synchronized void start() throws IOException {
        if (runs()) return;
        String python = System.getProperty("kavka.python", "python3");
        process = new ProcessBuilder("setsid", python, "-m", "kavka_broker", "run", "--config", file.toString())
            .directory(new File(kit.shape.nodes.baseDirectory())).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
    }

    synchronized void terminate() {
        if (process != null) process.destroy();
    }

    synchronized void stop() {
        if (process == null) return;
        process.destroy();
        try {
            if (process.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) return;
            process.destroyForcibly().waitFor();
            throw new AssertionError("node " + id + " did not end after SIGTERM: " + log);
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    void kill() {
        if (runs()) process.destroyForcibly();
    }

    boolean runs() {
        return process != null && process.isAlive();
    }

    boolean wasStarted() {
        return process != null;
    }

    void awaitEnd() throws InterruptedException {
        if (process != null) process.waitFor();
    }

    void checkRuns() {
        if (!runs()) throw new IllegalStateException("node " + id + " has ended: " + lastLines());
    }

    String lastLines() {
        try {
            List<String> lines = Files.readAllLines(log);
            return "\n" + String.join("\n", lines.subList(Math.max(0, lines.size() - LINES_SHOWN), lines.size()));
        } catch (IOException e) {
            return log.toString();
        }
    }

    /** Whether a log directory of it holds the partition. */
    boolean holds(TopicPartition partition) {
        return directories.stream().anyMatch(directory -> new File(directory, partition.toString()).exists());
    }
}
