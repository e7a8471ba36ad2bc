"""The figures of the page of metrics that grow with the partitions, of which there may be ten thousands: in slices."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.core.partition.min_insync_replicas import effective_min_isr
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.replica.leading.partition import Partition

TOPIC_SERIES_MAX: Final = 500
PARTITION_SERIES_MAX: Final = 1000
PARTITION_COST: Final = 5  # of a slice

#: The counters of a partition's traffic, and the metric in which each is summed up by topic.
COUNTED: Final = {
    "bytes_in": "kafka_server_brokertopicmetrics_bytesin_total",
    "bytes_out": "kafka_server_brokertopicmetrics_bytesout_total",
    "bytes_copied": "kafka_server_brokertopicmetrics_replicationbytesin_total",
    "messages_in": "kafka_server_brokertopicmetrics_messagesin_total",
    "produces": "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "fetches": "kafka_server_brokertopicmetrics_totalfetchrequests_total",
}

Sample = tuple[str, tuple[str, ...], float]  # name, values of its labels, value


class ReplicaFigures:
    """Sums over the partitions of this broker."""

    def __init__(self) -> None:
        self.leaders = self.under_replicated = self.under_min_isr = self.at_min_isr = 0
        self.lags: dict[int, int] = {}  # by follower: its largest lag of all partitions
        self.topics: dict[str, list[int]] = {}  # a sum for each of `COUNTED`

    def add(self, partition: Partition) -> None:
        totals, traffic = self.topics.setdefault(partition.topic, [0] * len(COUNTED)), partition.traffic
        for index, name in enumerate(COUNTED):
            totals[index] += getattr(traffic, name)
        if partition.is_leader:
            self._add_led(partition)

    def _add_led(self, partition: Partition) -> None:
        state = partition.state
        in_sync, replicas = len(state.isr), len(state.replicas)
        spare = in_sync - effective_min_isr(partition.log.config.min_insync_replicas, replicas)
        self.leaders += 1
        self.under_replicated += in_sync < replicas
        self.under_min_isr += spare < 0
        self.at_min_isr += spare == 0
        if partition.leadership is not None and partition.leadership.followers:
            self._add_lags(partition)

    def _add_lags(self, partition: Partition) -> None:
        """Add the followers' lags, as the leader sees them: a dead replica lags as well, and more and more."""
        log, leadership = partition.log, partition.leadership
        assert leadership is not None
        for follower_id, follower in leadership.followers.items():
            lag = max(0, log.log_end_offset - max(follower.log_end_offset, log.log_start_offset))
            self.lags[follower_id] = max(lag, self.lags.get(follower_id, 0))


def partition_samples(partitions: Sequence[Partition]) -> Work[list[Sample]]:
    figures, cost = ReplicaFigures(), Cost()
    for partition in partitions:
        figures.add(partition)
        if cost.add(PARTITION_COST):
            yield
    found = [*replica_samples(figures, len(partitions)), *topic_samples(figures.topics)]
    yield
    return [*found, *log_samples(partitions)]


def replica_samples(figures: ReplicaFigures, count: int) -> Iterator[Sample]:
    prefix = "kafka_server_replicamanager_"
    yield f"{prefix}partitioncount", (), count
    yield f"{prefix}leadercount", (), figures.leaders
    yield f"{prefix}underreplicatedpartitions", (), figures.under_replicated
    yield f"{prefix}underminisrpartitioncount", (), figures.under_min_isr
    yield f"{prefix}atminisrpartitioncount", (), figures.at_min_isr
    for follower_id, lag in sorted(figures.lags.items()):
        yield "kavka_replica_lag_records_max", (str(follower_id),), lag


def topic_samples(topics: dict[str, list[int]]) -> Iterator[Sample]:
    for topic, totals in islice(topics.items(), TOPIC_SERIES_MAX):
        for name, total in zip(COUNTED.values(), totals, strict=True):
            yield name, (topic,), total
    yield "kavka_series_omitted", ("topic",), max(0, len(topics) - TOPIC_SERIES_MAX)


def log_samples(partitions: Sequence[Partition]) -> Iterator[Sample]:
    for partition in partitions[:PARTITION_SERIES_MAX]:
        labels, log = (partition.topic, str(partition.index)), partition.log
        yield "kafka_log_log_size", labels, log.size_bytes
        yield "kafka_log_log_logstartoffset", labels, log.log_start_offset
        yield "kafka_log_log_logendoffset", labels, log.log_end_offset
    yield "kavka_series_omitted", ("partition",), max(0, len(partitions) - PARTITION_SERIES_MAX)


def controller_samples(metadata: Metadata, *, is_active: bool) -> Work[list[Sample]]:
    count = offline = not_preferred = 0
    cost, topics = Cost(), list(metadata.topics)
    for topic in topics:
        for states in chunks(topic.partitions.values()):
            count += len(states)
            offline += sum(state.leader < 0 for state in states)
            not_preferred += sum(state.leader != state.replicas[0] for state in states)
            if cost.add(len(states) + 1):
                yield
    fenced = sum(broker.fenced for broker in metadata.brokers)
    prefix = "kafka_controller_kafkacontroller_"
    return [
        (f"{prefix}activecontrollercount", (), int(is_active)),
        (f"{prefix}globaltopiccount", (), len(topics)),
        (f"{prefix}globalpartitioncount", (), count),
        (f"{prefix}offlinepartitionscount", (), offline),
        (f"{prefix}preferredreplicaimbalancecount", (), not_preferred),
        (f"{prefix}activebrokercount", (), len(metadata.brokers) - fenced),
        (f"{prefix}fencedbrokercount", (), fenced),
    ]


def chunks(states: Iterable[PartitionState]) -> Iterator[list[PartitionState]]:
    """Yield the states as they are now, some at a time."""
    rest = iter(list(states))
    while some := list(islice(rest, PARTITION_SERIES_MAX)):
        yield some
