"""What a cluster tells when it is asked: looks at it again and again, tables of them, records of its topics.

`kavka top`, `kavka console` and the operator's page show it. Nothing here writes to Kafka.
"""
