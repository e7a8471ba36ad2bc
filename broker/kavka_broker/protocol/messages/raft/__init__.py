"""The schemas of Kafka's raft jar. Generated; not edited by hand."""
