"""The schemas of Kafka's storage jar.

Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand.
"""
