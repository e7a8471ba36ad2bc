-- When was how much moved?
-- Bytes written and read, refusals and delays, by buckets of ten minutes, the newest first. written_bytes_total and
-- read_bytes_total are of all buckets together.
SELECT
    bucket_ms, written_bytes, read_bytes, written_records, denied, throttle_time_ms,
    sum(written_bytes) OVER () AS written_bytes_total, sum(read_bytes) OVER () AS read_bytes_total
FROM traffic_buckets
ORDER BY bucket_ms DESC
