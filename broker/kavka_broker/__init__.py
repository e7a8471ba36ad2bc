"""The Kavka broker: Apache Kafka's log, replication and quotas, in Python."""
