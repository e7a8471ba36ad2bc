-- Who was refused?
-- was_allowed: the same principal has used the same resource in the same way at another time. A failed login has no
-- principal, as what it said was not proved.
WITH allowed AS (
    SELECT DISTINCT principal, operation, resource FROM events AS uses
    WHERE bytes IS NOT NULL AND EXISTS (
        SELECT 1 FROM events AS refusals
        WHERE refusals.outcome = 'denied' AND refusals.principal = uses.principal
            AND refusals.operation = uses.operation AND refusals.resource = uses.resource
    )
)
SELECT
    events.principal, events.operation, events.resource_type, events.resource, events.address,
    sum(events.times) AS times,
    min(events.start_ms) AS first_ms,
    max(events.end_ms) AS last_ms,
    max(CASE WHEN allowed.principal IS NULL THEN 0 ELSE 1 END) = 1 AS was_allowed
FROM events
LEFT JOIN allowed
    ON allowed.principal = events.principal
    AND allowed.operation = events.operation
    AND allowed.resource = events.resource
WHERE events.outcome = 'denied'
GROUP BY events.principal, events.operation, events.resource_type, events.resource, events.address
ORDER BY times DESC, principal NULLS LAST, operation, resource, address NULLS LAST, resource_type
