-- Did every record arrive, and once?
-- By topic and bucket of ten minutes of the records' own time. tier `log`: what producers say to have written (expected)
-- against what stands in the log. tier `consumer`: what stands in the log against what a group (name) has read, from
-- the first offset that it told of; a group is judged for a day after it last told something. A bucket is closed a
-- minute after its end; what is told of it later is `late`, and for two weeks it is judged again. Topics of which
-- clients tell nothing, and compacted topics, are not judged. A day of which nothing new was told stays as it was judged.
WITH recent AS (
    SELECT
        counts.tier, counts.name, counts.instance, counts.sequence, counts.place, counts.told_ms, counts.topic,
        counts.partition, counts.bucket_ms, counts.first_offset, counts.last_offset, counts.unplaced
    FROM counts
    JOIN counted ON counted.topic = counts.topic
    JOIN stale ON stale.day_ms = counts.bucket_ms - counts.bucket_ms % 86400000
), told AS (
    -- A report that stands twice counts once.
    SELECT tier, name, topic, partition, bucket_ms, first_offset, last_offset, unplaced, told_ms
    FROM (
        SELECT
            tier, name, topic, partition, bucket_ms, first_offset, last_offset, unplaced, told_ms,
            row_number() OVER (PARTITION BY instance, sequence, place ORDER BY told_ms) AS copy
        FROM recent WHERE tier IN ('producer', 'consumer')
    ) AS numbered
    WHERE copy = 1
), written AS (
    SELECT topic, partition, bucket_ms, first_offset, last_offset
    FROM told WHERE tier = 'producer' AND first_offset IS NOT NULL
), fetched AS (
    SELECT name, topic, partition, bucket_ms, first_offset, last_offset
    FROM told WHERE tier = 'consumer' AND first_offset IS NOT NULL
), logged AS (
    SELECT topic, partition, bucket_ms, first_offset, last_offset FROM recent WHERE tier = 'log'
), consumers AS (
    SELECT name, topic, min(bucket_ms) AS first_bucket_ms, max(told_ms) + 86400000 AS until_ms
    FROM counts WHERE tier = 'consumer' AND first_offset IS NOT NULL GROUP BY name, topic
), starts AS (
    SELECT name, topic, partition, min(first_offset) AS start_offset
    FROM counts WHERE tier = 'consumer' AND first_offset IS NOT NULL GROUP BY name, topic, partition
), sides AS (
    SELECT
        'log' AS tier, '' AS name, topic, partition, bucket_ms, first_offset, last_offset,
        1 AS expected, 0 AS found, 0 AS uncounted
    FROM written
    UNION ALL
    SELECT
        'log', '', logged.topic, logged.partition, logged.bucket_ms, logged.first_offset, logged.last_offset, 0, 1, 0
    FROM logged JOIN (SELECT DISTINCT topic FROM told WHERE tier = 'producer') AS writers ON writers.topic = logged.topic
    UNION ALL
    SELECT
        'log', '', counts.topic, counts.partition, places.bucket_ms, counts.first_offset, counts.last_offset, 0, 0, 1
    FROM counts JOIN (SELECT DISTINCT topic, partition, bucket_ms FROM written) AS places
        ON places.topic = counts.topic AND places.partition = counts.partition
    WHERE counts.tier = 'uncounted'
    UNION ALL
    SELECT
        'consumer', consumers.name, logged.topic, logged.partition, logged.bucket_ms,
        greatest(logged.first_offset, coalesce(starts.start_offset, logged.first_offset)), logged.last_offset, 1, 0, 0
    FROM logged
    JOIN consumers ON consumers.topic = logged.topic
    LEFT JOIN starts
        ON starts.name = consumers.name AND starts.topic = logged.topic AND starts.partition = logged.partition
    WHERE logged.last_offset >= coalesce(starts.start_offset, 0)
        AND (starts.start_offset IS NOT NULL OR logged.bucket_ms >= consumers.first_bucket_ms)
        AND logged.bucket_ms <= consumers.until_ms
    UNION ALL
    SELECT 'consumer', name, topic, partition, bucket_ms, first_offset, last_offset, 0, 1, 0 FROM fetched
), edges AS (
    SELECT
        tier, name, topic, partition, bucket_ms, edge,
        sum(expected) AS expected, sum(found) AS found, sum(uncounted) AS uncounted
    FROM (
        SELECT tier, name, topic, partition, bucket_ms, first_offset AS edge, expected, found, uncounted FROM sides
        UNION ALL
        SELECT tier, name, topic, partition, bucket_ms, last_offset + 1, -expected, -found, -uncounted FROM sides
    ) AS ends
    GROUP BY tier, name, topic, partition, bucket_ms, edge
), segments AS (
    -- From one edge to the next, the same number of clients and logs have each offset.
    SELECT
        tier, name, topic, bucket_ms,
        lead(edge) OVER (PARTITION BY tier, name, topic, partition, bucket_ms ORDER BY edge) - edge AS records,
        sum(expected) OVER (
            PARTITION BY tier, name, topic, partition, bucket_ms ORDER BY edge
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS expected,
        sum(found) OVER (
            PARTITION BY tier, name, topic, partition, bucket_ms ORDER BY edge
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS found,
        sum(uncounted) OVER (
            PARTITION BY tier, name, topic, partition, bucket_ms ORDER BY edge
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS uncounted
    FROM edges
), compared AS (
    SELECT
        tier, name, topic, bucket_ms, 0 AS unplaced,
        records * expected AS expected,
        records * greatest(expected - found, 0) AS missing,
        records * CASE WHEN tier = 'log' THEN greatest(found - expected, 0) ELSE greatest(found - 1, 0) END AS duplicates
    FROM segments WHERE uncounted = 0 AND records IS NOT NULL
    UNION ALL
    SELECT 'log', '', topic, bucket_ms, unplaced, 0, 0, 0 FROM told WHERE tier = 'producer' AND unplaced IS NOT NULL
), summed AS (
    SELECT
        tier, name, topic, bucket_ms,
        sum(unplaced) AS unplaced, sum(expected) AS expected, sum(missing) AS missing, sum(duplicates) AS duplicates
    FROM compared GROUP BY tier, name, topic, bucket_ms
), matched AS (
    -- Records without an offset are those of which nobody tells the offset.
    SELECT
        tier, name, topic, bucket_ms,
        expected + unplaced AS expected,
        missing + greatest(unplaced - duplicates, 0) AS missing,
        greatest(duplicates - unplaced, 0) AS duplicates
    FROM summed
), late AS (
    SELECT
        CASE WHEN tier = 'producer' THEN 'log' ELSE 'consumer' END AS tier,
        CASE WHEN tier = 'producer' THEN '' ELSE name END AS name,
        topic, bucket_ms, sum(coalesce(last_offset - first_offset + 1, unplaced)) AS records
    FROM told WHERE told_ms >= bucket_ms + 660000
    GROUP BY
        CASE WHEN tier = 'producer' THEN 'log' ELSE 'consumer' END,
        CASE WHEN tier = 'producer' THEN '' ELSE name END,
        topic, bucket_ms
), judged AS (
    SELECT
        matched.topic, matched.bucket_ms, matched.tier, matched.name, matched.expected, matched.missing,
        matched.duplicates, coalesce(late.records, 0) AS late,
        CASE WHEN matched.expected = 0 THEN CAST(1 AS DOUBLE)
            ELSE 1 - CAST(matched.missing AS DOUBLE) / CAST(matched.expected AS DOUBLE)
        END AS completeness,
        settings.now_ms >= matched.bucket_ms + 660000 AS is_closed
    FROM matched
    CROSS JOIN settings
    LEFT JOIN late
        ON late.tier = matched.tier AND late.name = matched.name AND late.topic = matched.topic
        AND late.bucket_ms = matched.bucket_ms
    WHERE matched.expected + matched.duplicates > 0
    UNION ALL
    SELECT
        verdicts.topic, verdicts.bucket_ms, verdicts.tier, verdicts.name, verdicts.expected, verdicts.missing,
        verdicts.duplicates, verdicts.late, verdicts.completeness, verdicts.is_closed
    FROM verdicts LEFT JOIN stale ON stale.day_ms = verdicts.bucket_ms - verdicts.bucket_ms % 86400000
    LEFT JOIN counted ON counted.topic = verdicts.topic
    WHERE stale.day_ms IS NULL OR counted.topic IS NULL
)
SELECT topic, bucket_ms, tier, name, expected, missing, duplicates, late, completeness, is_closed
FROM judged
ORDER BY CASE WHEN is_closed AND missing + duplicates > 0 THEN 0 ELSE 1 END, bucket_ms DESC, topic, tier, name
