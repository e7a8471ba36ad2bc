"""Format directories for a new broker or controller, as `kafka-storage format` does.

Each log directory gets a `meta.properties` (whose it is) and a `bootstrap.checkpoint` (the feature levels to begin
with). With a quorum whose voters are kept in the log (KIP-853), the metadata directory also gets a snapshot at offset 0
that names the first of them:

    Voters(standalone=True)          this node alone
    Voters(initial=(...))            the controllers of the list, the same on each of them
    Voters(none=True)                nobody: this node joins a quorum that is there, or will be
    controller.quorum.voters is set  a quorum of the older kind: every configuration names them, nothing is written

Which of them cannot be guessed for a controller that knows of others: two that both began alone would be two clusters
with one id. One that knows of nobody else begins alone.

A directory that belongs to a cluster is never formatted again: its records would be read as another cluster's.

The id of a directory is drawn, unless `--directory-id` gives it: whoever keeps volumes knows each of them by its id
before anything is on it, and finds out that a volume was replaced by another. `--formatted-before` says that something
is on it: a directory that is empty then has lost votes and replicas, and is not begun again under the id that stands
for them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kavka_broker.controller.snapshot_files import BOOTSTRAP, GENESIS, build, file_name
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import format_properties, parse_properties
from kavka_broker.core.metadata.image.features import INITIAL_LEVELS
from kavka_broker.core.raft.voters import Voter, voters_record
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.uuids import from_text, to_text
from kavka_broker.storage.disk import Disk

META_PROPERTIES: Final = "meta.properties"
METADATA_DIRECTORY: Final = "__cluster_metadata-0"
#: Uuids below this are reserved by Kafka.
RESERVED: Final = 100


class FormatError(Exception):
    """Directories that cannot be formatted; the message says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """The directories that were formatted now, and those that had been formatted before."""

    new: tuple[str, ...]
    already: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Voters:
    """The first voters: at most one of the three is set; the configuration decides where none is."""

    standalone: bool = False
    initial: tuple[Voter, ...] = ()
    none: bool = False


