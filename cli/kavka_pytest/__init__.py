"""A Kafka for tests: the pytest fixtures `kafka` (one broker) and `kafka_cluster` (three)."""
