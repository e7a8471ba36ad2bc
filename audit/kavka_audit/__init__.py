"""Answers from the audit trail.

- `lake`: the trail as Parquet files in a directory, each record once, and the cluster as it was when last asked.
- `questions`: a file of SQL for each question; it makes a table, and names its columns.
- `report`: the answers in a line each, and a page with them.

`run.refresh` does all of it. What speaks to a cluster is given to it: this member imports no Kafka client.
"""
