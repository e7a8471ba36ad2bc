"""Writes `kavka_broker/protocol/messages/` from the schemas inside Apache Kafka's jars."""
