-- Who moves most?
-- Bytes and records by client and topic, and the share of all bytes.
WITH total AS (SELECT sum(bytes) AS bytes FROM uses)
SELECT
    uses.principal, uses.client_id, uses.operation, uses.resource AS topic,
    sum(uses.bytes) AS bytes,
    sum(uses.records) AS records,
    sum(uses.times) AS batches,
    CAST(sum(uses.bytes) AS DOUBLE) / max(total.bytes) AS share
FROM uses CROSS JOIN total
GROUP BY uses.principal, uses.client_id, uses.operation, uses.resource
ORDER BY bytes DESC, principal, client_id NULLS LAST, operation, topic
