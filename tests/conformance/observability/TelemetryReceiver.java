import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;

/** Without a receiver, Apache Kafka serves no telemetry. This one reads plain pushes and keeps nothing. */
public class TelemetryReceiver implements MetricsReporter, ClientTelemetry {
    public void init(List<KafkaMetric> metrics) { }

    public void metricChange(KafkaMetric metric) { }

    public void metricRemoval(KafkaMetric metric) { }

    public void close() { }

    public void configure(Map<String, ?> configs) { }

    public ClientTelemetryReceiver clientReceiver() {
        return (AuthorizableRequestContext context, ClientTelemetryPayload payload) -> {
            ByteBuffer data = payload.data();
            try {
                MetricsData.parseFrom(data);
            } catch (Exception malformed) {
                throw new IllegalArgumentException(malformed);
            }
        };
    }
}
