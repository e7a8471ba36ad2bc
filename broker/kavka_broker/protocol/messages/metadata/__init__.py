"""The schemas of Kafka's metadata jar. Generated; not edited by hand."""
