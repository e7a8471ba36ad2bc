-- When was how much moved?
-- Bytes written and read, refusals and delays, by buckets of ten minutes.
SELECT bucket_ms, written_bytes, read_bytes, written_records, denied, throttle_time_ms FROM buckets
ORDER BY bucket_ms
