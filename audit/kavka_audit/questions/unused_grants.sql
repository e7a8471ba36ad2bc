-- Which grants does nobody use?
-- Rules that allow READ, WRITE or ALL of topics and that no use in the trail needed. Rules on other resources, and
-- operations that the trail does not tell, are not judged. What a broker tells of clients or topics together, as there
-- were more than it tells apart, may have been by any client of that topic, or of any topic: such rules are not named.
-- A rule for a range of addresses is taken for a rule for every address.
WITH used AS (
    SELECT DISTINCT principal, address, operation, resource FROM uses
)
SELECT grants.principal, grants.host, grants.operation, grants.pattern_type, grants.resource
FROM grants
WHERE grants.permission = 'ALLOW'
    AND grants.resource_type = 'topic'
    AND grants.operation IN ('READ', 'WRITE', 'ALL')
    AND NOT EXISTS (
        SELECT 1 FROM used
        WHERE (grants.principal = 'User:*' OR used.principal IN (grants.principal, 'User:(others)'))
            AND (grants.host = '*' OR grants.host = used.address OR grants.host LIKE '%/%'
                OR used.principal = 'User:(others)')
            AND (grants.operation = 'ALL' OR grants.operation = used.operation)
            AND (used.resource = '(others)' OR CASE grants.pattern_type
                WHEN 'LITERAL' THEN grants.resource IN ('*', used.resource)
                ELSE left(used.resource, length(grants.resource)) = grants.resource
            END)
    )
ORDER BY grants.principal, grants.resource, grants.operation, grants.host, grants.pattern_type
