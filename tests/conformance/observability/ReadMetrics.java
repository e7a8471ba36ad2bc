import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;

/** Prints what a push on standard input says: the attributes of each resource, and the names of its metrics. */
public class ReadMetrics {
    public static void main(String[] arguments) throws Exception {
        MetricsData data = MetricsData.parseFrom(System.in.readAllBytes());
        data.getResourceMetricsList().forEach(one -> {
            one.getResource().getAttributesList().forEach(
                pair -> System.out.println("attribute " + pair.getKey() + "=" + pair.getValue().getStringValue()));
            one.getScopeMetricsList().forEach(
                scope -> scope.getMetricsList().forEach(metric -> System.out.println("metric " + metric.getName())));
        });
    }
}
