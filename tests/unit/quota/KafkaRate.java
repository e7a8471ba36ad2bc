import java.util.Scanner;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/**
 * Apache Kafka's own Rate and TokenBucket, one command a line:
 * "new SAMPLES SIZE_MS LIMIT", "record VALUE NOW_MS", "measure NOW_MS" (prints rate, window and tokens).
 */
public class KafkaRate {
    public static void main(String[] arguments) {
        MetricConfig config = null;
        Rate rate = null;
        TokenBucket bucket = null;
        Scanner lines = new Scanner(System.in);
        StringBuilder out = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            switch (words[0]) {
                case "new" -> {
                    config = new MetricConfig()
                        .samples(Integer.parseInt(words[1]))
                        .timeWindow(Long.parseLong(words[2]), java.util.concurrent.TimeUnit.MILLISECONDS)
                        .quota(Quota.upperBound(Double.parseDouble(words[3])));
                    rate = new Rate();
                    bucket = new TokenBucket();
                }
                case "record" -> {
                    rate.record(config, Double.parseDouble(words[1]), Long.parseLong(words[2]));
                    bucket.record(config, Double.parseDouble(words[1]), Long.parseLong(words[2]));
                }
                case "measure" -> {
                    long now = Long.parseLong(words[1]);
                    out.append(rate.measure(config, now)).append(' ')
                        .append(rate.windowSize(config, now)).append(' ')
                        .append(bucket.measure(config, now)).append('\n');
                }
                default -> throw new IllegalArgumentException(words[0]);
            }
        }
        System.out.print(out);
    }
}
