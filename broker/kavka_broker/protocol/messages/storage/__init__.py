"""The schemas of Kafka's storage jar. Generated; not edited by hand."""
