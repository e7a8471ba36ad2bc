"""The trail in Delta tables, which any reader of Delta Lake opens beside ours.

    events/          an entry of a chain a row, and the offsets that were deleted before they were read; by day
    dead_letters/    a record that is no entry, or whose event does not fit, with its bytes; by day
    chains/          a chain a row: what its hashes and links show, and how far it was followed
    use_daily/ ...   what the questions ask of, for each day by itself (`daily_columns`)
    daily_days/      the days that those have, and what each was made of

A batch is a range of offsets. It is committed to the tables in the order dead_letters, events, chains, and the commit
to `chains` is the one that counts: reading goes on from the offset that it holds. A commit of a batch holds its number
and its offset as transaction identifiers of Delta; those of Spark to the first two tables hold the number alone, those
of retention none. A run that dies between two commits leaves tables that are ahead of `chains`; the next run reads
exactly that range again, and skips the tables that have it.

Two runs at once take the same number for the next batch: the directory's lock refuses one of them on the same machine,
and where it does not hold, Delta refuses the commit of the slower one, which then ends.
"""
