"""The schemas of Kafka's share jar.

Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand.
"""
