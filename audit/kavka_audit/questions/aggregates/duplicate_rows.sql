-- Which rows show an entry that another row shows too: a batch may be written twice, and counts once. Few pieces of
-- chains have more rows than sequences, and only those are looked at row by row.
SELECT found.topic_id, found.partition, found.at_offset
FROM (
    SELECT
        entries.topic_id, entries.partition, entries.offset AS at_offset,
        row_number() OVER (
            PARTITION BY entries.source, entries.sequence
            ORDER BY entries.partition, entries.offset, entries.topic_id
        ) AS place
    FROM entries JOIN (
        SELECT source, sequence - sequence % 32 AS first
        FROM entries WHERE sequence IS NOT NULL
        GROUP BY source, sequence - sequence % 32
        HAVING count(*) > bit_count(bit_or(CAST(1 AS BIGINT) << CAST(sequence % 32 AS INTEGER)))
    ) AS pieces
        ON pieces.source = entries.source AND pieces.first = entries.sequence - entries.sequence % 32
) AS found
WHERE found.place > 1
