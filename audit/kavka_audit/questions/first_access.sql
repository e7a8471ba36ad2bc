-- Who used something for the first time?
-- The first use of each topic by each principal. is_new: in the last `new_days`, and the trail goes back further, so
-- that it is no mere beginning of the trail.
WITH watched AS (
    SELECT min(start_ms) AS since_ms FROM events
), used AS (
    SELECT principal, operation, resource AS topic, min(start_ms) AS first_ms
    FROM events WHERE bytes IS NOT NULL GROUP BY principal, operation, resource
), users AS (
    -- Of several clients that began at the same moment, the first by address and name.
    SELECT
        used.principal, used.operation, used.topic, used.first_ms,
        coalesce(events.address, '') AS address, coalesce(events.client_id, '') AS client_id
    FROM events JOIN used
        ON used.principal = events.principal AND used.operation = events.operation
        AND used.topic = events.resource AND used.first_ms = events.start_ms
    WHERE events.bytes IS NOT NULL
)
SELECT
    users.principal, users.operation, users.topic, users.first_ms,
    min(users.address) AS address,
    min_by(users.client_id, (users.address, users.client_id)) AS client_id,
    users.first_ms > max(settings.now_ms - settings.new_days * 86400000)
        AND max(watched.since_ms) <= max(settings.now_ms - settings.new_days * 86400000) AS is_new
FROM users CROSS JOIN settings CROSS JOIN watched
GROUP BY users.principal, users.operation, users.topic, users.first_ms
ORDER BY first_ms DESC, principal, operation, topic
