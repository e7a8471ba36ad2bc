"""Defects that we plant to see that the simulation finds them; `teething` says how.

Here are those of records, decisions and the quorum; others are beside. Run as a program this prints the table: what was
planted, which invariant objected first, and at which seed.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kavka_broker.controller import snapshot_generator
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.quorum_state_file import QuorumStateFile
from kavka_broker.controller.snapshot_files import build
from kavka_broker.core.metadata.decide import alter_partition, registrations
from kavka_broker.core.metadata.decide.leadership import withdraw
from kavka_broker.core.partition.leader import LeaderState
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.core.raft import quorum_state
from kavka_broker.replica.following import fetched_batches
from kavka_broker.replica.leading import partition as replica_partition
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.serving import follower_reads
from kavka_broker.storage.log_reading import Reader
from tests.sim import (
    teeth_of_audit,
    teeth_of_cleaning,
    teeth_of_clients,
    teeth_of_consumers,
    teeth_of_coordinators,
    teeth_of_cordons,
    teeth_of_crowds,
    teeth_of_disks,
    teeth_of_gathering,
    teeth_of_groups,
    teeth_of_logins,
    teeth_of_long_requests,
    teeth_of_mends,
    teeth_of_migration,
    teeth_of_naming,
    teeth_of_quotas,
    teeth_of_rates,
    teeth_of_releases,
    teeth_of_replicas,
    teeth_of_shares,
    teeth_of_strangers,
    teeth_of_strays,
    teeth_of_streams,
    teeth_of_turns,
)
from tests.sim.teething import TEETH, Patch, Planted, bite, tooth

BESIDE: Final = (
    teeth_of_audit,
    teeth_of_cleaning,
    teeth_of_clients,
    teeth_of_consumers,
    teeth_of_coordinators,
    teeth_of_cordons,
    teeth_of_disks,
    teeth_of_gathering,
    teeth_of_groups,
    teeth_of_logins,
    teeth_of_long_requests,
    teeth_of_mends,
    teeth_of_migration,
    teeth_of_naming,
    teeth_of_shares,
    teeth_of_strangers,
    teeth_of_strays,
    teeth_of_streams,
    teeth_of_crowds,
    teeth_of_quotas,
    teeth_of_rates,
    teeth_of_releases,
    teeth_of_replicas,
    teeth_of_turns,
)  # modules whose teeth are registered as they are imported
ALL: Final = TEETH


# --- records --------------------------------------------------------------------------------------------------------


@tooth("a produce with acks=all is answered when the leader alone has the records", "kill pause", 2)
def acknowledge_before_replication(patch: Patch) -> None:
    patch.setattr(Partition, "has_followers", False)


@tooth("the high watermark moves and appends are taken with any number of replicas in sync", "kill isolate", 10)
def min_isr_ignored(patch: Patch) -> None:
    patch.setattr(replica_partition, "effective_min_isr", lambda configured, replicas: 1)


@tooth("the leader's high watermark is the end of its own log", "kill", 2)
def high_watermark_of_the_leader_alone(patch: Patch) -> None:
    patch.setattr(LeaderState, "committed_end", lambda self, end_offset, *_: end_offset)


@tooth("a follower is told of no diverging epoch", "kill isolate cut_one_way pause", 40)
def divergence_ignored(patch: Patch) -> None:
    patch.setattr(follower_reads, "diverging_epoch", lambda *_: None)


@tooth("a follower cuts to its own high watermark, as before KIP-101", "kill controlled_restart", 10)
def truncation_to_the_high_watermark(patch: Patch) -> None:
    def cut(_: Any, epochs: Any, log_end_offset: int, high_watermark: int) -> int:
        return min(high_watermark, log_end_offset)

    patch.setattr(fetched_batches, "truncation_offset", cut)
    patch.setattr(fetched_batches, "first_fetch_offset", partial(cut, None))


@tooth("a follower enters the ISR at the high watermark that a new leader has not raised yet", "pause kill_all", 5,
       replica_fetch_max_bytes="1", replica_fetch_response_max_bytes="1")  # fmt: skip
def expansion_before_the_epoch_start(patch: Patch) -> None:
    def joining(self: LeaderState, high_watermark: int, _: int, eligible: Any, __: float) -> tuple[int, ...]:
        if self.pending is not None:
            return ()
        return tuple(
            broker_id
            for broker_id, follower in self.followers.items()
            if broker_id not in self.isr
            and follower.log_end_offset >= high_watermark
            and self._is_eligible(broker_id, eligible)
        )

    patch.setattr(LeaderState, "joining", joining)


@tooth("the high watermark waits for the ISR that is known, not for the one asked for (KIP-497)", "late_answer "
       "kill pause", 10, hectic=True)  # fmt: skip
def pending_isr_ignored(patch: Patch) -> None:
    def committed_end(self: LeaderState, end_offset: int, min_isr: int, *_: Any) -> int:
        if len(self.isr) < min_isr:
            return -1
        return min(
            [end_offset, *(follower.log_end_offset for key, follower in self.followers.items() if key in self.isr)]
        )

    patch.setattr(LeaderState, "committed_end", committed_end)


@tooth("a fetch is answered whatever leader epoch it names (KIP-320)", "pause kill", 5)
def leader_epoch_fence_off_in_fetch(patch: Patch) -> None:
    patch.setattr(Partition, "check_epoch", lambda *_: None)


@tooth("a batch is served as the disk has it, whatever its CRC", "flipped_bit controlled_restart", 10)
def damage_not_looked_for(patch: Patch) -> None:
    patch.setattr(Reader, "_check", lambda *_: None)


@tooth("a batch that is sent again is appended again", "reset bad_weather kill", 5)
def repetitions_not_recognised(patch: Patch) -> None:
    patch.setattr(ProducerStates, "check", lambda *_: None)


# --- decisions about partitions --------------------------------------------------------------------------------------


@tooth("a change of the ISR is taken from any leader of any epoch", "pause bad_weather cut_one_way", 40,
       changes="elect_preferred reassign", replica_lag_time_max_ms="1000",
       broker_session_timeout_ms="2000")  # fmt: skip
def stale_alter_partition_accepted(patch: Patch) -> None:
    patch.setattr(alter_partition, "_refusal", lambda *_: None)
    patch.setattr(alter_partition, "_ineligible", lambda *_: None)


@tooth(
    "a broker that stopped uncleanly stays an eligible leader (KIP-966)", "power_loss kill pause", 10, is_synced=False
)
def unclean_broker_stays_eligible(patch: Patch) -> None:
    patch.setattr(
        registrations, "forfeit", lambda metadata, broker_id, policy, **_: withdraw(metadata, broker_id, policy)
    )


@tooth("whoever registers is taken for one that has closed its logs, whatever epoch it says it closed them in",
       "power_loss kill pause", 10, is_synced=False)  # fmt: skip
def broker_epoch_ignored_at_registration(patch: Patch) -> None:
    replaced = registrations._replaced

    def trusting(metadata: Any, before: Any, command: Any, policy: Any) -> Any:
        return replaced(metadata, before, replace(command, previous_epoch=before.epoch), policy)

    patch.setattr(registrations, "_replaced", trusting)


@tooth("an ISR may hold an earlier incarnation of a broker (KIP-903)", "power_loss kill pause", 20, is_synced=False)
def broker_epochs_ignored(patch: Patch) -> None:
    patch.setattr(alter_partition, "_ineligible", lambda *_: None)
    patch.setattr(LeaderState, "_is_eligible", lambda *_: True)


# --- the quorum -------------------------------------------------------------------------------------------------------


@tooth("a decision counts before it is on the leader's disk, or on any", "power_loss_of_several", 10, is_synced=True)
def metadata_not_synced(patch: Patch) -> None:
    patch.setattr(MetadataLog, "flush", lambda self: None)
    patch.setattr(MetadataLog, "synced_offset", property(lambda self: self.end_offset))


@tooth("a vote is promised before it is on the disk", "power_loss_of_several bad_weather cut_pair", 10, is_synced=True,
       controller_quorum_election_timeout_ms="200", controller_quorum_fetch_timeout_ms="300")  # fmt: skip
def vote_without_fsync(patch: Patch) -> None:
    def save_state(self: QuorumStateFile, state: Any) -> None:
        path = f"{self._directory}/{quorum_state.FILE_NAME}"
        self._disk.write_file(path, quorum_state.format_state(state).encode(), durable=False)

    patch.setattr(QuorumStateFile, "save_state", save_state)


@tooth("a snapshot lacks the last record of the image", "kill controlled_restart kill_all", 5,
       metadata_log_max_record_bytes_between_snapshots="2000")  # fmt: skip
def snapshot_one_record_short(patch: Patch) -> None:
    patch.setattr(snapshot_generator, "build", lambda control, records, **how: build(control, records[:-1], **how))


def main(names: Sequence[str]) -> int:
    """Print the table, of all teeth or of those whose names hold one of these words."""
    blunt = 0
    for defect in ALL:
        if names and not any(name in defect.name for name in names):
            continue
        planted = Planted()
        defect.plant(planted)
        found = bite(defect, defect.seeds_to_play)
        planted.undo()
        blunt += not found.objection or bool(found.accident)
        kinds, objection = ", ".join(defect.kinds) or "as drawn", found.accident or found.objection or "NOT FOUND"
        print(f"| {defect.name} | {defect.what} | {kinds} | {objection} | {found.seeds} | {defect.seeds_max} |")
        sys.stdout.flush()
    return blunt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
