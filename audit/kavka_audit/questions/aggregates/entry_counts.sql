-- How many entries of each kind there are, and from when to when they were written. What a loss stands for counts once,
-- however often its entry was written.
SELECT
    entries.partition, entries.source, entries.node, entries.kind, count(*) AS entries,
    sum(CASE WHEN duplicates.at_offset IS NULL THEN entries.lost ELSE 0 END) AS lost,
    min(entries.written_ms) AS first_ms, max(entries.written_ms) AS last_ms,
    min(CASE WHEN entries.kind = 'event' THEN entries.start_ms END) AS since_ms
FROM entries
LEFT JOIN duplicate_rows AS duplicates
    ON duplicates.topic_id = entries.topic_id AND duplicates.partition = entries.partition
    AND duplicates.at_offset = entries.offset
GROUP BY entries.partition, entries.source, entries.node, entries.kind
