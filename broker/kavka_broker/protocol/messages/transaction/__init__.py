"""The schemas of Kafka's transaction jar. Generated; not edited by hand."""
