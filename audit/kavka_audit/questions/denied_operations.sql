-- Who was refused?
-- was_allowed: the same principal has used the same resource in the same way at another time. A failed login has no
-- principal, as what it said was not proved.
WITH allowed AS (
    SELECT DISTINCT principal, operation, resource FROM uses
    WHERE EXISTS (
        SELECT 1 FROM others AS refusals
        WHERE refusals.outcome = 'denied' AND refusals.principal = uses.principal
            AND refusals.operation = uses.operation AND refusals.resource = uses.resource
    )
)
SELECT
    others.principal, others.operation, others.resource_type, others.resource, others.address,
    sum(others.times) AS times,
    min(others.start_ms) AS first_ms,
    max(others.end_ms) AS last_ms,
    max(CASE WHEN allowed.principal IS NULL THEN 0 ELSE 1 END) = 1 AS was_allowed
FROM others
LEFT JOIN allowed
    ON allowed.principal = others.principal
    AND allowed.operation = others.operation
    AND allowed.resource = others.resource
WHERE others.outcome = 'denied'
GROUP BY others.principal, others.operation, others.resource_type, others.resource, others.address
ORDER BY times DESC, principal NULLS LAST, operation, resource, address NULLS LAST, resource_type
