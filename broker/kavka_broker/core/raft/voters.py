"""Who votes in the controller quorum, and what a majority of them has.

The set of voters is itself in the metadata log (KIP-853): control records `KRaftVersion` and `KRaftVoters`. A cluster
formatted the older way has no such records, and its voters are `controller.quorum.voters` of every configuration.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.protocol.messages.voters_record import (
    Endpoint,
    KRaftVersionFeature,
    VotersRecord,
)
from kavka_broker.protocol.messages.voters_record import Voter as VoterData
from kavka_broker.protocol.uuids import ZERO

#: Levels of kraft.version that this controller speaks.
KRAFT_VERSIONS: Final = (0, 1)


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller with a vote. Its directory id tells a node from the same node with an empty disk."""

    node_id: int
    directory_id: bytes = ZERO
    endpoints: tuple[tuple[str, str, int], ...] = ()  # listener, host, port


def voters_record(voters: Iterable[Voter]) -> VotersRecord:
    """The control record that names the voters."""
    voters = tuple(voters)
    assert len({voter.node_id for voter in voters}) == len(voters), f"a node votes twice: {voters}"
    return VotersRecord(
        version=0,
        voters=[
            VoterData(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=[Endpoint(*endpoint) for endpoint in voter.endpoints],
                k_raft_version_feature=KRaftVersionFeature(*KRAFT_VERSIONS),
            )
            for voter in sorted(voters, key=lambda voter: voter.node_id)
        ],
    )


def read_voters(record: VotersRecord) -> tuple[Voter, ...]:
    """The voters that a control record names."""
    return tuple(
        Voter(
            voter.voter_id,
            voter.voter_directory_id,
            tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
        )
        for voter in record.voters
    )


def static_voters(items: Iterable[str], listener: str) -> tuple[Voter, ...]:
    """Parse the voters of `controller.quorum.voters`, ID@HOST:PORT each. Raises ConfigError."""
    voters: list[Voter] = []
    for item in items:
        node_id, at, address = item.strip().partition("@")
        host, colon, port = address.rpartition(":")
        if not (at and colon and node_id.isdigit() and port.isdigit()):
            raise ConfigError("controller.quorum.voters", f'"{item}" is no voter; write ID@HOST:PORT')
        if any(voter.node_id == int(node_id) for voter in voters):
            raise ConfigError("controller.quorum.voters", f"node {node_id} is named twice; a node has one vote")
        voters.append(Voter(int(node_id), ZERO, ((listener, host.strip("[]"), int(port)),)))
    return tuple(voters)


def majority_offset(durable: Mapping[int, int], voters: Iterable[Voter]) -> int:
    """The offset up to which the log is committed: more than half of the voters have it on their disks.

    `durable` is the synced log end of each voter as the leader knows it; one that never reported has nothing.
    """
    ends = sorted((durable.get(voter.node_id, 0) for voter in voters), reverse=True)
    assert ends, "a quorum without voters commits nothing"
    assert ends[-1] >= 0, f"a log ends at {ends[-1]}"
    return ends[len(ends) // 2]
