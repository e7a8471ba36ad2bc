-- Who pays, by owner or another label?
-- The bill once for each label that was asked for, in parts by its values. Use counts for the label of its principal,
-- otherwise of its topic, otherwise of the cluster; an empty value has none of them. The parts of each label add up to
-- the bill, to the cent.
WITH used AS (
    SELECT
        principal, resource AS topic,
        sum(CASE WHEN operation = 'WRITE' THEN bytes ELSE 0 END) AS written_bytes,
        sum(CASE WHEN operation = 'READ' THEN bytes ELSE 0 END) AS read_bytes,
        sum(bytes) AS bytes
    FROM uses GROUP BY principal, resource
), labelled AS (
    SELECT
        wanted.label, coalesce(of_principal.value, of_topic.value, of_cluster.value, '') AS value,
        used.written_bytes, used.read_bytes, used.bytes
    FROM used
    CROSS JOIN (SELECT DISTINCT label FROM labels) AS wanted
    LEFT JOIN labels AS of_principal
        ON of_principal.kind = 'principal' AND of_principal.name = used.principal AND of_principal.label = wanted.label
    LEFT JOIN labels AS of_topic
        ON of_topic.kind = 'topic' AND of_topic.name = used.topic AND of_topic.label = wanted.label
    LEFT JOIN labels AS of_cluster ON of_cluster.kind = 'cluster' AND of_cluster.label = wanted.label
), summed AS (
    SELECT label, value, sum(written_bytes) AS written_bytes, sum(read_bytes) AS read_bytes, sum(bytes) AS bytes
    FROM labelled GROUP BY label, value
), total AS (
    SELECT sum(bytes) AS bytes FROM used
), floors AS (
    SELECT
        summed.label, summed.value, summed.written_bytes, summed.read_bytes, summed.bytes,
        CAST(summed.bytes AS DOUBLE) / total.bytes AS share,
        CAST(floor(CAST(summed.bytes AS DOUBLE) / total.bytes * settings.bill_cents) AS BIGINT) AS cents,
        settings.bill_cents
    FROM summed CROSS JOIN total CROSS JOIN settings WHERE total.bytes > 0
), ranked AS (
    SELECT
        label, value, written_bytes, read_bytes, bytes, share, cents,
        row_number() OVER (PARTITION BY label ORDER BY share * bill_cents - cents DESC, value) AS place,
        bill_cents - sum(cents) OVER (PARTITION BY label) AS missing
    FROM floors
)
SELECT
    label, value, written_bytes, read_bytes, share,
    CAST(cents + CASE WHEN place <= missing THEN 1 ELSE 0 END AS BIGINT) AS cents
FROM ranked
ORDER BY label, bytes DESC, value
