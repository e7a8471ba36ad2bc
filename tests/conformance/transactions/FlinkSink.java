// Numbers that a Flink job writes to a topic by its KafkaSink with EXACTLY_ONCE, until it is killed: bootstrap servers,
// topic, how many a second, and the number at which it fails once by itself, to go on from its last checkpoint.

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public class FlinkSink {
    static final AtomicBoolean HAS_FAILED = new AtomicBoolean();

    public static void main(String[] words) throws Exception {
        long failsAt = Long.parseLong(words[3]);
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "1500ms");
        settings.setString("execution.checkpointing.tolerable-failed-checkpoints", "1000");
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1000");
        settings.setString("restart-strategy.fixed-delay.delay", "500ms");
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        GeneratorFunction<Long, String> number = String::valueOf;
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(words[0])
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(words[1])
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("flink")
            .setProperty("transaction.timeout.ms", "600000")
            .build();
        flink.fromSource(
                new DataGeneratorSource<>(
                    number, Long.MAX_VALUE, RateLimiterStrategy.perSecond(Double.parseDouble(words[2])), Types.STRING),
                WatermarkStrategy.noWatermarks(),
                "numbers")
            .map(value -> failsOnce(value, failsAt))
            .returns(Types.STRING)
            .sinkTo(sink);
        flink.execute("numbers");
    }

    static String failsOnce(String value, long failsAt) {
        if (Long.parseLong(value) == failsAt && HAS_FAILED.compareAndSet(false, true)) {
            System.out.println("failed");
            throw new IllegalStateException("once");
        }
        return value;
    }
}