AS_CONFIGURED: Final = Voters()


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The options of `format`: who votes, and what is known of the directories before.

    `directory_ids` are given to new directories; the others' are drawn. Those `formatted_before` may not be new.
    `credentials` are the records of the first users (`first_users`).
    """

    voters: Voters = AS_CONFIGURED
    ignore_formatted: bool = False
    directory_ids: Mapping[str, bytes] = field(default_factory=dict)
    formatted_before: Collection[str] = ()
    credentials: Sequence[Message] = ()


PLAIN: Final = FormatOptions()


def parse_voters(text: str, listener: str) -> tuple[Voter, ...]:
    """The voters of `--initial-controllers`: ID@HOST:PORT:DIRECTORY_ID, separated by commas. Raises FormatError."""
    voters = tuple(_parse_voter(item.strip(), listener) for item in text.split(","))
    told: tuple[tuple[str, list[str]], ...] = (
        ("node id", [str(voter.node_id) for voter in voters]),
        ("directory id", [to_text(voter.directory_id) for voter in voters]),
        ("address", ["{}:{}".format(*voter.endpoints[0][1:]) for voter in voters]),
    )
    for name, values in told:
        for value in values:
            if values.count(value) > 1:
                raise FormatError(f"--initial-controllers: {name} {value} is named twice; give each controller its own")
    return voters


def _parse_voter(item: str, listener: str) -> Voter:
    node_id, at, rest = item.partition("@")
    address, colon, directory = rest.rpartition(":")
    host, port_colon, port = address.rpartition(":")
    is_numeric = all(text.isascii() and text.isdigit() for text in (node_id, port))
    if not (at and colon and port_colon and host and is_numeric and 0 < int(port) < 65536):
        raise FormatError(f'--initial-controllers: "{item}" is no controller; write ID@HOST:PORT:DIRECTORY_ID')
    if is_reserved(directory):
        problem = f'"{directory}" in "{item}" is no directory id; write 22 URL-safe base64 characters'
        raise FormatError(f"--initial-controllers: {problem}")
    return Voter(int(node_id), from_text(directory), ((listener, host.strip("[]"), int(port)),))


def parse_directory_ids(items: Sequence[str]) -> dict[str, bytes]:
    """The ids that `--directory-id` gives to directories: DIRECTORY=ID each. Raises FormatError."""
    found: dict[str, bytes] = {}
    for item in items:
        directory, equals, text = item.rpartition("=")
        if not (equals and directory) or is_reserved(text):
            raise FormatError(f'--directory-id: write DIRECTORY=ID with 22 URL-safe base64 characters, not "{item}"')
        if directory in found or from_text(text) in found.values():
            raise FormatError(f'--directory-id: "{item}" names a directory or an id twice; give each its own')
        found[directory] = from_text(text)
    return found


def random_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """A uuid of version 4 that Kafka does not reserve and whose text does not look like an option."""
    while True:
        drawn = bytearray(random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        uuid = bytes(drawn)
        if int.from_bytes(uuid, "big") >= RESERVED and not to_text(uuid).startswith("-"):
            return uuid


def format_directory(
    disk: Disk,
    config: BrokerConfig,
    cluster_id: str,
    options: FormatOptions = PLAIN,
    *,
    now_ms: int,
    random_bytes: Callable[[int], bytes],
) -> Formatted:
    """Format every log directory of a configuration. Raises FormatError, and writes nothing, if one cannot be."""
    voters, directory_ids = options.voters, options.directory_ids
    _check_voters(config, voters)
    directories = list(dict.fromkeys([config.metadata_log_dir, *config.log_dirs]))
    _check_ids(config, voters, directories, directory_ids)
    taken = [directory for directory in directories if disk.exists(f"{directory}/{META_PROPERTIES}")]
    _check_taken(disk, config, cluster_id, taken, ignore_formatted=options.ignore_formatted)
    _check_replaced(disk, taken, directory_ids)
    _check_emptied(directories, taken, options.formatted_before)
    new = [directory for directory in directories if directory not in taken]
    for directory in new:
        directory_id = directory_ids.get(directory) or random_uuid(random_bytes)
        disk.make_directory(directory)
        disk.write_file(f"{directory}/{BOOTSTRAP}", bootstrap_snapshot(now_ms, options.credentials))
        if directory == config.metadata_log_dir:
            directory_id = _given_directory(config, voters) or directory_id
            _write_voters(disk, directory, first_voters(config, voters, directory_id), now_ms)
        # meta.properties is written last: it marks the directory as formatted.
        disk.write_file(f"{directory}/{META_PROPERTIES}", _meta_properties(config, cluster_id, directory_id))
    return Formatted(tuple(new), tuple(taken))


def bootstrap_snapshot(now_ms: int, credentials: Sequence[Message] = ()) -> bytes:
    """The records that the first controller of a new cluster writes to its log, as a snapshot."""
    levels = [FeatureLevelRecord(name, level) for name, level in INITIAL_LEVELS.items()]
    return build([], [*levels, *credentials], epoch=0, last_timestamp_ms=0, now_ms=now_ms)


def _check_taken(
    disk: Disk, config: BrokerConfig, cluster_id: str, taken: Sequence[str], *, ignore_formatted: bool
) -> None:
    if is_reserved(cluster_id):
        raise FormatError(f'cluster id "{cluster_id}": write 22 URL-safe base64 characters, as a uuid has')
    for directory in taken:
        found = parse_properties(disk.read_file(f"{directory}/{META_PROPERTIES}").decode())
        theirs = found.get("cluster.id")
        if theirs != cluster_id:
            raise FormatError(f"{directory} belongs to cluster {theirs}, not to {cluster_id}; choose another directory")
        if found.get("node.id") != str(config.node_id):
            problem = f"belongs to node {found.get('node.id')}, not to {config.node_id}"
            raise FormatError(f"{directory} {problem}; choose another directory")
        if not ignore_formatted:
            raise FormatError(f"{directory} is formatted already; --ignore-formatted leaves it as it is")


def _check_ids(
    config: BrokerConfig, voters: Voters, directories: Sequence[str], directory_ids: Mapping[str, bytes]
) -> None:
    """Raise FormatError for ids of directories that are not configured, or that contradict the initial controllers."""
    for directory in directory_ids:
        if directory not in directories:
            known = ", ".join(directories)
            raise FormatError(f"--directory-id: {directory} is no log directory of this node; there are {known}")
    given = _given_directory(config, voters)
    if given is not None and directory_ids.get(config.metadata_log_dir, given) != given:
        raise FormatError(
            f"--directory-id: {config.metadata_log_dir} holds the metadata log and has another id in"
            " --initial-controllers; write the same"
        )


def _check_replaced(disk: Disk, taken: Sequence[str], directory_ids: Mapping[str, bytes]) -> None:
    """Raise FormatError for a formatted directory that has another id than the one given."""
    for directory in taken:
        found = parse_properties(disk.read_file(f"{directory}/{META_PROPERTIES}").decode()).get("directory.id")
        wanted = directory_ids.get(directory)
        if found is not None and wanted is not None and found != to_text(wanted):
            problem = f"has the id {found}, not {to_text(wanted)}"
            raise FormatError(f"{directory} {problem}: it is another directory; bring back the right one")


def _check_emptied(directories: Sequence[str], taken: Collection[str], formatted_before: Collection[str]) -> None:
    """Raise FormatError for a directory that has lost what it held: its id would stand for replicas and votes."""
    for directory in formatted_before:
        if directory not in directories:
            known = ", ".join(directories)
            raise FormatError(f"--formatted-before: {directory} is no log directory of this node; there are {known}")
        if directory not in taken:
            problem = "was formatted before and has no meta.properties now"
            raise FormatError(f"{directory} {problem}: it is empty, or another one; bring back the right one")


def is_reserved(text: str) -> bool:
    """Whether a text is not a uuid, or is one that Kafka reserves."""
    try:
        return int.from_bytes(from_text(text), "big") < RESERVED
    except ValueError:
        return True


def _check_voters(config: BrokerConfig, voters: Voters) -> None:
    """Raise FormatError for voters that would make two quorums, or none."""
    is_controller = "controller" in config.roles
    chosen = voters.standalone or voters.initial or voters.none
    if config["controller.quorum.voters"]:
        if chosen:
            raise FormatError(
                "controller.quorum.voters names the voters already; remove it (and set "
                "controller.quorum.bootstrap.servers), or --standalone, --initial-controllers, --no-initial-controllers"
            )
        return
    if voters.standalone and not is_controller:
        raise FormatError("--standalone: process.roles has no controller; write --no-initial-controllers for a broker")
    if voters.initial and is_controller and not any(voter.node_id == config.node_id for voter in voters.initial):
        raise FormatError(
            f"--initial-controllers: node {config.node_id} is a controller and not among them; "
            f"add it, or write --no-initial-controllers for one that is to join later"
        )
    if is_controller and not chosen and not _knows_nobody(config):
        raise FormatError(
            "controller.quorum.bootstrap.servers names other controllers, so who votes at first cannot be guessed; "
            "write --standalone, --initial-controllers or --no-initial-controllers"
        )


def _knows_nobody(config: BrokerConfig) -> bool:
    """Whether the configuration names no other controller: its only address, if any, is this node's own."""
    own = {
        f"{address.host}:{address.port}"
        for address in (*config.listeners.of_controllers, *config.listeners.advertised_controllers)
    }
    return set(config["controller.quorum.bootstrap.servers"]) <= own


