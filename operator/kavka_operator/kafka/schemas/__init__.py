"""Schemas of messages that kafka-python does not carry: the fields, types and versions that Kafka has for them."""
