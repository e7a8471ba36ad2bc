"""What `format` leaves, and what it refuses to touch."""

from collections.abc import Sequence

import pytest

from kavka_broker.controller.format import (
    AS_CONFIGURED,
    FormatError,
    FormatOptions,
    Formatted,
    Voters,
    format_directory,
    parse_directory_ids,
    parse_voters,
    random_uuid,
)
from kavka_broker.controller.snapshot_files import GENESIS, file_name, read
from kavka_broker.core.config.properties import parse_properties
from kavka_broker.core.metadata.image.features import INITIAL_LEVELS
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.voters_record import VotersRecord
from kavka_broker.protocol.uuids import from_text, to_text
from tests.support.cluster import CLUSTER_ID, START_MS, Machine

OTHER_ID = "YW5vdGhlci1jbHVzdGVyLg"


def form(
    machine: Machine,
    cluster_id: str = CLUSTER_ID,
    *,
    ignore_formatted: bool = False,
    voters: Voters = AS_CONFIGURED,
    directory_ids: Sequence[str] = (),
    formatted_before: Sequence[str] = (),
) -> Formatted:
    return format_directory(
        machine.disk,
        machine.config,
        cluster_id,
        FormatOptions(voters, ignore_formatted, parse_directory_ids(directory_ids), formatted_before),
        now_ms=START_MS,
        random_bytes=machine.random_bytes,
    )


def meta(machine: Machine, directory: str) -> dict[str, str]:
    return parse_properties(machine.disk.read_file(f"{directory}/meta.properties").decode())


def test_every_directory_names_its_node_and_cluster() -> None:
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
    assert [(endpoint.name, endpoint.port) for endpoint in voters.voters[0].endpoints] == [("CONTROLLER", 9093)]


def test_configured_voters_are_not_written_to_the_snapshot() -> None:
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
def test_a_cluster_id_is_an_unreserved_uuid(cluster_id: str) -> None:
    machine = Machine()
    with pytest.raises(FormatError, match="22 URL-safe base64 characters"):
        form(machine, cluster_id)
    assert not machine.disk.exists("/data/meta.properties")


def test_a_uuid_is_of_version_four_and_never_looks_like_an_option() -> None:
    drawn = iter([b"\xfb" + bytes(15), bytes(16), b"\x10" + bytes(15)])
    uuid = random_uuid(lambda _: next(drawn))
    assert uuid[6] >> 4 == 4
    assert uuid[8] >> 6 == 2


IDS = [to_text((number + 1000).to_bytes(16, "big")) for number in range(4)]
INITIAL = f"1@one:9093:{IDS[1]},2@[::1]:9094:{IDS[2]}"
BOOTSTRAP = {"controller_quorum_bootstrap_servers": "one:9093,two:9093"}


def written(machine: Machine) -> list[tuple[int, str, str, int]]:
    """The voters in the bootstrap snapshot: id, directory, host, port."""
    _, voters = read(machine.disk.read_file(f"/data/__cluster_metadata-0/{file_name(GENESIS)}"))
    assert isinstance(voters, VotersRecord)
    return [
        (voter.voter_id, to_text(voter.voter_directory_id), voter.endpoints[0].host, voter.endpoints[0].port)
        for voter in voters.voters
    ]


def test_the_initial_controllers_are_the_same_on_each_of_them() -> None:
    for node_id in ("1", "2"):
        machine = Machine(node_id=node_id, **BOOTSTRAP)
        form(machine, voters=Voters(initial=parse_voters(INITIAL, "CONTROLLER")))
        assert written(machine) == [(1, IDS[1], "one", 9093), (2, IDS[2], "::1", 9094)]
        assert meta(machine, "/data")["directory.id"] == IDS[int(node_id)]


def test_a_standalone_controller_votes_alone() -> None:
    machine = Machine(**BOOTSTRAP)
    form(machine, voters=Voters(standalone=True))
    assert [voter[0] for voter in written(machine)] == [1]


def test_a_controller_that_joins_later_writes_no_voters() -> None:
    machine = Machine(**BOOTSTRAP)
    form(machine, voters=Voters(none=True))
    assert machine.disk.exists("/data/meta.properties")
    assert not machine.disk.exists("/data/__cluster_metadata-0")


def test_a_broker_needs_no_option_for_voters() -> None:
    machine = Machine(process_roles="broker", listeners="PLAINTEXT://127.0.0.1:9092", **BOOTSTRAP)
    form(machine)
    assert not machine.disk.exists("/data/__cluster_metadata-0")


