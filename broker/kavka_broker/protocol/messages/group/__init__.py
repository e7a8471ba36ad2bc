"""The schemas of Kafka's group jar. Generated; not edited by hand."""
