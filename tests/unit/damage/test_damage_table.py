"""Each kind of file x each kind of damage: nothing is served wrong, no start loops, and every cell has its outcome."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.runtime.addresses import StartError
from kavka_broker.runtime.server import Server
from tests.unit.damage.mutations import FILES, fresh_copy, mutations
from tests.unit.damage.node import Written, plain, prepare, read, start, value
from tests.unit.damage.table import DAMAGES, LESS, OFFLINE, REFUSED, TABLE, WHOLE

pytestmark = pytest.mark.thorough

CELLS = [(kind, damage) for kind in TABLE for damage in DAMAGES]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return prepare(tmp_path_factory.mktemp("written"))


@pytest.mark.parametrize(("kind", "damage"), CELLS)
def test_each_damage_of_each_file_ends_as_the_table_says(
    kind: str, damage: str, written: Written, tmp_path: Path
) -> None:
    expected = TABLE[kind][DAMAGES.index(damage)]
    home = tmp_path / "node"
    outcomes = []
    for number in range(len(mutations(kind, damage, home, written))):
        fresh_copy(written, home)
        mutations(kind, damage, home, written)[number]()
        outcomes.append(asyncio.run(lived_through(home, kind, written)))
    assert set(outcomes) == {expected}


async def lived_through(home: Path, kind: str, written: Written) -> str:
    """Start twice, with a record more in between; what came of the first start."""
    server = await started(home)
    if server is None:
        assert await started(home) is None, "it was made worse"
        return REFUSED
    try:
        outcome, end_offset = judged(server, written)
    finally:
        await server.stop("the test goes on")
    again = await start(home)
    try:
        second, _ = judged(again, written)
        assert (second == OFFLINE) == (outcome == OFFLINE)
        if outcome != OFFLINE:
            assert read(again.broker.partitions.leader("t", 0))[0][end_offset] == value("t", 10_000)
    finally:
        await again.stop("the test ends")
    return outcome


async def started(home: Path) -> Server | None:
    """None where it is refused, with a message that says where."""
    try:
        return await start(home)
    except StartError as refusal:
        reason = str(refusal)
    assert str(home) in reason
    return None


def judged(server: Server, written: Written) -> tuple[str, int]:
    replicas = server.broker.replicas
    found, refused = read(replicas.partitions.leader("u", 0))
    assert (found, refused) == (written.records["u"], []), "the other topic"
    partition = replicas.partitions.get("t", 0)
    if partition is None:
        return OFFLINE, -1
    assert partition.is_leader
    found, refused = read(partition)
    wanted = written.records["t"]
    strangers = {offset: got for offset, got in found.items() if wanted.get(offset, got) != got}
    assert not strangers, "served at another offset, or another topic's"
    end_offset = partition.log.log_end_offset
    assert end_offset >= written.ends["t"], "offsets are given out again"
    if end_offset == written.ends["t"]:
        plain(partition)
    is_whole = not refused and found.keys() >= wanted.keys()
    return (WHOLE if is_whole else LESS), end_offset


def test_every_kind_has_a_file(written: Written) -> None:
    for kind, find in FILES.items():
        assert find(written.new).exists(), kind
        assert find(written.old).exists(), kind


def test_the_documentation_has_the_same_table() -> None:
    text = (Path(__file__).parents[3] / "docs/reliability.md").read_text().partition("## Damaged files")[2]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in text.split("\n## ")[0].splitlines()]
    table = {row[0]: tuple(row[1:]) for row in rows if len(row) == len(DAMAGES) + 1 and row[0] != "---"}
    assert table.pop("file") == DAMAGES
    assert table == TABLE
