-- How much was written and read, by all that names a use except its time.
SELECT
    principal, client_id, address, operation, resource,
    sum(bytes) AS bytes, sum(records) AS records, sum(times) AS times, min(start_ms) AS first_ms, max(end_ms) AS last_ms
FROM events WHERE bytes IS NOT NULL GROUP BY principal, client_id, address, operation, resource
