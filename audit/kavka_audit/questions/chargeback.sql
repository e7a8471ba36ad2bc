-- Who pays for what?
-- The bill in parts by the bytes that each principal has written and read; the parts add up to the bill, to the cent.
WITH used AS (
    SELECT
        principal,
        sum(CASE WHEN operation = 'WRITE' THEN bytes ELSE 0 END) AS written_bytes,
        sum(CASE WHEN operation = 'READ' THEN bytes ELSE 0 END) AS read_bytes,
        sum(bytes) AS bytes
    FROM uses GROUP BY principal
), total AS (
    SELECT sum(bytes) AS bytes FROM used
), floors AS (
    SELECT
        used.principal, used.written_bytes, used.read_bytes, used.bytes,
        CAST(used.bytes AS DOUBLE) / total.bytes AS share,
        CAST(floor(CAST(used.bytes AS DOUBLE) / total.bytes * settings.bill_cents) AS BIGINT) AS cents,
        settings.bill_cents
    FROM used CROSS JOIN total CROSS JOIN settings WHERE total.bytes > 0
), ranked AS (
    SELECT *, row_number() OVER (ORDER BY share * bill_cents - cents DESC, principal) AS place FROM floors
), missing AS (
    SELECT max(bill_cents) - sum(cents) AS cents FROM floors
)
SELECT
    ranked.principal, ranked.written_bytes, ranked.read_bytes, ranked.share,
    CAST(ranked.cents + CASE WHEN ranked.place <= missing.cents THEN 1 ELSE 0 END AS BIGINT) AS cents
FROM ranked CROSS JOIN missing
ORDER BY ranked.bytes DESC, ranked.principal
