-- Who used something for the first time?
-- The first use of each topic by each principal. is_new: in the last `new_days`, and the trail goes back further, so
-- that it is no mere beginning of the trail.
WITH watched AS (
    SELECT min(since_ms) AS since_ms FROM entry_counts
), first_uses AS (
    SELECT principal, operation, resource AS topic, min(first_ms) AS first_ms
    FROM uses GROUP BY principal, operation, resource
), users AS (
    -- Of several clients that began at the same moment, the first by address and name.
    SELECT
        uses.principal, uses.operation, first_uses.topic, uses.first_ms,
        coalesce(uses.address, '') AS address, coalesce(uses.client_id, '') AS client_id
    FROM uses JOIN first_uses
        ON first_uses.principal = uses.principal AND first_uses.operation = uses.operation
        AND first_uses.topic = uses.resource AND first_uses.first_ms = uses.first_ms
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
