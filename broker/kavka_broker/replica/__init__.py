"""The replicas on this broker: partitions, what waits on them, and fetch sessions."""
