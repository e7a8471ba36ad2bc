"""Broker: is the cluster whole, what goes through it, and what is near its end."""

from typing import Final

from tools.dashboards.panels import Dashboard, Mark, Panel, Query, Row, Variable, number

NODES: Final = 'cluster="$cluster", instance=~"$broker"'
CLUSTER: Final = 'cluster="$cluster"'
NODE: Final = "{{instance}}"
CONTROLLER: Final = "kafka_controller_kafkacontroller_"
REPLICAS: Final = "kafka_server_replicamanager_"
MARKERS: Final = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
TOPICS: Final = "kafka_server_brokertopicmetrics_"


def by_node(metric: str) -> Query:
    """The rate of a counter, summed on each node."""
    return Query(f"sum by (instance) (rate({metric}{{{NODES}}}[$__rate_interval]))", NODE)


def each(metric: str, legend: str = NODE) -> Query:
    """A gauge as it is."""
    return Query(f"{metric}{{{NODES}}}", legend)


def percentile(part: float, title: str) -> Panel:
    """A percentile of the time of requests, by API."""
    buckets = f"sum by (api, le) (rate(kavka_request_duration_seconds_bucket{{{NODES}}}[$__rate_interval]))"
    query = Query(f"topk(10, histogram_quantile({part}, {buckets}) > 0)", "{{api}}")
    return Panel(title, "By API, waiting included: a Fetch waits for records, a Produce for replicas.", (query,), "s")


def lag(unit: str, level: str) -> Query:
    """The groups that are furthest behind; of two brokers that have coordinated one, the greater figure."""
    selected = f'{{{NODES}, isolation_level="{level}"}}'
    return Query(f"topk(10, max by (group, topic) (kavka_group_lag_{unit}{selected}))", "{{group}} on {{topic}}")


HEALTH: Final = Row(
    "Health",
    (
        number("Brokers", "Brokers that are not fenced.", f"max({CONTROLLER}activebrokercount{{{CLUSTER}}})"),
        number(
            "Fenced brokers",
            "Brokers that are registered and serve nobody.",
            f"max({CONTROLLER}fencedbrokercount{{{CLUSTER}}})",
            red_from=1,
        ),
        number(
            "Active controllers",
            "There should be one.",
            f"sum({CONTROLLER}activecontrollercount{{{CLUSTER}}})",
            red_from=2,
        ),
        number(
            "Offline partitions",
            "Partitions without a leader: nobody can write or read them.",
            f"max({CONTROLLER}offlinepartitionscount{{{CLUSTER}}})",
            red_from=1,
        ),
        number(
            "Under min.insync.replicas",
            "Partitions that refuse acks=all.",
            f"sum({REPLICAS}underminisrpartitioncount{{{NODES}}})",
            red_from=1,
        ),
        number(
            "Under-replicated",
            "Partitions with replicas out of sync.",
            f"sum({REPLICAS}underreplicatedpartitions{{{NODES}}})",
            red_from=1,
        ),
        number("Nodes that are ready", "Nodes that serve clients.", f"sum(kavka_broker_ready{{{NODES}}})"),
        number("Topics", "Topics of the cluster.", f"max({CONTROLLER}globaltopiccount{{{CLUSTER}}})"),
        number("Partitions", "Partitions of the cluster.", f"max({CONTROLLER}globalpartitioncount{{{CLUSTER}}})"),
        number(
            "Failed directories",
            "Log directories whose replicas are offline.",
            f"sum(kafka_log_logmanager_offlinelogdirectorycount{{{NODES}}})",
            red_from=1,
        ),
        number(
            "Unclean elections",
            "Leaders that may lack records that were acknowledged, in the time shown.",
            f"max(increase(kafka_controller_controllerstats_uncleanleaderelections_total{{{NODES}}}[$__range]))",
            red_from=1,
        ),
        number(
            "Failed assertions",
            "Each of them ended a process.",
            f"sum(kavka_assertions_failed_total{{{NODES}}})",
            red_from=1,
        ),
    ),
)

