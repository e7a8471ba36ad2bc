import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Uses the class of the page: a record goes in and comes out. */
class Main {
    public static void main(String[] arguments) throws Exception {
        try (var kavka = new Kavka()) {
            Map<String, Object> config = Map.of("bootstrap.servers", kavka.bootstrapServers,
                "group.id", UUID.randomUUID().toString(), "auto.offset.reset", "earliest");
            try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
                producer.send(new ProducerRecord<>("orders", "an order")).get();
            }
            try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of("orders"));
                var records = consumer.poll(Duration.ofSeconds(60));
                while (records.isEmpty()) records = consumer.poll(Duration.ofSeconds(60));
                System.out.println(records.iterator().next().value());
            }
        }
    }
}
