"""What the configs mean, in a sentence each, for DescribeConfigs and the reference pages.

Only those that an operator is likely to touch; a key that is not here has no sentence.
"""

from types import MappingProxyType
from typing import Final

_TOPIC: Final = {
    "cleanup.policy": "What happens to old records: delete drops whole segments by age and size, compact keeps the "
    "last record of each key, both do both.",
    "compression.gzip.level": "How hard gzip tries where the broker compresses: 1 is fast, 9 small, -1 its own choice.",
    "compression.lz4.level": "How hard lz4 tries where the broker compresses: 1 is fast, 17 is small.",
    "compression.type": "How batches are stored: producer keeps what the producer chose, a codec's name compresses "
    "again, uncompressed stores plain.",
    "compression.zstd.level": "How hard zstd tries where the broker compresses; a higher level is slower and smaller.",
    "delete.retention.ms": "How long compaction keeps a tombstone, so that a slow reader still sees the deletion.",
    "file.delete.delay.ms": "How long a deleted log stays on the disk; shorter where there is little room.",
    "flush.messages": "After how many records the log is synced. Replication is the cheaper way to safety.",
    "flush.ms": "After how long the log is synced. Replication is the cheaper way to safety.",
    "follower.replication.throttled.replicas": "The replicas whose fetching from leaders is throttled: "
    "partition:broker pairs, or * for all.",
    "index.interval.bytes": "How many bytes of records lie between two entries of an index.",
    "kavka.partition.consumer.byte.rate": "How many bytes a second consumers may fetch of each partition, "
    "from one broker.",
    "kavka.partition.producer.byte.rate": "How many bytes a second producers may send to each partition.",
    "kavka.topic.consumer.byte.rate": "How many bytes a second consumers may fetch of the topic from each broker.",
    "kavka.topic.producer.byte.rate": "How many bytes a second producers may send to the partitions of the topic that "
    "one broker leads.",
    "leader.replication.throttled.replicas": "The replicas whose followers are throttled: pairs, or *.",
    "local.retention.bytes": "How much of a tiered log stays on the broker; -2 says as much as retention.bytes.",
    "local.retention.ms": "How long a tiered log stays on the broker; -2 says as long as retention.ms.",
    "max.compaction.lag.ms": "How long a record may wait at most before compaction looks at it.",
    "max.decompressed.message.bytes": "The largest record that is taken in a compressed batch, in bytes once unpacked. "
    "What is stored is searched and compacted whatever its size.",
    "max.message.bytes": "The largest batch that is taken, compressed as it comes.",
    "message.timestamp.after.max.ms": "How far ahead of the broker's clock a producer's timestamp may be.",
    "message.timestamp.before.max.ms": "How far behind the broker's clock a producer's timestamp may be.",
    "message.timestamp.type": "Whose time a record bears: CreateTime the producer's, LogAppendTime the broker's.",
    "min.cleanable.dirty.ratio": "Which part of a log must be uncompacted before compaction is worth its work.",
    "min.compaction.lag.ms": "How long a record is safe from compaction.",
    "min.insync.replicas": "How many replicas must have a record before it is acknowledged with acks=all.",
    "preallocate": "Whether a new segment takes its place on the disk at once.",
    "remote.log.copy.disable": "Whether a tiered log stops being copied to remote storage.",
    "remote.log.delete.on.disable": "Whether the remote part goes when a topic leaves remote storage.",
    "remote.storage.enable": "Whether old segments go to remote storage.",
    "retention.bytes": "How large a partition may become before its oldest segments are deleted; -1: no bound.",
    "retention.ms": "How old a record may become before its segment is deleted; -1 is without bound.",
    "segment.bytes": "At what size a segment is closed. Deletion and compaction take whole segments.",
    "segment.index.bytes": "How large an index may become before its segment is closed.",
    "segment.jitter.ms": "By how much rolling may be put off at random, so that not all logs roll at once.",
    "segment.ms": "After how long a segment is closed although it is not full, so that deletion can reach it.",
    "unclean.leader.election.enable": "Whether a replica that may lack acknowledged records leads rather than nobody.",
}

