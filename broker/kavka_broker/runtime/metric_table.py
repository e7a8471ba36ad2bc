"""Every metric of the broker: name, kind, labels and what it means. The reference page is made from this table.

Two vocabularies. `kafka_*` are the names under which Apache Kafka's figures have been stored for years, so that
dashboards and alerts keep working. `kavka_*` follow Prometheus' rules: base units, counters that can be summed, and
the limit beside the usage.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Prometheus' types of metrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    UNTYPED = "unknown"


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with all its series."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


CLIENT = ("user", "client_id")
QUOTA = (*CLIENT, "quota_type")
SAID = ("client_id", "client_software", "metric")
PARTITION = ("topic", "partition")
ENTITY = ("entity", "quota_type")

FAMILIES = tuple(
    Family(*row)
    for row in (
        ("kavka_build_info", Kind.GAUGE, ("version", "python"), "Always 1; the labels say what is running."),
        ("kavka_broker_info", Kind.GAUGE, ("node_id", "cluster_id"), "Always 1; the labels say who this is."),
        ("kavka_broker_ready", Kind.GAUGE, (), "1 when the broker serves clients; see /readyz for what is missing."),
        (
            "kavka_assertions_failed_total",
            Kind.COUNTER,
            (),
            "Assertions that failed on this node, each of which ended a process; reports are in failed-assertions.",
        ),
        (
            "kavka_memory_anonymous_bytes",
            Kind.GAUGE,
            (),
            "Memory of the process without mapped log files, which process_resident_memory_bytes counts too.",
        ),
        ("kavka_loop_held_total", Kind.COUNTER, ("callback",), "Callbacks that held the loop for more than 10 ms."),
        ("kavka_loop_held_seconds_total", Kind.COUNTER, ("callback",), "Time for which these held the loop."),
        ("kavka_client_waited_seconds_total", Kind.COUNTER, CLIENT, "Time a client's connections waited for others."),
        (
            "kavka_loop_cpu_seconds_total",
            Kind.COUNTER,
            (),
            "CPU time of the loop's thread. One second a second is all that there is.",
        ),
        (
            "kavka_loop_idle_ratio",
            Kind.GAUGE,
            (),
            "Share of the last half minute, or since an earlier scrape, in which the loop's thread did nothing.",
        ),
        ("kavka_disk_read_bytes_total", Kind.COUNTER, (), "Bytes that the process had the disks read."),
        ("kavka_disk_written_bytes_total", Kind.COUNTER, (), "Bytes that the process had the disks write."),
        (
            "kavka_series_omitted",
            Kind.GAUGE,
            ("family",),
            "Series beyond the bound of a family, which are not shown.",
        ),
        # clients and their quotas
        ("kavka_client_bytes_total", Kind.COUNTER, QUOTA, "Bytes that count against a byte quota, or would."),
        (
            "kavka_client_throttle_seconds_total",
            Kind.COUNTER,
            QUOTA,
            "Time for which connections were held back, each for itself.",
        ),
        ("kavka_client_throttled_requests_total", Kind.COUNTER, QUOTA, "Requests whose client was told to wait."),
        (
            "kavka_client_quota_limit_bytes_per_second",
            Kind.GAUGE,
            (*QUOTA, "level", "source"),
            "The limit that applies on this broker, its level (1 to 8; 0: a callback's) and its entity.",
        ),
        (
            "kavka_quota_callback_failures_total",
            Kind.COUNTER,
            (),
            "Calls of the quota callback class that raised, or returned what is no answer.",
        ),
        (
            "kavka_quota_callback_waiting",
            Kind.GAUGE,
            (),
            "Clients for which the quota callback class is yet to answer.",
        ),
        (
            "kavka_client_loop_seconds_total",
            Kind.COUNTER,
            CLIENT,
            "Time for which requests had the loop: what request_percentage limits, 100 being all of it.",
        ),
        (
            "kavka_client_quota_limit_loop_ratio",
            Kind.GAUGE,
            (*CLIENT, "level", "source"),
            "request_percentage as a part of the loop (1 is 100), its level (1 to 8) and the entity that it is set on.",
        ),
        (
            "kavka_exempt_loop_seconds_total",
            Kind.COUNTER,
            (),
            "Time for which requests had the loop that count against no quota: of other nodes, and with acks=0.",
        ),
        (
            "kavka_client_mutations_total",
            Kind.COUNTER,
            CLIENT,
            "Partitions that clients have created and deleted, as far as this node has decided it.",
        ),
        (
            "kavka_client_quota_limit_mutations_per_second",
            Kind.GAUGE,
            (*CLIENT, "level", "source"),
            "The limit of partitions a second, its level (1 to 8) and the entity that it is set on.",
        ),
        (
            "kavka_client_label_overflow_total",
            Kind.COUNTER,
            ("quota_type",),
            "How often a client got no series of its own and was counted under __other__.",
        ),
        (
            "kavka_throttle_duration_seconds",
            Kind.HISTOGRAM,
            ("quota_type",),
            "throttle_time_ms of throttled requests: what they were told to wait.",
        ),
        # configured quotas
        ("kavka_quota_limit", Kind.GAUGE, ENTITY, "The limit of a configured quota on this broker, in its key's unit."),
        (
            "kavka_quota_usage",
            Kind.GAUGE,
            ENTITY,
            "What the client, or the partition, that uses most of this quota uses, in the unit of the limit.",
        ),
        ("kavka_quota_shares", Kind.GAUGE, ENTITY, "Allowances of this quota that were drawn on within the hour."),
        (
            "kavka_quota_throttled_seconds_total",
            Kind.COUNTER,
            ENTITY,
            "Time in which this quota held at least one connection back.",
        ),
        ("kavka_quota_throttled_connections", Kind.GAUGE, ENTITY, "Connections that this quota holds back, now."),
        (
            "kavka_quota_observed_limit",
            Kind.GAUGE,
            ENTITY,
            "A limit that is only observed, on this broker, in its key's unit.",
        ),
        (
            "kavka_quota_observed_usage",
            Kind.GAUGE,
            ENTITY,
            "What the client that uses most of it would use of an observed limit.",
        ),
        (
            "kavka_quota_observed_throttled_seconds_total",
            Kind.COUNTER,
            ENTITY,
            "Time in which an observed limit would have held somebody back.",
        ),
        (
            "kavka_client_demand_bytes_per_second",
            Kind.GAUGE,
            QUOTA,
            "What a client under a byte quota would use without it: its rate over the share of time it was not held.",
        ),
        ("kavka_quota_shadowed", Kind.GAUGE, ENTITY, "1 where other quotas win for all of its clients."),
        ("kafka_server_produce_byte_rate", Kind.GAUGE, CLIENT, "Bytes a second as the produce quota measures them."),
        ("kafka_server_fetch_byte_rate", Kind.GAUGE, CLIENT, "Bytes a second as the fetch quota measures them."),
        (
            "kafka_server_produce_throttle_time",
            Kind.GAUGE,
            CLIENT,
            "Average throttle_time_ms of throttled produce requests.",
        ),
        (
            "kafka_server_fetch_throttle_time",
            Kind.GAUGE,
            CLIENT,
            "Average throttle_time_ms of throttled fetch requests.",
        ),
        (
            "kafka_server_request_request_time",
            Kind.GAUGE,
            CLIENT,
            "Percentage of the loop that clients under a request quota use, as the quota measures it.",
        ),
        ("kafka_server_request_throttle_time", Kind.GAUGE, CLIENT, "Average throttle_time_ms under a request quota."),
        (
            "kafka_server_request_exempt_request_time",
            Kind.GAUGE,
            (),
            "Percentage of the loop that requests use which count against no quota.",
        ),
        (
            "kafka_server_controllermutation_mutation_rate",
            Kind.GAUGE,
            CLIENT,
            "Partitions a second that clients under a quota create and delete; on the active controller.",
        ),
        (
            "kafka_server_controllermutation_tokens",
            Kind.GAUGE,
            CLIENT,
            "Partitions that may be created or deleted at once; below 0 the quota is used up.",
        ),
        (
            "kafka_server_controllermutation_throttle_time",
            Kind.GAUGE,
            CLIENT,
            "Average throttle_time_ms of requests that created or deleted too much.",
        ),
        *(
            (
                f"kafka_server_{kind}replication_byte_rate",
                Kind.GAUGE,
                (),
                f"Bytes a second of throttled replication, as {what} measures them.",
            )
            for kind, what in (
                ("leader", "leader.replication.throttled.rate"),
                ("follower", "follower.replication.throttled.rate"),
                ("alterlogdirs", "replica.alter.log.dirs.io.max.bytes.per.second"),
            )
        ),
        # requests and connections
        ("kavka_requests_total", Kind.COUNTER, ("api",), "Requests answered."),
        ("kavka_request_errors_total", Kind.COUNTER, ("api",), "Requests that ended in an error of the whole request."),
        (
            "kavka_request_seconds_total",
            Kind.COUNTER,
            ("api",),
            "Time between the arrival of requests and their answers, waiting included.",
        ),
        ("kavka_connections", Kind.GAUGE, ("listener",), "Open connections."),
        ("kavka_connections_throttled", Kind.GAUGE, ("listener",), "Connections muted because of a quota, now."),
        ("kavka_connections_accepted_total", Kind.COUNTER, ("listener",), "Connections that came in."),
        (
            "kafka_server_socket_server_metrics_connection_accept_rate",
            Kind.GAUGE,
            ("listener",),
            "Connections a second, as max.connection.creation.rate of the listener measures them.",
        ),
        (
            "kafka_server_socket_server_metrics_broker_connection_accept_rate",
            Kind.GAUGE,
            (),
            "Connections a second, as max.connection.creation.rate of the broker measures them.",
        ),
        (
            "kavka_address_connection_rate",
            Kind.GAUGE,
            ("ip",),
            "Connections a second of addresses under connection_creation_rate, of the last to come.",
        ),
        (
            "kavka_connections_refused_total",
            Kind.COUNTER,
            ("listener",),
            "Connections closed by the broker, with a reason.",
        ),
        ("kavka_network_received_bytes_total", Kind.COUNTER, ("listener",), "Bytes read from clients."),
        ("kavka_network_sent_bytes_total", Kind.COUNTER, ("listener",), "Bytes written to clients."),
        # topics, partitions, controller
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
        # the log cleaner
        (
            "kafka_log_logcleaner_max_buffer_utilization_percent",
            Kind.GAUGE,
            (),
            "How full the offset map of the last cleaning was. Near log.cleaner.io.buffer.load.factor, it ended early.",
        ),
        (
            "kafka_log_logcleaner_cleaner_recopy_percent",
            Kind.GAUGE,
            (),
            "What the last cleaning has written, of what it has replaced.",
        ),
        ("kafka_log_logcleaner_max_clean_time_secs", Kind.GAUGE, (), "How long the last cleaning took."),
        (
            "kafka_log_logcleaner_max_compaction_delay_secs",
            Kind.GAUGE,
            (),
            "How long the log that has waited most is beyond max.compaction.lag.ms.",
        ),
        (
            "kafka_log_logcleanermanager_max_dirty_percent",
            Kind.GAUGE,
            (),
            "Dirty share of the dirtiest compacted log, when the cleaner looked last.",
        ),
        (
            "kavka_cleaner_since_last_run_seconds",
            Kind.GAUGE,
            (),
            "Time since the cleaner looked for a log to clean.",
        ),
        (
            "kavka_cleaner_uncleanable_partitions",
            Kind.GAUGE,
            ("directory",),
            "Compacted logs that hold something that cannot be read, and are not cleaned.",
        ),
        (
            "kafka_log_logcleanermanager_uncleanable_bytes",
            Kind.GAUGE,
            ("directory",),
            "Bytes of logs that are not cleaned because something in them cannot be read.",
        ),
        ("kavka_cleaner_runs_total", Kind.COUNTER, (), "Cleanings that came to their end."),
        ("kavka_cleaner_read_bytes_total", Kind.COUNTER, (), "Bytes that cleanings have read."),
        ("kavka_cleaner_written_bytes_total", Kind.COUNTER, (), "Bytes that cleanings have written."),
        (
            "kavka_cleaner_progress_ratio",
            Kind.GAUGE,
            (),
            "How far the cleaning under way has come, from 0 to 1; of several the least far, 0 where there is none.",
        ),
        ("kafka_controller_kafkacontroller_activecontrollercount", Kind.GAUGE, (), "1 on the active controller."),
        ("kafka_controller_kafkacontroller_globaltopiccount", Kind.GAUGE, (), "Topics of the cluster."),
        ("kafka_controller_kafkacontroller_globalpartitioncount", Kind.GAUGE, (), "Partitions of the cluster."),
        ("kafka_controller_kafkacontroller_offlinepartitionscount", Kind.GAUGE, (), "Partitions without a leader."),
        (
            "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
            Kind.GAUGE,
            (),
            "Partitions that another than their first replica leads.",
        ),
        ("kafka_controller_kafkacontroller_activebrokercount", Kind.GAUGE, (), "Brokers that are not fenced."),
        (
            "kafka_controller_kafkacontroller_fencedbrokercount",
            Kind.GAUGE,
            (),
            "Brokers that are registered and fenced.",
        ),
        (
            "kafka_controller_controllerstats_leaderelections_total",
            Kind.COUNTER,
            (),
            "Partitions of the cluster that got a leader, as far as this node has seen it.",
        ),
        (
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            Kind.COUNTER,
            (),
            "Those of them whose leader may lack records that were acknowledged.",
        ),
        # the controller quorum
        (
            "kafka_server_raft_metrics_current_leader",
            Kind.GAUGE,
            (),
            "Id of the active controller; -1 while none is known.",
        ),
        ("kafka_server_raft_metrics_current_epoch", Kind.GAUGE, (), "Epoch of the quorum."),
        ("kafka_server_raft_metrics_high_watermark", Kind.GAUGE, (), "End of what the quorum has committed."),
        ("kafka_server_raft_metrics_log_end_offset", Kind.GAUGE, (), "End of the metadata log on this node."),
        ("kafka_server_raft_metrics_number_of_voters", Kind.GAUGE, (), "Controllers that vote."),
        # what clients push (KIP-714)
        (
            "kavka_client_telemetry_level",
            Kind.GAUGE,
            SAID,
            "Value of a metric that a client has pushed: the largest of its nodes, partitions and instances.",
        ),
        (
            "kavka_client_telemetry_flow_total",
            Kind.COUNTER,
            SAID,
            "Sum of a metric that a client has pushed and that only grows, over its nodes, partitions and instances.",
        ),
        ("kavka_telemetry_instances", Kind.GAUGE, (), "Client instances that have asked or pushed lately."),
        (
            "kavka_telemetry_pushes_total",
            Kind.COUNTER,
            ("result",),
            "Pushes of clients, by the error code of the answer.",
        ),
        (
            "kavka_telemetry_values_omitted_total",
            Kind.COUNTER,
            (),
            "Pushed values that are not shown: beyond the bound on series, or of a kind that is not shown.",
        ),
        (
            "kavka_telemetry_forwarded_total",
            Kind.COUNTER,
            ("result",),
            "Pushes that were sent to kavka.telemetry.otlp.endpoint, or dropped on the way.",
        ),
        # the audit trail
        (
            "kavka_audit_events_total",
            Kind.COUNTER,
            ("result",),
            "Events of the audit trail that its topic has taken, or that were dropped for lack of room.",
        ),
        ("kavka_audit_events_waiting", Kind.GAUGE, (), "Events of the audit trail that wait to be written."),
    )
)

BY_NAME = {family.name: family for family in FAMILIES}
