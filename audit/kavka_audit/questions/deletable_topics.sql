-- Which topics can be deleted?
-- Topics that nobody has written to or read from for `unused_days`, as far as every broker has kept a trail for as long.
-- Where a broker had more topics in use than its trail tells apart, since then, none is named: see the table audit_gaps.
-- A use in the future, by a node whose clock is ahead, counts as one of now. last_principal: of the last use that the
-- trail tells, NULL where it tells none. owner: the label `owner` of the topic.
WITH watched AS (
    SELECT max(telling.first_ms) AS since_ms, count(telling.first_ms) = count(*) AS is_whole
    FROM brokers
    LEFT JOIN (SELECT node, min(first_ms) AS first_ms FROM entry_counts GROUP BY node) AS telling
        ON telling.node = brokers.node
), used_by AS (
    SELECT resource, principal, operation, least(max(last_ms), max(settings.now_ms)) AS end_ms
    FROM uses CROSS JOIN settings GROUP BY resource, principal, operation
), used AS (
    SELECT
        resource AS topic,
        max(CASE WHEN operation = 'WRITE' THEN end_ms END) AS last_write_ms,
        max(CASE WHEN operation = 'READ' THEN end_ms END) AS last_read_ms,
        max(end_ms) AS last_use_ms,
        max_by(principal, (end_ms, principal)) AS last_principal
    FROM used_by GROUP BY resource
), unnamed AS (
    SELECT max(last_ms) AS last_ms FROM uses WHERE resource = '(others)'
)
SELECT topics.topic, topics.partitions, topics.bytes, used.last_write_ms, used.last_read_ms, used.last_principal,
    labels.value AS owner
FROM topics
CROSS JOIN watched
CROSS JOIN unnamed
CROSS JOIN settings
LEFT JOIN used ON used.topic = topics.topic
LEFT JOIN labels ON labels.kind = 'topic' AND labels.name = topics.topic AND labels.label = 'owner'
WHERE NOT topics.is_internal
    AND watched.is_whole
    AND watched.since_ms <= settings.now_ms - settings.unused_days * 86400000
    AND coalesce(unnamed.last_ms, 0) <= settings.now_ms - settings.unused_days * 86400000
    AND coalesce(used.last_use_ms, 0) <= settings.now_ms - settings.unused_days * 86400000
ORDER BY topics.bytes DESC, topics.topic
