"""What `format` leaves, and what it refuses to touch."""

import pytest

from kavka_broker.controller.format import FormatError, Formatted, format_directory, random_uuid
from kavka_broker.controller.snapshots import GENESIS, file_name, read
from kavka_broker.core.config.properties import parse_properties
from kavka_broker.core.metadata.features import INITIAL_LEVELS
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.voters_record import VotersRecord
from kavka_broker.protocol.uuids import from_text
from tests.support.cluster import CLUSTER_ID, START_MS, Machine

OTHER_ID = "YW5vdGhlci1jbHVzdGVyLg"


def form(machine: Machine, cluster_id: str = CLUSTER_ID, *, ignore_formatted: bool = False) -> Formatted:
    return format_directory(
        machine.disk,
        machine.config,
        cluster_id,
        now_ms=START_MS,
        random_bytes=machine.random_bytes,
        ignore_formatted=ignore_formatted,
    )


def meta(machine: Machine, directory: str) -> dict[str, str]:
    return parse_properties(machine.disk.read_file(f"{directory}/meta.properties").decode())


def test_every_directory_says_whose_it_is() -> None:
    machine = Machine(log_dirs="/a,/b", metadata_log_dir="/m")
    assert form(machine) == Formatted(("/m", "/a", "/b"), ())
    identities = [meta(machine, directory) for directory in ("/m", "/a", "/b")]
    for identity in identities:
        assert (identity["version"], identity["cluster.id"], identity["node.id"]) == ("1", CLUSTER_ID, "1")
    assert len({identity["directory.id"] for identity in identities}) == 3


def test_the_first_controller_finds_levels_and_voters() -> None:
    machine = Machine()
    form(machine)
    levels = list(read(machine.disk.read_file("/data/bootstrap.checkpoint")))
    assert levels == [FeatureLevelRecord(name, level) for name, level in INITIAL_LEVELS.items()]
    version, voters = read(machine.disk.read_file(f"/data/__cluster_metadata-0/{file_name(GENESIS)}"))
    assert version == KRaftVersionRecord(0, 1)
    assert isinstance(voters, VotersRecord)
    assert voters.voters[0].voter_directory_id == from_text(meta(machine, "/data")["directory.id"])
    assert [(one.name, one.port) for one in voters.voters[0].endpoints] == [("CONTROLLER", 9093)]


def test_voters_of_the_configuration_are_not_written_down() -> None:
    machine = Machine(controller_quorum_voters="1@127.0.0.1:9093")
    form(machine)
    assert not machine.disk.exists("/data/__cluster_metadata-0")


def test_a_formatted_directory_is_left_alone() -> None:
    machine = Machine()
    form(machine)
    before = meta(machine, "/data")
    with pytest.raises(FormatError, match="formatted already; --ignore-formatted"):
        form(machine)
    assert form(machine, ignore_formatted=True) == Formatted((), ("/data",))
    assert meta(machine, "/data") == before


def test_a_directory_of_another_cluster_is_never_touched() -> None:
    machine = Machine()
    form(machine)
    with pytest.raises(FormatError, match=f"belongs to cluster {CLUSTER_ID}, not to {OTHER_ID}"):
        form(machine, OTHER_ID, ignore_formatted=True)


def test_a_directory_of_another_node_is_never_touched() -> None:
    machine = Machine()
    form(machine)
    other = Machine(node_id="2")
    other.disk = machine.disk
    with pytest.raises(FormatError, match="belongs to node 1, not to 2"):
        form(other, ignore_formatted=True)


@pytest.mark.parametrize("cluster_id", ["", "kavka", "AAAAAAAAAAAAAAAAAAAAAQ", "a2F2a2EtaW4tbWVtb3J5I+"])
def test_a_cluster_id_is_a_uuid_of_ones_own(cluster_id: str) -> None:
    machine = Machine()
    with pytest.raises(FormatError, match="22 URL-safe base64 characters"):
        form(machine, cluster_id)
    assert not machine.disk.exists("/data/meta.properties")


def test_a_uuid_is_of_version_four_and_never_looks_like_an_option() -> None:
    drawn = iter([b"\xfb" + bytes(15), bytes(16), b"\x10" + bytes(15)])
    uuid = random_uuid(lambda _: next(drawn))
    assert uuid[6] >> 4 == 4
    assert uuid[8] >> 6 == 2