@pytest.mark.parametrize(
    ("settings", "voters", "problem"),
    [
        (BOOTSTRAP, Voters(), "names other controllers, so who votes at first cannot be guessed; write --standalone"),
        (
            {"controller_quorum_voters": "1@one:9093"},
            Voters(standalone=True),
            r"controller\.quorum\.voters names the voters already; remove it",
        ),
        (
            {"node_id": "7"},
            Voters(initial=parse_voters(INITIAL, "CONTROLLER")),
            "node 7 is a controller and not among them; add it, or write --no-initial-controllers",
        ),
        (
            {"process_roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092"},
            Voters(standalone=True),
            r"process\.roles has no controller; write --no-initial-controllers",
        ),
    ],
)
def test_options_that_would_make_two_quorums_or_none_are_refused(
    settings: dict[str, str], voters: Voters, problem: str
) -> None:
    machine = Machine(**settings)
    with pytest.raises(FormatError, match=problem):
        form(machine, voters=voters)
    assert not machine.disk.exists("/data/meta.properties")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is no controller; write ID@HOST:PORT:DIRECTORY_ID"),
        ("1@one:9093", "is no controller"),
        (f"one:9093:{IDS[1]}", "is no controller"),
        (f"1@one:{IDS[1]}", "is no controller"),
        (f"1@one:70000:{IDS[1]}", "is no controller"),
        ("1@one:9093:short", r'"short" in "1@one:9093:short" is no directory id; write 22'),
        ("1@one:9093:AAAAAAAAAAAAAAAAAAAAAQ", "is no directory id"),
        (f"1@one:9093:{IDS[1]},1@two:9093:{IDS[2]}", "node id 1 is named twice"),
        (f"1@one:9093:{IDS[1]},2@two:9093:{IDS[1]}", f"directory id {IDS[1]} is named twice"),
        (f"1@one:9093:{IDS[1]},2@one:9093:{IDS[2]}", "address one:9093 is named twice"),
    ],
)
def test_an_invalid_list_of_controllers_is_refused(text: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        parse_voters(text, "CONTROLLER")


ID_A, ID_B = to_text(bytes([1] * 16)), to_text(bytes([2] * 16))


def test_directories_have_the_ids_that_are_given() -> None:
    machine = Machine(log_dirs="/a,/b", metadata_log_dir="/a")
    form(machine, directory_ids=(f"/a={ID_A}", f"/b={ID_B}"))
    assert [meta(machine, directory)["directory.id"] for directory in ("/a", "/b")] == [ID_A, ID_B]
    assert form(machine, ignore_formatted=True, directory_ids=(f"/a={ID_A}",)).already == ("/a", "/b")


def test_a_directory_with_another_id_is_another_directory() -> None:
    machine = Machine(log_dirs="/a", metadata_log_dir="/a")
    form(machine, directory_ids=(f"/a={ID_A}",))
    with pytest.raises(FormatError, match=r"/a has the id .*bring back the right one"):
        form(machine, ignore_formatted=True, directory_ids=(f"/a={ID_B}",))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("/a", "write DIRECTORY=ID"),
        ("/a=short", "write DIRECTORY=ID"),
        (f"/c={ID_A}", "/c is no log directory of this node; there are /a, /b"),
        (f"/a={ID_A} /a={ID_B}", "names a directory or an id twice"),
        (f"/a={ID_A} /b={ID_A}", "names a directory or an id twice"),
    ],
)
def test_ids_that_cannot_be_given(given: str, words: str) -> None:
    machine = Machine(log_dirs="/a,/b", metadata_log_dir="/a")
    with pytest.raises(FormatError, match=words):
        form(machine, directory_ids=given.split())
    assert not machine.disk.exists("/a/meta.properties")


def test_a_directory_that_has_lost_what_it_held_is_not_begun_again() -> None:
    machine = Machine(log_dirs="/a,/b", metadata_log_dir="/a")
    with pytest.raises(FormatError, match=r"/b was formatted before and has no meta\.properties now: it is empty"):
        form(machine, formatted_before=("/b",))
    assert not machine.disk.exists("/a/meta.properties"), "nothing is written"
    form(machine)
    assert form(machine, ignore_formatted=True, formatted_before=("/a", "/b")).already == ("/a", "/b")
    with pytest.raises(FormatError, match="--formatted-before: /c is no log directory of this node; there are /a, /b"):
        form(machine, ignore_formatted=True, formatted_before=("/c",))


def test_a_given_id_may_not_contradict_the_initial_controllers() -> None:
    machine = Machine(log_dirs="/a", metadata_log_dir="/a", controller_quorum_bootstrap_servers="one:9093,two:9093")
    voters = Voters(initial=parse_voters(f"1@one:9093:{ID_A},2@two:9093:{ID_B}", "CONTROLLER"))
    with pytest.raises(FormatError, match="another id in --initial-controllers"):
        form(machine, voters=voters, directory_ids=(f"/a={ID_B}",))
    form(machine, voters=voters, directory_ids=(f"/a={ID_A}",))
    assert meta(machine, "/a")["directory.id"] == ID_A
