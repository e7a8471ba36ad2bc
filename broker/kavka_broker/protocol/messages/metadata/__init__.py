"""The schemas of Kafka's metadata jar.

Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand.
"""
