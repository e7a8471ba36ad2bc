package org.apache.kafka.common.test;

/** A test looks into the process of a broker: what it finds there only Apache Kafka has, so it judges nobody else. */
public class Inside extends Error {
    Inside(String what) {
        super("wants the inside of a broker: " + what);
    }
}
