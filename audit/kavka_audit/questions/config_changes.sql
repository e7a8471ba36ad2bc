-- Who changed what?
-- What was created, altered or deleted, with what it was before where the trail tells it; without the transactions that
-- a coordinator has aborted. The operator's changes come last (is_operator): they are those of the principal by which its
-- certificate names it. by_others_total is the number of all others.
SELECT
    end_ms, principal, client_id, address, operation, resource_type, resource, config_key, config_previous, config_value,
    is_operator, sum(CASE WHEN is_operator THEN 0 ELSE 1 END) OVER () AS by_others_total
FROM (
    SELECT *, coalesce(principal = 'User:CN=operator,O=kavka.dev', false) AS is_operator
    FROM denials_delays_changes
    WHERE class_uid = 6003 AND outcome = 'allowed' AND bytes IS NULL AND resource_type <> 'transactional_id'
) AS changes
ORDER BY
    is_operator, end_ms DESC, principal, operation, resource, config_key NULLS LAST, config_value NULLS LAST,
    config_previous NULLS LAST, client_id NULLS LAST, address NULLS LAST
