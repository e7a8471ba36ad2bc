-- How many entries of each kind there are, and from when to when they were written.
SELECT
    partition, source, node, kind,
    count(*) AS entries, sum(lost) AS lost, min(written_ms) AS first_ms, max(written_ms) AS last_ms,
    min(CASE WHEN kind = 'event' THEN start_ms END) AS since_ms
FROM entries GROUP BY partition, source, node, kind
