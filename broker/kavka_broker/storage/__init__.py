"""Logs on disk, in Apache Kafka's files: the only part of the broker that opens files.

`disk` is the seam to the operating system; `segment` and its indexes are one stretch of a log; `log` is a partition's
log, with `recovery` for its start and `retention` for its end; `log_manager` holds them all.
"""
