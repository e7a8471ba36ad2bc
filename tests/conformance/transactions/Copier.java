// Copies records from one topic to another in transactions, with Apache Kafka's own client: from 4.0 on of transaction
// version 2, before of version 1.
// copier.py is the same in Python, and says what the lines mean.

import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

public class Copier {
    static final int ABORTED_EACH = 5;

    final String target;
    final Map<String, Object> settings;
    final KafkaConsumer<byte[], String> consumer;
    KafkaProducer<byte[], String> producer;
    int transactions = 0;

    Copier(String bootstrap, String source, String target, String name) {
        this.target = target;
        settings = Map.of(
            "bootstrap.servers", bootstrap, "transactional.id", name, "linger.ms", 0, "reconnect.backoff.max.ms", 500);
        consumer = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "group.id", name, "auto.offset.reset", "earliest",
                "isolation.level", "read_committed", "enable.auto.commit", false, "max.poll.records", 10,
                "reconnect.backoff.max.ms", 500),
            new ByteArrayDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(source));
        beginAnew();
    }

    void beginAnew() {
        if (producer != null)
            producer.close(Duration.ZERO);
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new StringSerializer());
        repeated(producer::initTransactions);
        say("started");
    }

    void run() {
        while (true) {
            ConsumerRecords<byte[], String> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty())
                continue;
            try {
                copy(records);
            } catch (KafkaException error) {
                say("fatal " + error);
                beginAnew();
                rewind();
            }
        }
    }

    void copy(ConsumerRecords<byte[], String> records) {
        boolean aborts = ++transactions % ABORTED_EACH == 0;
        try {
            producer.beginTransaction();
            for (ConsumerRecord<byte[], String> one : records)
                producer.send(new ProducerRecord<>(target, one.key(), (aborts ? "aborted " : "copied ") + one.value()));
            repeated(() -> producer.sendOffsetsToTransaction(next(records), consumer.groupMetadata()));
            if (aborts) {
                producer.flush();
                repeated(producer::abortTransaction);
                rewind();
                say("aborted");
            } else {
                repeated(producer::commitTransaction);
                say("committed " + records.count());
            }
        } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException error) {
            throw error;
        } catch (KafkaException error) {
            say("failed " + error);
            repeated(producer::abortTransaction);
            rewind();
        }
    }

    // As ConsumerRecords.nextOffsets, which clients before 4.0 have not.
    static Map<TopicPartition, OffsetAndMetadata> next(ConsumerRecords<byte[], String> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], String> one : records)
            offsets.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
        return offsets;
    }

    void rewind() {
        Set<TopicPartition> parts = consumer.assignment();
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(parts);
        for (TopicPartition part : parts) {
            OffsetAndMetadata offset = committed.get(part);
            consumer.seek(part, offset == null ? 0 : offset.offset());
        }
    }

    static void repeated(Runnable call) {
        while (true) {
            try {
                call.run();
                return;
            } catch (TimeoutException error) {
                say("again " + error);
            }
        }
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] words) {
        new Copier(words[0], words[1], words[2], words[3]).run();
    }
}
