"""Topics, partitions and the disks that hold them."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import PARTITION, Kind, Row

PARTITIONS: Final[tuple[Row, ...]] = (
    ("kafka_server_brokertopicmetrics_bytesin_total", Kind.COUNTER, ("topic",), "Bytes appended by producers."),
    ("kafka_server_brokertopicmetrics_bytesout_total", Kind.COUNTER, ("topic",), "Bytes read by consumers."),
    (
        "kafka_server_brokertopicmetrics_replicationbytesin_total",
        Kind.COUNTER,
        ("topic",),
        "Bytes copied from leaders by this broker's followers.",
    ),
    (
        "kafka_server_brokertopicmetrics_totalproducerequests_total",
        Kind.COUNTER,
        ("topic",),
        "Attempts to append to a partition led here, those that were refused too.",
    ),
    (
        "kafka_server_brokertopicmetrics_totalfetchrequests_total",
        Kind.COUNTER,
        ("topic",),
        "Times that a partition was read for a consumer or a follower.",
    ),
    (
        "kafka_server_brokertopicmetrics_messagesin_total",
        Kind.COUNTER,
        ("topic",),
        "Records appended by producers.",
    ),
    ("kafka_server_replicamanager_partitioncount", Kind.GAUGE, (), "Replicas on this broker."),
    ("kafka_server_replicamanager_leadercount", Kind.GAUGE, (), "Partitions that this broker leads."),
    (
        "kafka_server_replicamanager_underreplicatedpartitions",
        Kind.GAUGE,
        (),
        "Partitions led here with replicas out of sync.",
    ),
    (
        "kafka_server_replicamanager_underminisrpartitioncount",
        Kind.GAUGE,
        (),
        "Partitions led here that refuse acks=all because too few replicas are in sync.",
    ),
    (
        "kafka_server_replicamanager_atminisrpartitioncount",
        Kind.GAUGE,
        (),
        "Partitions led here that would refuse acks=all if one more replica fell out of sync.",
    ),
    (
        "kavka_replica_lag_records_max",
        Kind.GAUGE,
        ("follower",),
        "Records that a broker lacks of the partition led here that it lacks most of, dead or alive.",
    ),
    (
        "kafka_server_replicamanager_isrshrinks_total",
        Kind.COUNTER,
        (),
        "In-sync sets led here that lost a replica.",
    ),
    ("kafka_server_replicamanager_isrexpands_total", Kind.COUNTER, (), "In-sync sets led here that got one back."),
    ("kafka_log_log_size", Kind.GAUGE, PARTITION, "Bytes of the partition's segments on this broker."),
    ("kafka_log_log_logstartoffset", Kind.GAUGE, PARTITION, "First offset that can be read."),
    ("kafka_log_log_logendoffset", Kind.GAUGE, PARTITION, "Offset that the next record will get."),
    (
        "kafka_log_logmanager_offlinelogdirectorycount",
        Kind.GAUGE,
        (),
        "Log directories that have failed; their replicas are offline.",
    ),
    ("kavka_log_directory_size_bytes", Kind.GAUGE, ("directory",), "Bytes of the log directory's volume."),
    ("kavka_log_directory_free_bytes", Kind.GAUGE, ("directory",), "Bytes of it that are left."),
    (
        "kavka_set_aside_logs",
        Kind.GAUGE,
        ("directory", "kind"),
        "Logs out of service whose bytes are still on the disk: delete, or stray (damaged or unknown).",
    ),
    ("kavka_set_aside_bytes", Kind.GAUGE, ("directory", "kind"), "Bytes of logs that are out of service."),
)
