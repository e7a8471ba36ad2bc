-- Who used something for the first time?
-- The first use of each topic by each principal. is_new: in the last `new_days`, and the trail goes back further, so
-- that it is no mere beginning of the trail.
WITH watched AS (
    SELECT min(start_ms) AS since_ms FROM events
), used AS (
    -- Of several clients that began at the same moment, the first by address and name.
    SELECT
        principal, operation, resource AS topic, coalesce(address, '') AS address, coalesce(client_id, '') AS client_id,
        min(start_ms) AS first_ms
    FROM events WHERE bytes IS NOT NULL GROUP BY principal, operation, resource, address, client_id
)
SELECT
    used.principal, used.operation, used.topic,
    min(used.first_ms) AS first_ms,
    min_by(used.address, (used.first_ms, used.address, used.client_id)) AS address,
    min_by(used.client_id, (used.first_ms, used.address, used.client_id)) AS client_id,
    min(used.first_ms) > max(settings.now_ms - settings.new_days * 86400000)
        AND max(watched.since_ms) <= max(settings.now_ms - settings.new_days * 86400000) AS is_new
FROM used CROSS JOIN settings CROSS JOIN watched
GROUP BY used.principal, used.operation, used.topic
ORDER BY first_ms DESC, principal, operation, topic
