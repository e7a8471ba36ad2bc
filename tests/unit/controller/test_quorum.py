"""The quorum's memory and its majorities."""

import pytest

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.raft.quorum_state import QuorumState, UnreadableState, format_state, parse_state
from kavka_broker.core.raft.voters import Voter, majority_offset, read_voters, static_voters, voters_record
from tests.support.cluster import uuid

# The file as Apache Kafka 4.3.1 wrote it.
KAFKAS = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
OLDER = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1}],"data_version":0}'
)


def test_the_file_is_kafkas_to_the_byte() -> None:
    assert format_state(QuorumState(leader_epoch=1, leader_id=1)) == KAFKAS
    assert parse_state(KAFKAS) == QuorumState(leader_epoch=1, leader_id=1)


def test_the_older_form_is_read() -> None:
    assert parse_state(OLDER) == QuorumState(leader_epoch=4, leader_id=1)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"data_version":9}', KAFKAS.replace("AAAA", "!", 1)])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UnreadableState):
        parse_state(text)


@pytest.mark.parametrize(
    ("ends", "offset"),
    [([7], 7), ([7, 5], 5), ([9, 7, 5], 7), ([9, 7, 5, 3], 5), ([9, 9, 5, 3, 1], 5), ([9], 9)],
)
def test_records_are_committed_once_a_majority_has_them(ends: list[int], offset: int) -> None:
    voters = [Voter(number) for number in range(len(ends))]
    assert majority_offset(dict(enumerate(ends)), voters) == offset


def test_a_voter_that_never_reported_has_no_records() -> None:
    assert majority_offset({1: 9}, [Voter(1), Voter(2), Voter(3)]) == 0


def test_voters_are_written_and_read() -> None:
    voters = (Voter(1, uuid(1), (("CONTROLLER", "a", 9093),)), Voter(2, uuid(2), ()))
    assert read_voters(voters_record(reversed(voters))) == voters


def test_voters_are_read_from_a_configuration() -> None:
    (first, second) = static_voters(["1@a:9093", "2@[::1]:9094"], "CONTROLLER")
    assert (first.node_id, first.endpoints) == (1, (("CONTROLLER", "a", 9093),))
    assert second.endpoints == (("CONTROLLER", "::1", 9094),)
    with pytest.raises(ConfigError, match="write ID@HOST:PORT"):
        static_voters(["a:9093"], "CONTROLLER")
    with pytest.raises(ConfigError, match="node 1 is named twice"):
        static_voters(["1@a:9093", "1@b:9093"], "CONTROLLER")
