-- What does the trail not tell?
-- missing: entries of a chain that are not there. unended: a chain that stops without its end although its broker began
-- another, as after a kill, or where its last entries were deleted. lost: events that found no room. missed: records that the topic deleted before they were
-- read. dead: records that are no entries of a trail. silent: a broker that keeps no trail. untold: reports of a client's
-- counts that are not there. unnamed: use of topics that a broker told together, as there were more than it tells apart;
-- entries is the number of batches and answers. ahead: a node whose entries are more than five minutes ahead of this run;
-- entries is by how many seconds. What was deleted from the lake, as it was old, is no gap.
WITH chains AS (
    -- Each registration of a broker has a higher epoch than the one before, whatever its clock says. Starts of a
    -- controller are named at random, and only their times tell which was later.
    SELECT
        node, source, TRY_CAST(split_part(source, '-', 2) AS BIGINT) AS epoch, max(last_ms) AS last_ms,
        max(CASE WHEN kind = 'end' THEN 1 ELSE 0 END) AS is_ended
    FROM entry_counts WHERE source IS NOT NULL GROUP BY node, source
), latest AS (
    SELECT
        source, is_ended, row_number() OVER (
            PARTITION BY node, CASE WHEN epoch IS NULL THEN 1 ELSE 0 END ORDER BY epoch DESC, last_ms DESC, source DESC
        ) AS place
    FROM chains
), told AS (
    SELECT tier, name, instance, max(sequence) - min(sequence) + 1 - count(DISTINCT sequence) AS absent
    FROM counts WHERE instance IS NOT NULL GROUP BY tier, name, instance
), clocks AS (
    SELECT entry_counts.node, max(entry_counts.last_ms) - max(settings.now_ms) AS ahead_ms
    FROM entry_counts CROSS JOIN settings WHERE entry_counts.node IS NOT NULL GROUP BY entry_counts.node
)
SELECT gap, place, entries FROM (
SELECT 'missing' AS gap, source AS place, absent AS entries FROM (
    SELECT
        chain_counts.source,
        chain_counts.last - chain_counts.first + 1 - chain_counts.there
            + greatest(chain_counts.first - coalesce(cuts.sequence, -1) - 1, 0) AS absent
    FROM chain_counts LEFT JOIN cuts ON cuts.source = chain_counts.source
) AS measured WHERE absent > 0
UNION ALL
SELECT 'unended', source, 0 FROM latest WHERE place > 1 AND is_ended = 0
UNION ALL
SELECT 'lost', source, sum(lost) FROM entry_counts WHERE kind = 'loss' GROUP BY source
UNION ALL
SELECT 'missed', concat('partition ', CAST(partition AS VARCHAR(12))), sum(lost) FROM entry_counts WHERE kind = 'missed' GROUP BY partition
UNION ALL
SELECT 'dead', concat('partition ', CAST(partition AS VARCHAR(12))), sum(entries) FROM entry_counts WHERE kind = 'dead' GROUP BY partition
UNION ALL
SELECT 'silent', concat('broker ', CAST(brokers.node AS VARCHAR(12))), 0
FROM brokers LEFT JOIN (SELECT DISTINCT node FROM entry_counts) AS telling ON telling.node = brokers.node
WHERE telling.node IS NULL
UNION ALL
SELECT 'untold', concat(tier, ' ', name, ' ', instance), absent FROM told WHERE absent > 0
UNION ALL
SELECT 'missed', concat('counts, partition ', CAST(partition AS VARCHAR(12))), sum(last_offset - first_offset + 1)
FROM counts WHERE tier = 'missed' GROUP BY partition
UNION ALL
SELECT 'dead', concat('counts, partition ', CAST(partition AS VARCHAR(12))), count(*)
FROM counts WHERE tier = 'dead' GROUP BY partition
UNION ALL
SELECT 'unnamed', concat(operation, ' (others)'), sum(times) FROM uses WHERE resource = '(others)' GROUP BY operation
UNION ALL
SELECT 'ahead', concat('node ', CAST(node AS VARCHAR(12))), CAST((ahead_ms - ahead_ms % 1000) / 1000 AS BIGINT)
FROM clocks WHERE ahead_ms > 300000
) AS found
ORDER BY CASE WHEN gap = 'unended' THEN 1 ELSE 0 END, gap, place
