"""The schemas of Kafka's raft jar.

Generated from Apache Kafka's schemas by tools/generate_messages; not edited by hand.
"""
