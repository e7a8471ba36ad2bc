-- Who moves most?
-- Bytes and records by client and topic, and the share of all bytes.
WITH total AS (SELECT sum(bytes) AS bytes FROM events)
SELECT
    events.principal, events.client_id, events.operation, events.resource AS topic,
    sum(events.bytes) AS bytes,
    sum(events.records) AS records,
    sum(events.times) AS batches,
    CAST(sum(events.bytes) AS DOUBLE) / max(total.bytes) AS share
FROM events CROSS JOIN total
WHERE events.bytes IS NOT NULL
GROUP BY events.principal, events.client_id, events.operation, events.resource
ORDER BY bytes DESC, principal, client_id NULLS LAST, operation, topic