TRAFFIC: Final = Row(
    "Traffic",
    (
        Panel("Bytes in", "What producers send.", (by_node(f"{TOPICS}bytesin_total"),), "Bps"),
        Panel("Bytes out", "What consumers read.", (by_node(f"{TOPICS}bytesout_total"),), "Bps"),
        Panel("Bytes copied", "What followers copy.", (by_node(f"{TOPICS}replicationbytesin_total"),), "Bps"),
        Panel("Records in", "What producers send.", (by_node(f"{TOPICS}messagesin_total"),), "cps"),
        Panel(
            "Topics with most bytes in",
            "Of the topics that /metrics shows.",
            (
                Query(
                    f"topk(10, sum by (topic) (rate({TOPICS}bytesin_total{{{NODES}}}[$__rate_interval])))", "{{topic}}"
                ),
            ),
            "Bps",
        ),
        Panel(
            "Network",
            "All that listeners read and write, requests of brokers too.",
            (
                Query(
                    f"sum by (instance) (rate(kavka_network_received_bytes_total{{{NODES}}}[$__rate_interval]))",
                    "received: {{instance}}",
                ),
                Query(
                    f"sum by (instance) (rate(kavka_network_sent_bytes_total{{{NODES}}}[$__rate_interval]))",
                    "sent: {{instance}}",
                ),
            ),
            "Bps",
        ),
    ),
)

REQUESTS: Final = Row(
    "Requests and connections",
    (
        Panel(
            "Requests",
            "Requests answered, by API.",
            (Query(f"topk(10, sum by (api) (rate(kavka_requests_total{{{NODES}}}[$__rate_interval])))", "{{api}}"),),
            "reqps",
        ),
        Panel(
            "Time of a request",
            "The mean, waiting included: a Fetch waits for records, a Produce for replicas.",
            (
                Query(
                    f"topk(10, sum by (api) (rate(kavka_request_seconds_total{{{NODES}}}[$__rate_interval])) "
                    f"/ (sum by (api) (rate(kavka_requests_total{{{NODES}}}[$__rate_interval])) > 0))",
                    "{{api}}",
                ),
            ),
            "s",
        ),
        percentile(0.5, "Median time of a request"),
        percentile(0.99, "99th percentile of the time of a request"),
        Panel(
            "Errors",
            "Requests that ended in an error of the whole request.",
            (Query(f"sum by (api) (rate(kavka_request_errors_total{{{NODES}}}[$__rate_interval]))", "{{api}}"),),
            "reqps",
        ),
        Panel(
            "Connections",
            "Open connections, by listener.",
            (each("kavka_connections", "{{listener}} of {{instance}}"),),
        ),
        Panel("Connections accepted", "New ones a second.", (by_node("kavka_connections_accepted_total"),), "cps"),
        Panel("Connections refused", "Closed by the broker.", (by_node("kavka_connections_refused_total"),), "cps"),
    ),
)

GROUPS: Final = Row(
    "Consumer groups",
    (
        Panel(
            "Records behind",
            "Records between the committed offsets of a group and the ends of a topic, as of the last look.",
            (lag("records", "read_uncommitted"),),
        ),
        Panel(
            "Time behind",
            "The age of the oldest record that a group has not read.",
            (lag("seconds", "read_uncommitted"),),
            "s",
        ),
        Panel(
            "Records behind the last stable offset",
            "For readers of committed records, which an open transaction holds back.",
            (lag("records", "read_committed"),),
        ),
    ),
)

