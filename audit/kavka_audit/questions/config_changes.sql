-- Who changed what?
-- What was created, altered or deleted, with what it was before where the trail tells it; without the transactions that
-- a coordinator has aborted.
SELECT
    end_ms, principal, client_id, address, operation, resource_type, resource, config_key, config_previous, config_value
FROM denials_delays_changes
WHERE class_uid = 6003 AND outcome = 'allowed' AND bytes IS NULL AND resource_type <> 'transactional_id'
ORDER BY
    end_ms DESC, principal, operation, resource, config_key NULLS LAST, config_value NULLS LAST,
    config_previous NULLS LAST, client_id NULLS LAST, address NULLS LAST
