-- Who reads what whom wrote?
-- Each pair of a principal that wrote to a topic and one that read from it, with what was read in all. Of a topic the
-- 50 that wrote most and the 50 that read most are paired, as there may be as many pairs as writers times readers.
WITH written AS (
    SELECT
        resource AS topic, principal AS writer, sum(bytes) AS written_bytes,
        row_number() OVER (PARTITION BY resource ORDER BY sum(bytes) DESC, principal) AS place
    FROM uses WHERE operation = 'WRITE' GROUP BY resource, principal
), fetched AS (
    SELECT
        resource AS topic, principal AS reader, sum(bytes) AS read_bytes,
        least(max(last_ms), max(settings.now_ms)) AS last_read_ms,
        row_number() OVER (PARTITION BY resource ORDER BY sum(bytes) DESC, principal) AS place
    FROM uses CROSS JOIN settings WHERE operation = 'READ' GROUP BY resource, principal
)
SELECT
    written.topic, written.writer, fetched.reader, written.written_bytes, fetched.read_bytes, fetched.last_read_ms
FROM written JOIN fetched ON fetched.topic = written.topic
WHERE written.place <= 50 AND fetched.place <= 50
ORDER BY fetched.read_bytes DESC, written.topic, written.writer, fetched.reader
