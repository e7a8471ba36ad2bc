"""Effects on a Kafka cluster, through its own admin protocol."""