_BROKER: Final = {
    "advertised.listeners": "The addresses that clients and other nodes are told, by listener; or those of listeners.",
    "auto.create.topics.enable": "Whether a topic that a client asks for is made when it does not exist.",
    "broker.heartbeat.interval.ms": "How often a broker tells the controller that it lives.",
    "broker.rack": "Where this broker stands. Replicas of a partition are spread over racks.",
    "broker.session.timeout.ms": "How long a broker may be silent before it is fenced.",
    "connections.max.idle.ms": "How long a connection may be idle before the broker closes it.",
    "controller.listener.names": "Which listeners are for controllers; the first is the one that brokers use.",
    "controller.quorum.bootstrap.servers": "Where controllers can be found at first.",
    "controller.quorum.voters": "The controllers that vote, ID@HOST:PORT, in a quorum of the older kind.",
    "default.replication.factor": "How many replicas a topic gets that does not say.",
    "delete.topic.enable": "Whether topics can be deleted at all.",
    "fetch.max.bytes": "The most that one fetch is answered with, whatever it asks for.",
    "group.consumer.assignment.interval.ms": "How long a group waits at least between two assignments (KIP-1263).",
    "group.consumer.assignors": "The assignors that members may ask for; the first one is the default.",
    "group.consumer.heartbeat.interval.ms": "How often members of groups of the new protocol send heartbeats.",
    "group.consumer.max.assignment.interval.ms": "The longest interval that a group's own config may give.",
    "group.consumer.max.heartbeat.interval.ms": "The longest interval that a group's own config may give.",
    "group.consumer.max.session.timeout.ms": "The longest session that a group's own config may give.",
    "group.consumer.max.size": "How many members a group of the new protocol may have.",
    "group.consumer.migration.policy": "Which running groups may change between the classic protocol and the new one:"
    " upgrade, downgrade, bidirectional, or disabled for none.",
    "group.consumer.min.assignment.interval.ms": "The shortest interval that a group's own config may give.",
    "group.consumer.min.heartbeat.interval.ms": "The shortest interval that a group's own config may give.",
    "group.consumer.min.session.timeout.ms": "The shortest session that a group's own config may give.",
    "group.consumer.session.timeout.ms": "How long a member of the new protocol may be silent before it is fenced.",
    "group.coordinator.rebalance.protocols": "`consumer`: groups of KIP-848 are served; `streams`: those of KIP-1071.",
    "group.initial.rebalance.delay.ms": "How long a new group waits for more members before its first rebalance.",
    "group.max.session.timeout.ms": "The longest session that a member may ask for.",
    "group.max.size": "How many members a group may have.",
    "group.min.session.timeout.ms": "The shortest session that a member may ask for.",
    "inter.broker.listener.name": "By which listener brokers talk to each other.",
    "kavka.admin.listener": "Where metrics and health are served over HTTP, HOST:PORT; empty is nowhere.",
    "kavka.audit.buffer.events": "How many audit events are kept in memory while the audit topic takes none.",
    "kavka.audit.failure.policy": "While audit events cannot be written: permit loses those for which there is no room,"
    " and counts them; reject refuses what would have to be told, until there is room.",
    "kavka.audit.interval.ms": "The time over which the audit trail sums up use of topics and throttling.",
    "kavka.audit.key.file": "The file with the key that signs the audit trail: a secret, or a private key in PEM; empty"
    " is no trail.",
    "kavka.event.loop": "Which event loop the process runs on: uvloop, or asyncio, which is also taken where uvloop is"
    " not installed.",
    "kavka.group.lag.interval.ms": "How often the lag of groups is measured, where metrics are served.",
    "kavka.group.rebalance.heartbeat.interval.ms": "How soon a member of a group of the new protocol heartbeats while"
    " it waits for its assignment; in a group of more members than that, a millisecond a member. Members that come"
    " together are assigned once none has joined for half of it. 0 switches both off, as in Apache Kafka.",
    "kavka.log.format": "How log lines are written: text for people, json for machines.",
    "kavka.log.level": "The least level that is logged.",
    "kavka.login.timeout.ms": "How long a connection to a listener with SASL may go without a login before the broker"
    " closes it. Apache Kafka has no such deadline.",
    "kavka.metrics.names": "Whose dashboards /metrics serves with names of theirs besides its own: confluent, strimzi.",
    "kavka.log.stray.retention.ms": "How long a log is kept aside that is damaged, or that the cluster does not know."
    " One with files that are not a log's stays.",
    "kavka.quota.first.burst.ms": "How much of a byte quota a client may use at once when it begins, as a time: 1000 is"
    " a second's worth. Not set, it is the whole window's, as in Apache Kafka: ten seconds' worth.",
    "kavka.telemetry.otlp.endpoint": "Where metrics that clients push are sent to, OTLP by HTTP; empty is nowhere.",
    "kavka.transaction.connection.verification.enable": "Whether a request of a producer of transaction version 1 is"
    " refused, and its connection closed, once the producer has asked over a connection that was accepted later.",
    "listener.security.protocol.map": "Which security protocol each listener speaks, NAME:PROTOCOL.",
    "listeners": "The addresses that this process opens, NAME://HOST:PORT; an empty host is every interface.",
    "log.dir": "Where logs live, when log.dirs is not set.",
    "log.dirs": "Where logs live; several directories, one a disk, fail one by one.",
    "log.initial.task.delay.ms": "How long after a start logs are first looked through for what is to be deleted,"
    " unless log.retention.check.interval.ms is shorter. Other chores of logs do not wait for it, as Kafka's do.",
    "log.retention.check.interval.ms": "How often logs are looked through for what is to be deleted.",
    "log.retention.hours": "How old a record may become, in hours; the keys in minutes and milliseconds come first.",
    "log.retention.minutes": "How old a record may become, in minutes; the key in milliseconds comes first.",
    "log.roll.hours": "After how many hours a segment is closed; the key in milliseconds comes first.",
    "log.roll.jitter.hours": "By how many hours rolling may be put off at random; the key in milliseconds comes first.",
    "max.connection.creation.rate": "How many connections a second the broker takes.",
    "max.connections": "How many connections all listeners of a broker hold; any more wait.",
    "max.connections.per.ip": "How many connections one address may have, over all listeners.",
    "max.connections.per.ip.overrides": "Other bounds for some addresses or hosts, address:count.",
    "max.incremental.fetch.session.cache.slots": "How many fetch sessions the broker remembers.",
    "max.request.partition.size.limit": "How many partitions one page of a description holds at most.",
    "metadata.log.dir": "Where the metadata log lives; the first log directory where it is not set.",
    "metadata.log.max.record.bytes.between.snapshots": "After how many bytes of the metadata log a snapshot is taken.",
    "metadata.log.max.snapshot.interval.ms": "After how long a snapshot is taken, if anything has changed; 0 is never.",
    "metadata.log.segment.bytes": "At what size a segment of the metadata log is closed.",
    "metadata.max.retention.bytes": "How large metadata log and snapshots may become before old snapshots go.",
    "metadata.max.retention.ms": "How old a snapshot may become once there is a newer one.",
    "node.id": "The number of this process in the cluster.",
    "num.partitions": "How many partitions a topic gets that does not say.",
    "num.recovery.threads.per.data.dir": "How many logs of a directory are recovered at a time.",
    "offset.metadata.max.bytes": "How long the note may be that comes with a committed offset.",
    "offsets.retention.minutes": "How long the offsets of a group without members are kept.",
    "offsets.topic.num.partitions": "How many partitions the log of committed offsets has.",
    "offsets.topic.replication.factor": "How many replicas the log of committed offsets has.",
    "process.roles": "What this process is: broker, controller, or both.",
    "producer.id.expiration.ms": "How long an idle producer's sequence is remembered.",
    "queued.max.request.bytes": "How many bytes of requests connections may hold before only small ones are read.",
    "queued.max.requests": "How many requests may wait before reading from connections pauses.",
    "quota.window.num": "Over how many windows a rate is measured.",
    "quota.window.size.seconds": "How long one window of a rate is.",
    "replica.fetch.max.bytes": "How much a follower asks for of one partition at a time.",
    "replica.fetch.min.bytes": "How much there must be before a follower's fetch is answered.",
    "replica.fetch.wait.max.ms": "How long a follower's fetch waits for that.",
    "replica.lag.time.max.ms": "How long a follower may be behind before it leaves the in-sync replicas.",
    "socket.request.max.bytes": "The largest request that is read; a larger one closes its connection.",
    "transaction.max.timeout.ms": "The longest time that a transaction may ask for.",
}

#: A broker config that is the default of a topic's has the same documentation.
_STAND_INS: Final = {
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleanup.policy": "cleanup.policy",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.local.retention.bytes": "local.retention.bytes",
    "log.local.retention.ms": "local.retention.ms",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.preallocate": "preallocate",
    "log.retention.bytes": "retention.bytes",
    "log.retention.ms": "retention.ms",
    "log.roll.jitter.ms": "segment.jitter.ms",
    "log.roll.ms": "segment.ms",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "message.max.bytes": "max.message.bytes",
}

ABOUT: Final = MappingProxyType(
    {**_TOPIC, **_BROKER, **{name: _TOPIC[topic_key] for name, topic_key in _STAND_INS.items()}}
)
