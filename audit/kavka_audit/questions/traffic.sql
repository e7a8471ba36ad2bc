-- When was how much moved?
-- Bytes written and read, refusals and delays, by buckets of ten minutes, the newest first. What a node whose clock is
-- ahead tells of the future is in the bucket of this run. written_bytes_total and read_bytes_total are of all buckets
-- together.
SELECT
    bucket_ms, written_bytes, read_bytes, written_records, denied, throttle_time_ms,
    sum(written_bytes) OVER () AS written_bytes_total, sum(read_bytes) OVER () AS read_bytes_total
FROM (
    SELECT
        bucket_ms, sum(written_bytes) AS written_bytes, sum(read_bytes) AS read_bytes,
        sum(written_records) AS written_records, sum(denied) AS denied, sum(throttle_time_ms) AS throttle_time_ms
    FROM (
        SELECT
            least(traffic_buckets.bucket_ms, settings.now_ms - settings.now_ms % 600000) AS bucket_ms,
            written_bytes, read_bytes, written_records, denied, throttle_time_ms
        FROM traffic_buckets CROSS JOIN settings
    ) AS placed GROUP BY bucket_ms
) AS buckets
ORDER BY bucket_ms DESC
