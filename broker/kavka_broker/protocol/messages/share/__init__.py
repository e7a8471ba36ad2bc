"""The schemas of Kafka's share jar. Generated; not edited by hand."""
