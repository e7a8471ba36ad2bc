"""Shows what is in a running cluster: looks at it again and again, tables of them, records of its topics.

`kavka top`, `kavka console` and the operator's page use it. Nothing here writes to Kafka.
"""
