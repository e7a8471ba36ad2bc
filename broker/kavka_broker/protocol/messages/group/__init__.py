"""The schemas of Kafka's group jar.

Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand.
"""
