-- What clients moved in the minutes in which they were held back, at the brokers that held them back.
SELECT
    events.source, places.minute_ms, events.principal, events.client_id, events.operation,
    sum(events.bytes) AS bytes, min(events.start_ms) AS first_ms, max(events.end_ms) AS last_ms
FROM events JOIN (
    SELECT DISTINCT source, start_ms - start_ms % 60000 AS minute_ms, principal, client_id
    FROM denials_delays_changes WHERE outcome = 'delayed' AND quota_type IN ('produce', 'fetch')
) AS places
    ON places.source = events.source AND places.minute_ms = events.start_ms - events.start_ms % 60000
    AND places.principal = events.principal AND places.client_id = events.client_id
WHERE events.bytes IS NOT NULL
GROUP BY events.source, places.minute_ms, events.principal, events.client_id, events.operation
