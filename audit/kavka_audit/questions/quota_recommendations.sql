-- Which limit would have fitted those who were held back?
-- The 95th percentile of an entity's demand at one broker and minute, and 30 % more, in steps of 64 KiB a second;
-- never less than the limit that there was. A client that is held back shows its limit and not its demand, so its
-- rate is divided by the share of the time in which it was free; a share below a quarter is taken as a quarter.
WITH held AS (
    SELECT
        resource AS entity, max(quota_entity) AS quota_entity, max(node) AS node, quota_type, source, start_ms - start_ms % 60000 AS minute_ms, principal, client_id,
        max(quota_limit) AS quota_limit,
        sum(throttle_time_ms) AS throttle_time_ms
    FROM denials_delays_changes WHERE outcome = 'delayed' AND quota_type IN ('produce', 'fetch')
    GROUP BY resource, quota_type, source, start_ms - start_ms % 60000, principal, client_id
), used AS (
    SELECT
        source, minute_ms, principal, client_id, bytes,
        CASE WHEN operation = 'WRITE' THEN 'produce' ELSE 'fetch' END AS quota_type,
        CASE WHEN last_ms - first_ms > 1000 THEN last_ms - first_ms ELSE 1000 END AS span_ms
    FROM throttled_uses
), free AS (
    SELECT
        held.entity, held.quota_entity, held.node, held.quota_type, held.source, held.minute_ms, held.quota_limit,
        CAST(used.bytes AS DOUBLE) * 1000 / used.span_ms AS rate,
        CASE
            WHEN held.throttle_time_ms > 0.75 * used.span_ms THEN 0.25
            ELSE 1.0 - held.throttle_time_ms / CAST(used.span_ms AS DOUBLE)
        END AS share
    FROM held JOIN used
        ON used.source = held.source AND used.minute_ms = held.minute_ms AND used.principal = held.principal
        AND used.client_id = held.client_id AND used.quota_type = held.quota_type
), demands AS (
    SELECT
        entity, quota_type, source, minute_ms,
        max(quota_entity) AS quota_entity, max(node) AS node, max(quota_limit) AS quota_limit,
        sum(rate) AS rate, sum(rate / share) AS demand
    FROM free GROUP BY entity, quota_type, source, minute_ms
), fitting AS (
    SELECT
        entity, quota_type,
        max(quota_entity) AS quota_entity,
        max_by(node, (demand, node)) FILTER (WHERE node IS NOT NULL) AS node,
        max(quota_limit) AS quota_limit,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY rate) AS rate,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY demand) AS demand,
        count(*) AS minutes
    FROM demands GROUP BY entity, quota_type
)
SELECT
    entity, quota_type, quota_limit, rate, demand,
    CASE
        WHEN ceil(demand * 1.3 / 65536) * 65536 > quota_limit THEN ceil(demand * 1.3 / 65536) * 65536
        ELSE quota_limit
    END AS fitting_limit,
    minutes, node, quota_entity
FROM fitting
ORDER BY demand DESC, entity, quota_type
