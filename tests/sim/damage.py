"""What a medium does to the files of a node that is down: bits that turn over, sectors of zeros, files that are short,
old, exchanged or gone.

Records are damaged only where they are committed, for others have them all. Each returns what it has done, for the
story of the run; None where there is nothing to damage.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from crc32c import crc32c

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES
from kavka_broker.storage.checkpoints import HIGH_WATERMARKS, LOG_STARTS
from kavka_broker.storage.file_names import (
    LEADER_EPOCHS,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    TIME_INDEX,
    TRANSACTION_INDEX,
    parse_offset_file,
)
from kavka_broker.storage.producer_snapshot import decode
from tests.sim.history import Place
from tests.sim.node import Node
from tests.support.sim_inode import SECTOR_BYTES, SimInode

#: Of a batch's header: where each field is, and its bytes.
HEADER_FIELDS: Final = {
    "base offset": (0, 8), "length": (8, 4), "leader epoch": (12, 4), "magic": (16, 1), "crc": (17, 4),
    "attributes": (21, 2), "last offset delta": (23, 4), "base timestamp": (27, 8), "max timestamp": (35, 8),
    "producer id": (43, 8), "producer epoch": (51, 2), "base sequence": (53, 4), "count": (57, 4),
}  # fmt: skip
#: No checksum covers it; the epochs that a log knows do not name it.
UNPROTECTED: Final = ("leader epoch",)

WAYS: Final = ("bit", "zeros", "short", "exchanged", "gone")
OTHERS_SHARE: Final = 0.7
SNAPSHOT_HEAD_BYTES: Final = 6
SNAPSHOT_ENTRY_BYTES: Final = 46

Ends = Mapping[Place, int]
Damage = Callable[[Node, Random, Ends], str | None]
Found = tuple[str, int, int, int]  # path, position and size of a batch, and its base offset


def committed_batches(node: Node, ends: Ends) -> list[Found]:
    return [
        (path, position, header.size_bytes, header.base_offset)
        for place, path, position, header, _ in node.batches()
        if header.next_offset <= ends.get(place, 0)
    ]


def turn_payload_bit(node: Node, chance: Random, path: str, position: int, size_bytes: int) -> None:
    """Behind the header of the batch at `position`."""
    node.disk.flip_bit(path, chance.randrange(position + HEADER_BYTES, position + size_bytes), chance.randrange(8))


def turn_header_bit(node: Node, chance: Random, path: str, position: int) -> str:
    """Of the batch at `position`; in which field."""
    field = chance.choice([name for name in HEADER_FIELDS if name not in UNPROTECTED])
    start, size_bytes = HEADER_FIELDS[field]
    node.disk.flip_bit(path, position + start + chance.randrange(size_bytes), chance.randrange(8))
    return field


def payload_bit(node: Node, chance: Random, ends: Ends) -> str | None:
    """Behind a batch's header."""
    found = committed_batches(node, ends)
    if not found:
        return None
    path, position, size_bytes, base_offset = chance.choice(found)
    turn_payload_bit(node, chance, path, position, size_bytes)
    node.has_flipped = True
    return f"{node.host}:{path}: the batch at {base_offset}"


def header_bit(node: Node, chance: Random, ends: Ends) -> str | None:
    found = committed_batches(node, ends)
    if not found:
        return None
    path, position, _, base_offset = chance.choice(found)
    field = turn_header_bit(node, chance, path, position)
    node.has_flipped = True
    return f"{node.host}:{path}: {field} of the batch at {base_offset}"


def zeroed_sector(node: Node, chance: Random, ends: Ends) -> str | None:
    """Of what is committed: a sector that a drive has replaced reads as zeros."""
    found = committed_batches(node, ends)
    if not found:
        return None
    path, position, _, base_offset = chance.choice(found)
    start = position - position % SECTOR_BYTES
    end = min(start + SECTOR_BYTES, committed_end(found, path))
    node.disk.wipe(path, start, end - start)
    node.has_flipped = True
    return f"{node.host}:{path}: zeros at {start}, where the batch at {base_offset} was"


def committed_end(found: list[Found], path: str) -> int:
    return max(position + size_bytes for damaged, position, size_bytes, _ in found if damaged == path)


