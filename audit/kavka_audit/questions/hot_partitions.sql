-- Which partitions hold far more than the others of their topic?
-- Partitions with more than twice the mean of their topic, and at least 1,000 records.
WITH means AS (
    SELECT topic, avg(records) AS mean_records FROM partitions GROUP BY topic HAVING count(*) > 1
)
SELECT
    partitions.topic, partitions.partition, partitions.leader, partitions.records,
    partitions.records / means.mean_records AS times_the_mean
FROM partitions JOIN means ON means.topic = partitions.topic
WHERE partitions.records > 2 * means.mean_records AND partitions.records >= 1000
ORDER BY times_the_mean DESC, partitions.topic, partitions.partition
