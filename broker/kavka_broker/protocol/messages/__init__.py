"""Kafka's messages, one module each. Generated; not edited by hand."""
