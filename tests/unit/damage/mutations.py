"""Where the files of each kind are, and how to damage one."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.unit.damage.node import Written

METADATA: Final = "__cluster_metadata-0"
#: Of a file that is flipped: where, as shares of its length.
FLIPPED_AT: Final = (0.3, 0.8)
#: Bytes of a batch's header, in one of each field: base offset, length, epoch, magic, last offset delta.
HEADER_BYTES_AT: Final = (5, 9, 14, 16, 25)


def newest(pattern: str) -> Callable[[Path], Path]:
    return lambda home: max(home.glob(pattern))


def second(pattern: str) -> Callable[[Path], Path]:
    return lambda home: sorted(home.glob(pattern))[1]


def named(name: str) -> Callable[[Path], Path]:
    return lambda home: home / name


#: The file, in any of the directories; with another topic in its place it is the one to be exchanged with.
FILES: Final[dict[str, Callable[[Path], Path]]] = {
    ".log (active)": newest("t-0/*.log"),
    ".log (older)": second("t-0/*.log"),
    ".log header": newest("t-0/*.log"),
    ".index": second("t-0/*.index"),
    ".timeindex": second("t-0/*.timeindex"),
    ".txnindex": second("t-0/*.txnindex"),
    ".snapshot": newest("t-0/*.snapshot"),
    "leader-epoch-checkpoint": named("t-0/leader-epoch-checkpoint"),
    "partition.metadata": named("t-0/partition.metadata"),
    "recovery-point-offset-checkpoint": named("recovery-point-offset-checkpoint"),
    "replication-offset-checkpoint": named("replication-offset-checkpoint"),
    "log-start-offset-checkpoint": named("log-start-offset-checkpoint"),
    ".kafka_cleanshutdown": named(".kafka_cleanshutdown"),
    "meta.properties": named("meta.properties"),
    "quorum-state": named(f"{METADATA}/quorum-state"),
    "metadata .log": newest(f"{METADATA}/*.log"),
    "metadata .checkpoint": newest(f"{METADATA}/*.checkpoint"),
    "bootstrap.checkpoint": named("bootstrap.checkpoint"),
}


def mutations(kind: str, damage: str, home: Path, written: Written) -> list[Callable[[], None]]:
    """The ways to do this damage, each to be played on a copy of its own at `home`."""
    find = FILES[kind]

    def put(data: bytes) -> Callable[[], None]:
        return lambda: replace(find(home), data)

    whole = find(written.new).read_bytes()
    match damage:
        case "flipped":
            return [put(flipped(whole, at)) for at in places(kind, whole)]
        case "zeroed":
            return [put(bytes(len(whole)))]
        case "truncated":
            return [put(whole[: len(whole) // 2]), put(b"")]
        case "swapped":
            return [put(stranger(kind, written).read_bytes())]
        case "stale" if kind in (".log (active)", ".log header"):
            # An older version of the same segment is a beginning of it.
            positions = batch_positions(whole)
            return [put(whole[: positions[len(positions) // 2]])]
        case "stale":
            return [put(find(written.old).read_bytes())]
        case _:
            return [lambda: find(home).unlink()]


def places(kind: str, whole: bytes) -> list[int]:
    if kind == ".log header":
        middle = batch_positions(whole)[len(batch_positions(whole)) // 2]
        last = batch_positions(whole)[-1]
        return [middle + byte for byte in HEADER_BYTES_AT] + [last + byte for byte in HEADER_BYTES_AT]
    if kind == "metadata .log":
        return [batch_positions(whole)[-1] + 70]
    if kind == "meta.properties":
        return [whole.index(key) + len(key) + 1 for key in (b"version", b"node.id")]
    return [int(len(whole) * share) for share in FLIPPED_AT]


def batch_positions(whole: bytes) -> list[int]:
    positions, position = [], 0
    while position < len(whole):
        positions.append(position)
        position += 12 + int.from_bytes(whole[position + 8 : position + 12], "big")
    return positions


def flipped(whole: bytes, at: int) -> bytes:
    return whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :] if whole else whole


def stranger(kind: str, written: Written) -> Path:
    """The file of this kind of another topic; where a node has but one, that of another node of another cluster."""
    own = FILES[kind](written.new)
    if own.parent.name == "t-0":
        others = sorted((written.new / "u-0").glob(own.name if "." not in own.name[:21] else f"*{own.suffix}"))
        return others[-1] if own == max(own.parent.glob(f"*{own.suffix}")) else others[min(1, len(others) - 1)]
    return FILES[kind](written.other)


def replace(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def fresh_copy(written: Written, home: Path) -> Path:
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(written.new, home)
    return home
