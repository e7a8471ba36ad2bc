-- How much was moved, refused and delayed, by buckets of ten minutes.
SELECT
    start_ms - start_ms % 600000 AS bucket_ms,
    sum(CASE WHEN operation = 'WRITE' THEN coalesce(bytes, 0) ELSE 0 END) AS written_bytes,
    sum(CASE WHEN operation = 'READ' THEN coalesce(bytes, 0) ELSE 0 END) AS read_bytes,
    sum(coalesce(records, 0)) AS written_records,
    sum(CASE WHEN outcome = 'denied' THEN times ELSE 0 END) AS denied,
    sum(CASE WHEN outcome = 'delayed' THEN throttle_time_ms ELSE 0 END) AS throttle_time_ms
FROM events
GROUP BY start_ms - start_ms % 600000
