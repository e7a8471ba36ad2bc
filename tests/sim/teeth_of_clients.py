"""Planted defects that only what clients do beside the main topic brings to light: groups, trimmed logs, transactions,
altered configs, topics that come and go; and those that cost nothing but time."""

from dataclasses import replace
from typing import Any

from kavka_broker.controller.sessions import Sessions
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.core.group import membership
from kavka_broker.core.group import offsets as group_offsets
from kavka_broker.core.group.effects import TimerKind
from kavka_broker.core.metadata.decide import leader_election, partition_change
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage import checkpoints, retention
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_manager import LogManager
from tests.sim.teething import Patch, tooth


@tooth("a reader is served what is above the high watermark", "kill isolate slow_disk", 5)
def uncommitted_records_served(patch: Patch) -> None:
    read = Partition.read

    def read_all(self: Partition, offset: int, bytes_max: int, _: int, at_least_one: bool, **how: Any) -> Any:
        return read(self, offset, bytes_max, self.log.log_end_offset, at_least_one, **how)

    patch.setattr(Partition, "read", read_all)


@tooth("what follows a batch that will come again is out of order, upon which librdkafka sends the one before it twice",
       "full_disk short_reigns pause", 40, hectic=True, replica_lag_time_max_ms="1000",
       broker_session_timeout_ms="2000")  # fmt: skip
def refused_batches_forgotten(patch: Patch) -> None:
    patch.setattr(ProducerStates, "refuse", lambda *_: None)


@tooth("whoever lives may lead, whatever the topic allows", "kill pause isolate", 40, replica_lag_time_max_ms="1000",
       broker_session_timeout_ms="2000")  # fmt: skip
def unclean_election_everywhere(patch: Patch) -> None:
    elect = leader_election.elect

    def elect_any(state: Any, rules: Any, usable: Any, **how: Any) -> int:
        return elect(state, replace(rules, unclean_election=True), usable, **how)

    patch.setattr(partition_change, "elect", elect_any)


@tooth("an altered config does not reach the partitions that are open", "kill isolate", 30, workloads="trimming")
def altered_configs_not_applied(patch: Patch) -> None:
    patch.setattr(ReplicaManager, "_reconfigure", lambda self, record: None)


@tooth("a commit is taken from a member of a generation that is over", "kill pause isolate", 30, workloads="groups")
def fenced_commits_taken(patch: Patch) -> None:
    patch.setattr(group_offsets, "require_generation", lambda *_: None)


@tooth("a commit of offsets is answered when the coordinator alone has it", "kill isolate", 30, workloads="groups",
       broker_session_timeout_ms="2000")  # fmt: skip
def commits_answered_before_replication(patch: Patch) -> None:
    append = Shard._append

    def append_and_believe(self: Shard, group_id: str, records: Any) -> None:
        if append(self, group_id, records) is not None:
            self._replay(records, self._removals.number, self.partition.log.log_end_offset - len(records))

    patch.setattr(Shard, "_append", append_and_believe)


@tooth("a member that is heard of no more stays in its group", "kill isolate", 5, workloads="groups")
def sessions_never_expire(patch: Patch) -> None:
    expired = membership.expired

    def expired_but_sessions(group: Any, timer: Any, *rest: Any) -> None:
        if timer.kind is not TimerKind.SESSION:
            expired(group, timer, *rest)

    patch.setattr(membership, "expired", expired_but_sessions)


@tooth("a log of a deleted topic is taken for that of the next topic of its name", "kill pause", 20,
       workloads="transients")  # fmt: skip
def former_logs_adopted(patch: Patch) -> None:
    def adopt(self: LogManager, topic: str, partition: int, topic_id: bytes) -> None:
        existing = self.get(topic, partition)
        if existing is not None:
            existing.topic_id = topic_id

    patch.setattr(LogManager, "make_way", adopt)


@tooth("where a log begins is not remembered over a stop", "controlled_restart kill", 20, workloads="trimming")
def log_starts_forgotten(patch: Patch) -> None:
    write = LogDirectory.write

    def write_others(self: LogDirectory, name: str, offsets: Any) -> None:
        if name != checkpoints.LOG_STARTS:
            write(self, name, offsets)

    patch.setattr(LogDirectory, "write", write_others)


@tooth("retention by size deletes the segment that it should stop at", "kill isolate", 20, workloads="trimming")
def one_segment_too_many(patch: Patch) -> None:
    is_expired = retention._is_expired

    def is_nearly_expired(config: Any, segment: Any, size_bytes: int, now_ms: int) -> bool:
        return is_expired(config, segment, size_bytes + segment.size_bytes, now_ms)

    patch.setattr(retention, "_is_expired", is_nearly_expired)


@tooth("the last stable offset is the high watermark", "kill isolate", 5, workloads="transactions")
def stable_offset_ignored(patch: Patch) -> None:
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


@tooth("a broker that is silent is never fenced", "reset", 20, besieged=True, replica_lag_time_max_ms="4000",
       broker_session_timeout_ms="2000")  # fmt: skip
def silent_brokers_stay(patch: Patch) -> None:
    patch.setattr(Sessions, "_check", lambda self, session: None)
