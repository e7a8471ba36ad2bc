"""What is wrong with a Kafka, judged by pure rules from what was read of it: one file a concern."""
