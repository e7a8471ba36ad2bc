-- Who was held back?
-- Delays by one quota of one client, less than five minutes apart, are one incident. quota_limit: that of its last delay.
WITH delays AS (
    SELECT
        principal, client_id, quota_type, resource AS entity, quota_limit,
        start_ms, end_ms, times, throttle_time_ms, throttle_time_ms_max,
        max(end_ms) OVER (
            PARTITION BY principal, client_id, quota_type, resource ORDER BY start_ms, end_ms
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ms
    FROM denials_delays_changes WHERE outcome = 'delayed'
), numbered AS (
    SELECT *, sum(CASE WHEN before_ms IS NULL OR start_ms - before_ms >= 300000 THEN 1 ELSE 0 END) OVER (
        PARTITION BY principal, client_id, quota_type, entity ORDER BY start_ms, end_ms
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS incident
    FROM delays
)
SELECT
    principal, client_id, quota_type, entity,
    max_by(quota_limit, (end_ms, quota_limit)) FILTER (WHERE quota_limit IS NOT NULL) AS quota_limit,
    min(start_ms) AS start_ms,
    max(end_ms) AS end_ms,
    sum(times) AS requests,
    sum(throttle_time_ms) AS throttle_time_ms,
    max(throttle_time_ms_max) AS throttle_time_ms_max
FROM numbered
GROUP BY principal, client_id, quota_type, entity, incident
ORDER BY throttle_time_ms DESC, start_ms, principal, client_id NULLS LAST, quota_type NULLS LAST, entity