def small_files(node: Node, suffixes: tuple[str, ...]) -> list[str]:
    """Paths of the files beside the records whose names end so."""
    return [
        f"{directory}/{name}"
        for _, directory, files in node.logs()
        for name in files
        if name.endswith(suffixes) and not name.endswith(LOG)
    ]


def spoil(node: Node, chance: Random, paths: list[str]) -> str | None:
    """Turn a bit of one of these files over, fill it with zeros, cut it, exchange it for another, or take it away."""
    if not paths:
        return None
    path = chance.choice(paths)
    inode = inode_at(node, path)
    how = chance.choice(WAYS)
    data = bytes(inode.data)
    if not data and how != "gone":
        return None
    match how:
        case "bit":
            at = chance.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        case "zeros":
            data = bytes(len(data))
        case "short":
            data = data[: chance.randrange(len(data))]
        case "exchanged":
            data = bytes(inode_at(node, chance.choice(paths)).data)
    node.disk.overwrite(path, None if how == "gone" else data)
    return f"{node.host}:{path}: {how}"


def inode_at(node: Node, path: str) -> SimInode:
    directory, _, name = path.rpartition("/")
    return node.disk.peek(directory)[name]


def index(node: Node, chance: Random, _: Ends) -> str | None:
    return spoil(node, chance, small_files(node, (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)))


def transaction_index(node: Node, chance: Random, _: Ends) -> str | None:
    """Of a segment in which transactions were aborted. `index` has them among others, which are more."""
    return spoil(node, chance, small_files(node, (TRANSACTION_INDEX,)))


def producer_snapshot(node: Node, chance: Random, _: Ends) -> str | None:
    return spoil(node, chance, small_files(node, (".snapshot",)))


def unmarked_snapshot(node: Node, chance: Random, _: Ends) -> str | None:
    """One that does not say whose it is, as Apache Kafka writes them: its own, or that of another log."""
    paths = small_files(node, (".snapshot",))
    if not paths:
        return None
    path = chance.choice(paths)
    directory = path.rpartition("/")[0]
    others = [other for other in paths if not other.startswith(f"{directory}/")]
    source = chance.choice(others) if others and chance.random() < OTHERS_SHARE else path
    try:
        body = unmarked(bytes(inode_at(node, source).data))
    except ProtocolViolation:
        return None  # it is damaged already
    node.disk.overwrite(path, body)
    return f"{node.host}:{path}: without a mark, as {source}"


def unmarked(data: bytes) -> bytes:
    """The snapshot as Kafka would write it: version, CRC, and behind that the count and the producers."""
    count = len(decode(data))
    body = data[SNAPSHOT_HEAD_BYTES:][: 4 + count * SNAPSHOT_ENTRY_BYTES]
    return data[:2] + crc32c(body).to_bytes(4, "big") + body


def epochs(node: Node, chance: Random, _: Ends) -> str | None:
    return spoil(node, chance, small_files(node, (LEADER_EPOCHS,)))


def topic_id(node: Node, chance: Random, _: Ends) -> str | None:
    return spoil(node, chance, small_files(node, (PARTITION_METADATA,)))


def checkpoint(node: Node, chance: Random, _: Ends) -> str | None:
    """Of recovery points or high watermarks. Where a log starts nothing else says, in Apache Kafka's form: a replica
    whose `log-start-offset-checkpoint` is damaged shows again what DeleteRecords has taken, until its leader says so.
    Nor after a crash, whether a high watermark that a log reaches is its own (seed 524).
    """
    untold = (LOG_STARTS,) if node.is_clean else (LOG_STARTS, HIGH_WATERMARKS)
    paths = [
        f"{directory}/{name}"
        for directory in node.config.log_dirs
        for name in node.disk.peek(directory)
        if name.endswith("-checkpoint") and parse_offset_file(name) is None
    ]
    return spoil(node, chance, [path for path in paths if not path.endswith(untold)])


LOGS: Final[dict[str, Damage]] = {"payload": payload_bit, "header": header_bit, "zeros": zeroed_sector}
FILES: Final[dict[str, Damage]] = {
    "index": index, "snapshot": producer_snapshot, "unmarked": unmarked_snapshot, "epochs": epochs,
    "topic id": topic_id, "checkpoint": checkpoint,
}  # fmt: skip
