-- Who was refused?
-- was_allowed: the same principal has used the same topic in the same way at another time, as far as the trail names
-- both. A failed login has no principal, as what it said was not proved.
WITH allowed AS (
    SELECT DISTINCT principal, operation, resource FROM uses
    WHERE resource <> '(others)' AND EXISTS (
        SELECT 1 FROM denials_delays_changes AS refusals
        WHERE refusals.outcome = 'denied' AND refusals.principal = uses.principal
            AND refusals.operation = uses.operation AND refusals.resource = uses.resource
    )
)
SELECT
    refused.principal, refused.operation, refused.resource_type, refused.resource, refused.address,
    sum(refused.times) AS times,
    min(refused.start_ms) AS first_ms,
    max(refused.end_ms) AS last_ms,
    max(CASE WHEN allowed.principal IS NULL THEN 0 ELSE 1 END) = 1 AS was_allowed
FROM denials_delays_changes AS refused
LEFT JOIN allowed
    ON refused.resource_type = 'topic'
    AND allowed.principal = refused.principal
    AND allowed.operation = refused.operation
    AND allowed.resource = refused.resource
WHERE refused.outcome = 'denied'
GROUP BY refused.principal, refused.operation, refused.resource_type, refused.resource, refused.address
ORDER BY times DESC, principal NULLS LAST, operation, resource, address NULLS LAST, resource_type
