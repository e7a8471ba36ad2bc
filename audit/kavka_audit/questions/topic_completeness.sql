-- How complete is each topic?
-- The closed buckets of the last day together, by topic and tier as in the table `completeness`. worst_ms: the bucket
-- that misses most, or has most twice.
WITH lately AS (
    SELECT
        completeness.topic, completeness.tier, completeness.name, completeness.bucket_ms, completeness.expected,
        completeness.missing, completeness.duplicates, completeness.late,
        row_number() OVER (
            PARTITION BY completeness.topic, completeness.tier, completeness.name
            ORDER BY completeness.missing + completeness.duplicates DESC, completeness.bucket_ms DESC
        ) AS place
    FROM completeness CROSS JOIN settings
    WHERE completeness.is_closed AND completeness.bucket_ms >= settings.now_ms - 86400000
)
SELECT
    topic, tier, name,
    CASE WHEN sum(expected) = 0 THEN CAST(1 AS DOUBLE)
        ELSE 1 - CAST(sum(missing) AS DOUBLE) / CAST(sum(expected) AS DOUBLE)
    END AS completeness,
    sum(expected) AS expected, sum(missing) AS missing, sum(duplicates) AS duplicates, sum(late) AS late,
    max(CASE WHEN place = 1 AND missing + duplicates > 0 THEN bucket_ms END) AS worst_ms
FROM lately
GROUP BY topic, tier, name
ORDER BY completeness, duplicates DESC, topic, tier, name
