-- Who used something for the first time?
-- The first use of each topic by each principal. is_new: in the last `new_days`, and the trail goes back further, so
-- that it is no mere beginning of the trail.
WITH watched AS (SELECT min(start_ms) AS since_ms FROM events)
SELECT
    events.principal, events.operation, events.resource AS topic,
    min(events.start_ms) AS first_ms,
    min_by(events.address, events.start_ms) AS address,
    min_by(events.client_id, events.start_ms) AS client_id,
    min(events.start_ms) > max(settings.now_ms - settings.new_days * 86400000)
        AND max(watched.since_ms) <= max(settings.now_ms - settings.new_days * 86400000) AS is_new
FROM events CROSS JOIN settings CROSS JOIN watched
WHERE events.bytes IS NOT NULL
GROUP BY events.principal, events.operation, events.resource
ORDER BY first_ms DESC, principal, operation, topic