SHARE_GROUPS: Final = Row(
    "Share groups",
    (
        Panel(
            "Records that wait",
            "Offsets between the start of a group and the end of a topic, those that members hold among them.",
            (
                Query(
                    f"topk(10, sum by (group, topic) (kavka_share_group_waiting_records{{{NODES}}}))",
                    "{{group}} on {{topic}}",
                ),
            ),
        ),
        Panel(
            "Age of the oldest record",
            "Of those that a group is not done with.",
            (
                Query(
                    f"topk(10, max by (group, topic) (kavka_share_group_oldest_record_seconds{{{NODES}}}))",
                    "{{group}} on {{topic}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Delivered again, and given up",
            "Records a second: redelivered ones were released or not acknowledged in time, archived ones nobody gets.",
            (
                Query(
                    "topk(10, sum by (group, topic, event) "
                    f"(rate(kavka_share_group_records_total{{{NODES}}}[$__rate_interval])))",
                    "{{group}} on {{topic}}: {{event}}",
                ),
            ),
        ),
    ),
)

ROOM: Final = Row(
    "What may run out",
    (
        Panel(
            "The loop",
            "How much of the one thread that serves all requests is used.",
            (by_node("kavka_loop_cpu_seconds_total"),),
            "percentunit",
            red_from=0.9,
            most=1,
        ),
        Panel(
            "Held for more than 10 ms at once",
            "Seconds a second in which somebody's work made all others wait.",
            (
                Query(
                    "topk(10, sum by (callback) "
                    f"(rate(kavka_loop_held_seconds_total{{{NODES}}}[$__rate_interval]))) or vector(0)",
                    "{{callback}}",
                ),
            ),
            "s",
        ),
        Panel("CPU", "Of the whole process, in cores.", (by_node("process_cpu_seconds_total"),)),
        Panel("Memory", "Without mapped files.", (each("kavka_memory_anonymous_bytes"),), "bytes"),
        Panel("Open files", "Connections and logs.", (each("process_open_fds"),)),
        Panel(
            "Disk used",
            "Of the volume of each log directory.",
            (
                Query(
                    f"1 - kavka_log_directory_free_bytes{{{NODES}}} / (kavka_log_directory_size_bytes{{{NODES}}} > 0)",
                    "{{directory}} of {{instance}}",
                ),
            ),
            "percentunit",
            red_from=0.85,
            most=1,
        ),
        Panel(
            "Disk traffic",
            "What the disks did for the process; what the page cache answered is not in it.",
            (
                Query(f"rate(kavka_disk_read_bytes_total{{{NODES}}}[$__rate_interval])", "read: {{instance}}"),
                Query(f"rate(kavka_disk_written_bytes_total{{{NODES}}}[$__rate_interval])", "written: {{instance}}"),
            ),
            "Bps",
        ),
        Panel(
            "Largest topics",
            "Bytes of all their replicas, of the partitions that /metrics shows.",
            (Query(f"topk(10, sum by (topic) (kafka_log_log_size{{{NODES}}}))", "{{topic}}"),),
            "bytes",
        ),
        Panel(
            "Set aside",
            "Logs that are deleted or damaged, whose bytes are still on the disk.",
            (each("kavka_set_aside_bytes", "{{kind}} in {{directory}} of {{instance}}"),),
            "bytes",
        ),
    ),
)

REPLICATION: Final = Row(
    "Replication and controllers",
    (
        Panel("Leaders", "Partitions that each broker leads.", (each(f"{REPLICAS}leadercount"),)),
        Panel(
            "Lag",
            "Records of one partition that a follower lacks, where it lacks most.",
            (
                Query(
                    f"max by (follower) (kavka_replica_lag_records_max{{{NODES}}})",
                    "broker {{follower}}",
                ),
            ),
        ),
        Panel(
            "In-sync sets that changed",
            "Replicas that fell out of sync, and came back.",
            (
                Query(f"sum(rate({REPLICAS}isrshrinks_total{{{NODES}}}[$__rate_interval]))", "lost one"),
                Query(f"sum(rate({REPLICAS}isrexpands_total{{{NODES}}}[$__rate_interval]))", "got one back"),
            ),
            "ops",
        ),
        Panel(
            "Elections",
            "Partitions that got a leader.",
            (
                Query(
                    f"max(rate(kafka_controller_controllerstats_leaderelections_total{{{NODES}}}[$__rate_interval]))",
                    "leaders",
                ),
            ),
            "ops",
        ),
        Panel(
            "Metadata log",
            "Its end on each node; a node whose line stays behind is not in touch.",
            (each("kafka_server_raft_metrics_log_end_offset"),),
        ),
        Panel(
            "Replication under a throttle",
            "What the quotas of replication measure: to followers, from leaders, and between log directories.",
            (
                each("kafka_server_leaderreplication_byte_rate", "to followers: {{instance}}"),
                each("kafka_server_followerreplication_byte_rate", "from leaders: {{instance}}"),
                each("kafka_server_alterlogdirsreplication_byte_rate", "between directories: {{instance}}"),
            ),
            "Bps",
        ),
        Panel(
            "Not led by their first replica",
            "Partitions that another replica leads; auto.leader.rebalance.enable moves them back.",
            (Query(f"max({CONTROLLER}preferredreplicaimbalancecount{{{CLUSTER}}})", "partitions"),),
        ),
        Panel(
            "Log cleaner: written",
            "Bytes that cleanings write.",
            (by_node("kavka_cleaner_written_bytes_total"),),
            "Bps",
        ),
        Panel(
            "Log cleaner: dirtiest log",
            "Dirty share of the dirtiest compacted log, when the cleaner looked last.",
            (each("kafka_log_logcleanermanager_max_dirty_percent"),),
            "percent",
        ),
    ),
)

TRANSACTIONS: Final = Row(
    "Transactions",
    (
        number(
            "Oldest open transaction",
            "Readers of committed records wait for it. A producer's timeout ends it, 15 minutes at most.",
            f"max(kavka_transaction_oldest_seconds{{{NODES}}})",
            red_from=900,
            unit="s",
        ),
        Panel(
            "Transactional ids",
            "Ids that are coordinated, by the state of their transactions.",
            (Query(f"sum by (state) (kavka_transactional_ids{{{NODES}}})", "{{state}}"),),
        ),
        Panel(
            "Aborted by the coordinator",
            "Transactions that were open for too long, and those whose id another producer has taken over.",
            (
                Query(
                    f"sum by (reason) (rate(kavka_transactions_aborted_total{{{NODES}}}[$__rate_interval]))",
                    "{{reason}}",
                ),
            ),
        ),
        Panel(
            "Markers that wait",
            "Decided transactions that cannot be ended: a partition's leader, or the coordinator's log, is away.",
            (
                each(f"{MARKERS}unknowndestinationqueuesize", "leaders: {{instance}}"),
                each(f"{MARKERS}logappendretryqueuesize", "log: {{instance}}"),
            ),
        ),
    ),
)

ACTIVE: Final = f"{CONTROLLER}activecontrollercount{{{CLUSTER}}}"
STATS: Final = "kafka_controller_controllerstats_"
ELECTIONS: Final = f"{STATS}leaderelections_total{{{CLUSTER}}}"
UNCLEAN: Final = f"{STATS}uncleanleaderelections_total{{{CLUSTER}}}"
MARKS: Final = (
    Mark(
        "Node restarted",
        f"resets(process_cpu_seconds_total{{{CLUSTER}}}[1m]) > 0",
        "{{instance}}",
        "orange",
    ),
    Mark(
        "Another controller is active",
        f"({ACTIVE} == 1) unless ({ACTIVE} offset 1m == 1)",
        "{{instance}}",
        "purple",
    ),
    Mark(
        "Partitions got other leaders",
        f"max({ELECTIONS} - {ELECTIONS} offset 1m) > 0",
        "elections of the last minute",
        "blue",
    ),
    Mark(
        "An unclean election",
        f"max({UNCLEAN} - {UNCLEAN} offset 1m) > 0",
        "a leader may lack records that were acknowledged",
        "red",
    ),
)
"""Of every dashboard about one cluster."""

BROKER: Final = Dashboard(
    "kavka-broker",
    "Kavka: broker",
    "Whether the cluster is whole, what goes through it, and what is near its end.",
    (
        Variable("cluster", "label_values(kavka_broker_info, cluster)", is_many=False),
        Variable("broker", 'label_values(kavka_broker_info{cluster="$cluster"}, instance)'),
    ),
    (HEALTH, TRAFFIC, REQUESTS, GROUPS, SHARE_GROUPS, ROOM, REPLICATION, TRANSACTIONS),
    MARKS,
)
