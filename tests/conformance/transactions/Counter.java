// Kafka Streams with exactly_once_v2: counts records by the last digit of their number, behind a repartition, and writes
// each new count. Without a cache no count is left out, so the output has every number from 1 on once for each digit.
//
//     Counter BOOTSTRAP INPUT OUTPUT ID, with -Dstate.dir for its stores; with -Dgroup.protocol=streams the brokers assign
//     its tasks and create its topics

import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

public class Counter {
    public static void main(String[] words) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, words[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, words[3]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("state.dir"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 50);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, Integer.getInteger("replication.factor", 3));
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        String protocol = System.getProperty("group.protocol", "classic");
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol);
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", 10_000);
            settings.put("heartbeat.interval.ms", 1_000);
        }
        settings.put("reconnect.backoff.max.ms", 500);

        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(words[1], Consumed.with(Serdes.String(), Serdes.String()))
            .selectKey((key, value) -> value.substring(value.length() - 1))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues((digit, count) -> digit + " " + count)
            .to(words[2], Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            System.out.println("failed " + error);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
    }
}
