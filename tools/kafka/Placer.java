import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Asks Apache Kafka's own placer. Each line of the input is a question:
 * seed, topics, partitions, replication factor, then the rack of each broker ("-" for none), brokers being 1, 2, 3 ...
 * The answer is a line a partition with its replicas, the leader first, and an empty line.
 */
public final class Placer {
    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder output = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            answer(line.trim().split(" "), output);
        }
        System.out.print(output);
    }

    private static void answer(String[] words, StringBuilder output) {
        Cluster cluster = new Cluster(words);
        StripedReplicaPlacer placer = new StripedReplicaPlacer(new Random(Long.parseLong(words[0])));
        PlacementSpec spec = new PlacementSpec(0, Integer.parseInt(words[2]), Short.parseShort(words[3]));
        for (int topic = 0; topic < Integer.parseInt(words[1]); topic++) {
            for (PartitionAssignment assignment : placer.place(spec, cluster).assignments()) {
                for (int replica : assignment.replicas()) {
                    output.append(replica).append(' ');
                }
                output.append('\n');
            }
        }
        output.append('\n');
    }

    private static final class Cluster implements ClusterDescriber {
        private final List<UsableBroker> brokers = new ArrayList<>();

        Cluster(String[] words) {
            for (int index = 4; index < words.length; index++) {
                Optional<String> rack = words[index].equals("-") ? Optional.empty() : Optional.of(words[index]);
                brokers.add(new UsableBroker(index - 3, rack, false));
            }
        }

        @Override
        public Iterator<UsableBroker> usableBrokers() {
            return brokers.iterator();
        }

        @Override
        public Uuid defaultDir(int brokerId) {
            return Uuid.ONE_UUID;
        }
    }
}
