"""A question is a file of SQL here: its head says what is asked and what each column means, and it makes one table.

The SQL keeps to what engines have in common (times are whole milliseconds, buckets are made by `%`). It reads:

    events       rows of `lake.columns.ENTRIES` whose kind is event
    entries      all rows, those of heads, losses, dead and missed records too
    brokers, topics, partitions, grants         the cluster as it was when last asked
    settings     one row: now_ms, unused_days, new_days, bill_cents
"""
