"""Kafka's messages, one module each.

Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand.
"""
