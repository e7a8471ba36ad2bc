"""The schemas of Kafka's transaction jar.

Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand.
"""
