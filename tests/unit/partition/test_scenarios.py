"""Every scenario of tests/scripts/partition: what is done to the replicas of a partition, and what comes of it.

`pytest tests/unit/partition --rewrite` writes what happened into the files; read the diff before you commit it.

    brokers 3 [min.isr=2] [lag=30s]  replicas, the first of which leads; all in sync
    produce a b+c [acks=all|1] [via=2] append a batch each: their offsets, and what acks=all gets
    waiting                          what the producers that wait have got by now
    fetch 2                          one fetch of a follower: what it brings
    settle                           fetches and ISR changes until nothing moves
    isolate 1 | heal                 cut a broker off from everybody, and join all again
    kill 1 | pull 1 | start 1        kill -9, loss of power, start
    fence 1 | unfence 1              as the controller does it when a session ends and begins
    elect [2] [unclean]              another leader
    advance 20s                      time passes, and leaders look at their in-sync sets
    controller holds|answers|CODE    what becomes of proposals
    trim 3                           DeleteRecords up to an offset
    full 1 | room 1                  the disk of a broker takes nothing any more, and takes all again
    flip 2 offset=1                  a bit of the batch at this offset turns over on the disk
    log 1                            value/epoch of every record
    state                            leader, epoch and ISR; log end and high watermark of each
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import split_batches
from tests.support.sim_disk import SimFile
from tests.unit.partition.world import Node, World, records_of

SCRIPTS = Path(__file__).parents[2] / "scripts" / "partition"
COLUMN = 40


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_scenario_of_partitions_goes_as_it_is_written(path: Path, request: pytest.FixtureRequest) -> None:
    written = path.read_text()
    happened = asyncio.run(play(written))
    if request.config.getoption("--rewrite"):
        path.write_text(happened)
    assert happened == written


async def play(script: str) -> str:
    """The script with what happened behind each line."""
    stage, lines = Stage(), []
    for line in script.splitlines():
        command = line if line.startswith("#") else line.partition("->")[0].rstrip()
        outcome = "" if not command or command.startswith("#") else stage.play(command)
        lines.append(f"{command:{COLUMN - 1}} -> {outcome}" if outcome else command)
    return "\n".join(lines) + "\n"


class Stage:
    """A world, and the verbs that move it."""

    world: World

    def __init__(self) -> None:
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._answers = True

    def play(self, line: str) -> str:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        player: Callable[[list[str], dict[str, str]], str] = getattr(self, f"do_{verb}")
        return player(names, options)

    def node(self, name: str) -> Node:
        return self.world.nodes[int(name)]

    # --- the stage ----------------------------------------------------------------------------------------------

    def do_brokers(self, names: list[str], options: dict[str, str]) -> str:
        min_isr, lag = int(options.get("min.isr", "1")), options.get("lag", "30s")
        self.world = World(int(names[0]), min_isr=min_isr, lag_ms_max=milliseconds(lag))
        return ""

    def do_isolate(self, names: list[str], options: dict[str, str]) -> str:
        self.node(names[0]).is_isolated = True
        return ""

    def do_heal(self, names: list[str], options: dict[str, str]) -> str:
        for node in self.world.nodes.values():
            if node.is_isolated:
                node.is_isolated = False
                self.world.tell(node)
        return ""

    def do_kill(self, names: list[str], options: dict[str, str]) -> str:
        self.world.stop(self.node(names[0]), loses_power=False)
        return ""

    def do_pull(self, names: list[str], options: dict[str, str]) -> str:
        self.world.stop(self.node(names[0]), loses_power=True)
        return ""

    def do_start(self, names: list[str], options: dict[str, str]) -> str:
        node = self.node(names[0])
        self.world.start(node)
        assert node.partition is not None
        return f"ends at {node.partition.log.log_end_offset}"

    # --- the controller -----------------------------------------------------------------------------------------

    def do_elect(self, names: list[str], options: dict[str, str]) -> str:
        unclean = "unclean" in names
        leaders = [int(name) for name in names if name != "unclean"]
        self.world.elect(leaders[0] if leaders else None, unclean=unclean)
        return f"leader {self.world.state.leader} epoch {self.world.state.leader_epoch}"

    def do_fence(self, names: list[str], options: dict[str, str]) -> str:
        self.world.fence(self.node(names[0]))
        return self._decided()

    def do_unfence(self, names: list[str], options: dict[str, str]) -> str:
        self.world.unfence(self.node(names[0]))
        return self._decided()

    def _decided(self) -> str:
        state = self.world.state
        return f"leader {state.leader} epoch {state.leader_epoch} isr {numbers(state.isr)}"

    def do_controller(self, names: list[str], options: dict[str, str]) -> str:
        self._answers = names[0] != "holds"
        self.world.refusal = None if names[0] in ("holds", "answers") else ErrorCode[names[0]]
        return self._settle_proposals() if self._answers else ""

    def _settle_proposals(self) -> str:
        if not self._answers:
            return ""
        changes = self.world.answer_proposals()
        outcome = "refused" if self.world.refusal else "granted"
        return "; ".join(f"isr {numbers(one.broker_id for one in change.isr)} {outcome}" for change in changes)

    # --- records ------------------------------------------------------------------------------------------------

    def do_produce(self, names: list[str], options: dict[str, str]) -> str:
        acks = -1 if options.get("acks", "all") == "all" else int(options["acks"])
        node = self.world.nodes[int(options.get("via", self.world.state.leader))]
        outcomes = []
        for name in names:
            try:
                offset, committed = self.world.produce(node, name.encode(), acks)
            except BrokerError as error:
                outcomes.append(error.code.name)
                continue
            outcomes.append(str(offset) + ("" if committed is None else " waits"))
            if committed is not None:
                self._waiting.append((name, committed))
        return ", ".join(outcomes)

    def do_waiting(self, names: list[str], options: dict[str, str]) -> str:
        outcomes, still = [], []
        for name, future in self._waiting:
            if not future.done():
                outcomes.append(f"{name} waits")
                still.append((name, future))
            elif (error := future.exception()) is None:
                outcomes.append(f"{name} acknowledged")
            else:
                assert isinstance(error, BrokerError)
                outcomes.append(f"{name} {error.code.name}")
        self._waiting = still
        return ", ".join(outcomes)

    def do_fetch(self, names: list[str], options: dict[str, str]) -> str:
        node = self.node(names[0])
        assert node.partition is not None
        before = node.partition.log.log_end_offset
        data = self.world.fetch(node)
        if data is None:
            return "nobody answers"
        end = node.partition.log.log_end_offset
        outcome = f"{before} to {end}" if end != before else f"at {end}"
        if data.error_code:
            outcome = f"{ErrorCode(data.error_code).name}, {outcome}"
        if data.diverging_epoch.end_offset >= 0:
            outcome = f"diverging at {data.diverging_epoch.end_offset}/{data.diverging_epoch.epoch}, {outcome}"
        proposals = self._settle_proposals()
        return f"{outcome}, committed {node.partition.high_watermark}" + (f"; {proposals}" if proposals else "")

    def do_settle(self, names: list[str], options: dict[str, str]) -> str:
        assert self._answers, "nothing settles without the controller"
        self.world.settle()
        return ""

    def do_advance(self, names: list[str], options: dict[str, str]) -> str:
        self.world.clock.time_ms += milliseconds(names[0])
        for node in self.world.alive:
            if node.partition is not None:
                node.partition.check_in_sync()
        return self._settle_proposals()

    def do_trim(self, names: list[str], options: dict[str, str]) -> str:
        leader = self.world.nodes[self.world.state.leader].partition
        assert leader is not None
        moved = leader.trim(int(names[0]))
        if moved is not None:
            self._waiting.append((f"trim {names[0]}", moved))
        return f"low watermark {leader.low_watermark}" + ("" if moved is None else ", waits")

    def do_full(self, names: list[str], options: dict[str, str]) -> str:
        self.node(names[0]).disk.space_bytes = 0
        return ""

    def do_room(self, names: list[str], options: dict[str, str]) -> str:
        node = self.node(names[0])
        node.disk.space_bytes, node.steps_aside = None, False
        return ""

    def do_flip(self, names: list[str], options: dict[str, str]) -> str:
        partition = self.node(names[0]).partition
        assert partition is not None
        position, wanted = 0, int(options["offset"])
        file = partition.log.segments[0].file
        assert isinstance(file, SimFile)
        for header, batch in split_batches(file.read(0, file.size)):
            if header.base_offset == wanted:
                file._check().data[position + len(batch) - 1] ^= 1
            position += len(batch)
        return ""

    # --- what it is like ----------------------------------------------------------------------------------------

    def do_log(self, names: list[str], options: dict[str, str]) -> str:
        partition = self.node(names[0]).partition
        assert partition is not None
        return " ".join(f"{value.decode()}/{epoch}" for _, epoch, value in records_of(partition)) or "empty"

    def do_state(self, names: list[str], options: dict[str, str]) -> str:
        world = self.world
        parts = [
            f"{node.node_id} at {node.partition.log.log_end_offset} committed {node.partition.high_watermark}"
            for node in world.alive
            if node.partition is not None
        ]
        parts += [f"{node.node_id} steps aside" for node in world.alive if node.steps_aside]
        return f"{self._decided()}; {', '.join(parts)}"


def numbers(ids: object) -> str:
    return ",".join(map(str, ids))  # type: ignore[call-overload]


def milliseconds(text: str) -> int:
    return int(text[:-2]) if text.endswith("ms") else int(float(text[:-1]) * 1000)
