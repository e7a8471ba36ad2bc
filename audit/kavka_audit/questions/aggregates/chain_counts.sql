-- What is there of each chain. A batch that was written twice shows the same sequence twice, so that sequences are
-- counted as bits, 32 in a row.
SELECT source, min(first) AS first, max(last) AS last, sum(bit_count(bits)) AS there
FROM (
    SELECT
        source, min(sequence) AS first, max(sequence) AS last,
        bit_or(CAST(1 AS BIGINT) << CAST(sequence % 32 AS INTEGER)) AS bits
    FROM entries WHERE sequence IS NOT NULL GROUP BY source, sequence - sequence % 32
) AS pieces
GROUP BY source
