"""The cluster as its controller sees it, and the quorum."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import Kind, Row

CONTROLLER: Final[tuple[Row, ...]] = (
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
)