def _given_directory(config: BrokerConfig, voters: Voters) -> bytes | None:
    """The id of this node's metadata directory in the list of initial controllers."""
    return next((voter.directory_id for voter in voters.initial if voter.node_id == config.node_id), None)


def first_voters(config: BrokerConfig, voters: Voters, directory_id: bytes) -> tuple[Voter, ...]:
    """The first voters that the bootstrap snapshot names."""
    if voters.initial:
        return voters.initial
    is_alone = voters.standalone or ("controller" in config.roles and not voters.none)
    if config["controller.quorum.voters"] or not is_alone:
        return ()
    endpoints = tuple(
        (listener.name, listener.host, listener.port) for listener in config.listeners.advertised_controllers
    )
    return (Voter(config.node_id, directory_id, endpoints),)


def _write_voters(disk: Disk, directory: str, voters: Iterable[Voter], now_ms: int) -> None:
    voters = tuple(voters)
    if not voters:
        return
    control: list[Message] = [KRaftVersionRecord(0, 1), voters_record(voters)]
    disk.make_directory(f"{directory}/{METADATA_DIRECTORY}")
    data = build(control, [], epoch=0, last_timestamp_ms=now_ms, now_ms=now_ms)
    disk.write_file(f"{directory}/{METADATA_DIRECTORY}/{file_name(GENESIS)}", data)


def _meta_properties(config: BrokerConfig, cluster_id: str, directory_id: bytes) -> bytes:
    return format_properties(
        {
            "version": "1",
            "cluster.id": cluster_id,
            "node.id": str(config.node_id),
            "directory.id": to_text(directory_id),
        }
    ).encode()
