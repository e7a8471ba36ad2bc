"""A question is a file of SQL here: its head says what is asked and what each column means, and it makes one table.

The SQL keeps to what engines have in common (times are whole milliseconds, buckets are made by `%`). It reads:

    uses, denials_delays_changes, traffic_buckets, chain_counts, entry_counts, throttled_uses
                        aggregated from the rows, each by a file of SQL in `aggregates`
    counts, cuts        what clients tell, and what was deleted
    brokers, topics, partitions, grants         the cluster as it was when last asked
    settings     one row: now_ms, unused_days, new_days, bill_cents

Aggregates are asked of `denials_delays_changes`, which is made first, and of the rows themselves:

    events       rows of `lake.columns.ENTRIES` whose kind is event
    entries      all rows, those of heads, losses, dead and missed records too
"""
