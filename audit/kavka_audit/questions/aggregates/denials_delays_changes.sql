-- What was told and is no use of a topic that was allowed: refusals, delays, and changes.
SELECT
    class_uid, outcome, source, node, start_ms, end_ms, times, operation, principal, client_id, address, resource_type,
    resource, bytes, quota_type, quota_entity, quota_limit, throttle_time_ms, throttle_time_ms_max, config_key,
    config_value, config_previous
FROM events
WHERE outcome IN ('denied', 'delayed') OR (class_uid = 6003 AND outcome = 'allowed' AND bytes IS NULL)
